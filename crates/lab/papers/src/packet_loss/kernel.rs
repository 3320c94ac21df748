//! Kernels of the study: this machine's kernel, configured to behave like another.

use posthaste_emulator::preset;
use posthaste_study::Failure;

use super::service::SEGMENT;
use super::stack::{self, SimulatedStack};
use super::testbed::Ends;

/// A kernel configuration at both ends.
pub(super) struct KernelSetup {
    /// Name in pictures and sentences.
    pub(super) name: &'static str,
    /// Name in records.
    pub(super) key: &'static str,
    /// Name of the emulator's preset and of the matching profile of the simulator.
    preset: &'static str,
}

/// Behaviour of the paper's Linux 2.6.15.
pub(super) static OF_2005: KernelSetup = KernelSetup {
    name: "linux-2005",
    key: "2005",
    preset: "linux-2005",
};

/// Default behaviour of a kernel of today.
pub(super) static TODAY: KernelSetup = KernelSetup {
    name: "today's default",
    key: "today",
    preset: "default",
};

/// Both kernels, the paper's first.
pub(super) static BOTH: [&KernelSetup; 2] = [&OF_2005, &TODAY];

impl KernelSetup {
    /// The matching simulated stack, on the emulator's lines.
    pub(super) const fn matching_stack(&self) -> SimulatedStack {
        stack::matching(self.key, self.name, self.preset)
    }

    /// Ends with this kernel at both sides and nothing else.
    pub(super) fn ends(&self) -> Result<Ends, Failure> {
        let setup = preset::named(self.preset)?.setup();
        Ok(Ends {
            client: setup.clone(),
            server: setup,
            segment: SEGMENT,
            fin_on_data: false,
            agent: None,
            kept: false,
        })
    }
}
