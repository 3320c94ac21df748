//! The phase of a connection or stream, with the tick of its start.
//!
//! Two cells, read by the thread's sweep. No timer is armed or disarmed per request; this is the reason for not using
//! hyper's own timer.

use std::cell::Cell;

/// A phase, and the tick of its start or last progress.
#[derive(Default)]
pub(crate) struct PhaseTimer {
    phase: Cell<ConnectionPhase>,
    since: Cell<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// Waiting for a request.
    #[default]
    Idle,
    /// A request has begun and its header is not complete.
    Head,
    /// The handler has the request; `reading` while it waits for the body.
    Service { reading: bool },
    /// A piece of the reply is ready, and the next one has not been polled yet.
    Replying,
    /// The connection or stream carries another protocol. Its user limits the time.
    Tunnel,
}

impl PhaseTimer {
    pub(crate) fn enter(&self, phase: ConnectionPhase, now: u32) {
        self.phase.set(phase);
        self.restart(now);
    }

    /// Records progress within the phase.
    pub(crate) fn restart(&self, now: u32) {
        debug_assert!(now >= self.since.get(), "ticks never decrease");
        self.since.set(now);
    }

    pub(crate) fn phase(&self) -> ConnectionPhase {
        self.phase.get()
    }

    pub(crate) fn get(&self) -> (ConnectionPhase, u32) {
        (self.phase.get(), self.since.get())
    }
}
