//! Counters of gRPC calls, by status and by the phase in which a deadline passed.

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_serve::exposition::counters;
use prometheus_client::encoding::DescriptorEncoder;

/// Names of the statuses 0 to 16 in counters, and of all others.
pub(crate) const STATUSES: [&str; 18] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
    "other",
];

/// Phases of a call in which its deadline may pass, in the order in which they are counted.
const DEADLINE_PHASES: [&str; 3] = ["arrival", "reply", "body"];

/// A phase of a call in which its deadline may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlinePhase {
    /// It had passed when the call arrived.
    Arrival,
    /// Before the head of the reply.
    Reply,
    /// Within the body of the reply.
    Body,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct GrpcCounters {
    /// Replies, in the order of [`STATUSES`].
    replies: [AtomicU64; STATUSES.len()],
    /// Calls that ended at their deadline, in the order of [`DEADLINE_PHASES`].
    deadlines: [AtomicU64; DEADLINE_PHASES.len()],
}

impl GrpcCounters {
    /// Counts a reply, by the index of its status in [`STATUSES`].
    pub(crate) fn replied(&self, status: usize) {
        self.replies[status].fetch_add(1, Relaxed);
    }

    pub(crate) fn deadline_passed(&self, phase: DeadlinePhase) {
        self.deadlines[phase as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn encode(&self, out: &mut DescriptorEncoder) -> Result<(), Error> {
        let load = |count: &AtomicU64| count.load(Relaxed) as f64;
        let statuses = STATUSES.iter().zip(&self.replies);
        let rows = statuses.map(|(status, n)| ([("status", *status)], load(n)));
        let help = "Replies to gRPC calls, by grpc-status, refusals included";
        counters(out, "grpc_replies", help, rows.filter(|(_, n)| *n > 0.0))?;
        let phases = DEADLINE_PHASES.iter().zip(&self.deadlines);
        let rows = phases.map(|(phase, n)| ([("phase", *phase)], load(n)));
        let help = "gRPC calls that ended at their deadline, by phase";
        counters(out, "grpc_deadlines", help, rows)
    }
}
