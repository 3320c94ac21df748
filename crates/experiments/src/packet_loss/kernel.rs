//! The kernels of the study: this machine's, set as another would behave.

use posthaste_emulator::preset;

use super::rig::Ends;
use super::service::SEGMENT;
use super::stack::{self, Stack};
use crate::figure::Failure;

/// A kernel at both ends.
pub(super) struct Kernel {
    /// Its name in pictures and sentences.
    pub(super) name: &'static str,
    /// Its name in records.
    pub(super) key: &'static str,
    /// The emulator's preset, and its twin among the simulator's profiles.
    preset: &'static str,
}

/// As the paper's Linux 2.6.15 behaved.
pub(super) static OF_2005: Kernel = Kernel {
    name: "linux-2005",
    key: "2005",
    preset: "linux-2005",
};

/// As a kernel of today is by default.
pub(super) static TODAY: Kernel = Kernel {
    name: "today's default",
    key: "today",
    preset: "default",
};

/// Both, the paper's first.
pub(super) static BOTH: [&Kernel; 2] = [&OF_2005, &TODAY];

impl Kernel {
    /// Its twin in the simulator, on the emulator's lines.
    pub(super) const fn twin(&self) -> Stack {
        stack::twin(self.key, self.name, self.preset)
    }

    /// Both ends with it, and nothing else.
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
