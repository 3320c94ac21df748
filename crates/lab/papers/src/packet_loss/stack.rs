//! Simulated TCP stacks of the study: the profile at both ends, and its conditions.

use std::sync::Arc;

use posthaste_sim::{Closer, ProcessingClock};
use posthaste_study::{Failure, Records};
use posthaste_tcp::remedy::Remedy;
use posthaste_tcp::{Profile, profile};

use super::cells::Cells;
use super::service::{LATE, PaperService};

/// Bytes of an Ethernet header. The paper's emulator worked at layer 2 and counted them.
const ETHERNET: u32 = 14;

/// A TCP stack at both ends.
pub(super) struct SimulatedStack {
    /// Name in pictures and sentences.
    pub(super) name: &'static str,
    /// Name in records.
    pub(super) key: &'static str,
    /// Name of the profile.
    pub(super) profile: &'static str,
    /// Start of the processing time.
    clock: ProcessingClock,
    /// Bytes on the line per packet in addition to the packet's own.
    overhead: u32,
    /// Number of last data packets that the paper found to be late.
    late: u32,
}

/// The paper's FreeBSD.
pub(super) static FREEBSD: SimulatedStack = SimulatedStack {
    name: "FreeBSD 6.0, simulated",
    key: "freebsd-6.0",
    profile: "freebsd-6.0",
    clock: ProcessingClock::Accept,
    overhead: ETHERNET,
    late: LATE + 1,
};

/// The paper's Linux.
pub(super) static LINUX: SimulatedStack = SimulatedStack {
    name: "Linux 2.6.15, simulated",
    key: "linux-2.6.15",
    profile: "linux-2.6.15",
    clock: ProcessingClock::Request,
    late: LATE,
    ..FREEBSD
};

/// FreeBSD of today.
static FREEBSD_14: SimulatedStack = SimulatedStack {
    name: "FreeBSD 14, simulated",
    key: "freebsd-14",
    profile: "freebsd-14",
    ..LINUX
};

/// Linux of today.
pub(super) static LINUX_6: SimulatedStack = SimulatedStack {
    name: "today's Linux, simulated",
    key: "linux-6",
    profile: "linux-6",
    ..LINUX
};

/// The stacks in the figures of the paper, the paper's own first.
pub(super) static ALL: [&SimulatedStack; 4] = [&FREEBSD, &LINUX, &FREEBSD_14, &LINUX_6];

/// FreeBSD in the paper, and the stacks of today for comparison.
pub(super) static OF_FREEBSD: [&SimulatedStack; 3] = [&FREEBSD, &FREEBSD_14, &LINUX_6];

/// The stack that matches a kernel: on the emulator's lines, with its program's clock.
pub(super) const fn matching(
    key: &'static str,
    name: &'static str,
    profile: &'static str,
) -> SimulatedStack {
    SimulatedStack {
        name,
        key,
        profile,
        clock: ProcessingClock::Request,
        overhead: 0,
        late: LATE,
    }
}

/// Configuration of both simulated ends.
#[derive(Clone)]
pub(super) struct SimulatedEnds {
    pub(super) profile: Arc<Profile>,
    pub(super) clock: ProcessingClock,
    pub(super) closer: Closer,
    pub(super) overhead: u32,
}

impl SimulatedStack {
    /// Configures both ends with this stack.
    pub(super) fn ends(&self, remedies: &[Remedy]) -> Result<SimulatedEnds, Failure> {
        Ok(SimulatedEnds {
            profile: Arc::new(profile::named(self.profile)?.with(remedies)),
            clock: self.clock,
            closer: Closer::Server,
            overhead: self.overhead,
        })
    }

    /// Cells of this stack for a service.
    pub(super) fn cells<'a>(
        &self,
        records: &'a Records,
        service: &'static PaperService,
    ) -> Cells<'a> {
        Cells {
            late: self.late,
            ..Cells::new(records, (self.key, self.name), service)
        }
    }
}
