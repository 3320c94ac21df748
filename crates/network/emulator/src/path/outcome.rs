//! Outcome of a run: every packet by its fate, and the accuracy of the emulator.
//!
//! Lateness is a property of the machine and not of the link, so it is measured and judged. The outcome of a run on an
//! overloaded machine says so.

use std::fmt;

use posthaste_link::change::AppliedChange;
use posthaste_link::{BackgroundCounters, ClassCounters, LinkCounters};
use posthaste_stats::Histogram;
use posthaste_units::Span;

use crate::path::agent;
use crate::path::flow::FrameRefusal;
use crate::path::stack;

/// Packets of one direction that did not enter the link, or did not leave the emulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypassed {
    refused: [u64; FrameRefusal::ALL.len()],
    /// Lost by the kernel in front of the emulator because the emulator was too slow.
    pub overrun: u64,
    /// Left the link, but were rejected by the kernel.
    pub unsent: u64,
    /// Still in the link when the run ended.
    pub held: u64,
}

impl Bypassed {
    /// Packets rejected for this reason.
    pub const fn refused(&self, refusal: FrameRefusal) -> u64 {
        self.refused[refusal as usize]
    }

    pub(crate) fn refuse(&mut self, refusal: FrameRefusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Rejected packets by reason, without reasons that did not occur.
    pub fn refusals(&self) -> impl Iterator<Item = (FrameRefusal, u64)> + '_ {
        FrameRefusal::ALL
            .into_iter()
            .map(|refusal| (refusal, self.refused(refusal)))
            .filter(|(_, count)| *count > 0)
    }
}

/// Outcome of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionOutcome {
    /// Counters of the links, all connections together.
    pub link: LinkCounters,
    /// Counters of each class of a link that all connections share, in the order of its plan. Otherwise empty.
    pub classes: Vec<ClassCounters>,
    /// Counters of the cross traffic, if any. Links of connections that ended long ago are not included.
    pub background: Option<BackgroundCounters>,
    /// Packets that did not pass the links as intended.
    pub bypassed: Bypassed,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct EmulationOutcome {
    /// Client to server.
    pub up: DirectionOutcome,
    /// Server to client.
    pub down: DirectionOutcome,
    /// Delay of each packet's sending after its exact time.
    pub lateness: Histogram,
    /// Connections seen.
    pub connections: u64,
    /// Connections and datagrams of the client to hosts without a route, as its kernel counts them. They never reach
    /// the link.
    pub unrouted: u64,
    /// Changes of the links during the run, in order of time.
    pub changes: Vec<AppliedChange>,
    /// CLOCK_MONOTONIC at the beginning, the origin of all times of the run.
    pub origin: Span,
    /// True if the emulator ran with real-time priority (SCHED_FIFO).
    pub real_time: bool,
    /// Pauses of the emulator, made so that the kernel would not stop it for longer.
    pub pauses: u64,
    /// Packet records not kept, because the buffer was full.
    pub unseen: u64,
    /// Inputs not kept, because the buffer was full. If not zero, the record is incomplete.
    pub unrecorded: u64,
    /// Counters of the duplicate-ACK agent, if any.
    pub duplicate_acks: Option<agent::AgentCounters>,
    /// Counters of the TCP stacks in place of the client's and the server's kernel.
    pub stacks: [Option<stack::StackCounters>; 2],
}

/// The 99th percentile of lateness above which a run counts as late.
///
/// Twice the value of an idle machine without privilege, and a tenth of the shortest delay in common use.
pub const TOLERANCE: Span = Span::from_millis(1);

/// Reliability of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulationVerdict {
    /// Reliable: packets left on time, and none was lost except by the link.
    OnTime,
    /// Packets left later than planned. Measured times are too long.
    Late {
        /// The 99th percentile of lateness.
        p99: Span,
        /// Maximum lateness.
        max: Span,
    },
    /// Packets were lost that the link would not have dropped. The run shows more loss than planned.
    Lost {
        /// Number of those packets.
        packets: u64,
    },
}

impl EmulationOutcome {
    /// Judges the reliability of the run, at [`TOLERANCE`].
    pub fn verdict(&self) -> EmulationVerdict {
        let lost = |way: &DirectionOutcome| way.bypassed.overrun + way.bypassed.unsent;
        let packets = lost(&self.up) + lost(&self.down);
        let p99 = self.lateness.quantile(0.99);
        if packets > 0 {
            EmulationVerdict::Lost { packets }
        } else if p99 > TOLERANCE {
            let max = self.lateness.max();
            EmulationVerdict::Late { p99, max }
        } else {
            EmulationVerdict::OnTime
        }
    }
}

impl fmt::Display for EmulationVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnTime => f.write_str("on time"),
            Self::Late { p99, max } => write!(
                f,
                "late: one packet of a hundred left more than {p99} after its time, the latest {max}; \
                 end other work, or allow real-time priority"
            ),
            Self::Lost { packets } => write!(
                f,
                "lost: {packets} packets in addition to those that the link dropped, since the emulator could \
                 not keep up; lower the rate, end other work, or allow real-time priority"
            ),
        }
    }
}
