//! What became of a run: every packet by what happened to it, and how far the emulator can be
//! believed.
//!
//! Late packets are a fact of the machine and not of the link, so they are measured and judged:
//! a run on a machine that was too busy says so.

use std::fmt;

use posthaste_link::{BackgroundCounters, ClassCounters, Counters, Direction};
use posthaste_stats::Histogram;
use posthaste_units::Span;

use crate::agent;
use crate::flow::Refusal;
use crate::stack;

/// Packets that did not go into the link or not out of the emulator, of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypassed {
    refused: [u64; Refusal::ALL.len()],
    /// Came while the emulator could not keep up, and were lost by the kernel before it.
    pub overrun: u64,
    /// Left the link, and the kernel did not take them.
    pub unsent: u64,
    /// Were still in the link when the run ended.
    pub held: u64,
}

impl Bypassed {
    /// Refused for this reason.
    pub const fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Refused for any reason, by reason; those that did not happen are left out.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL
            .into_iter()
            .map(|refusal| (refusal, self.refused(refusal)))
            .filter(|(_, count)| *count > 0)
    }
}

/// One direction of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// What the links did, all connections together.
    pub link: Counters,
    /// What each class of a link that all share did, in the order of its plan; else empty.
    pub classes: Vec<ClassCounters>,
    /// What became of the background, where there is one: in the links of connections that were not
    /// long over.
    pub background: Option<BackgroundCounters>,
    /// What did not pass them as it should.
    pub bypassed: Bypassed,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Client to server.
    pub up: Way,
    /// Server to client.
    pub down: Way,
    /// How long after its exact time each packet was sent.
    pub lateness: Histogram,
    /// Connections that were seen.
    pub connections: u64,
    /// CLOCK_MONOTONIC at the beginning, from which all times of the run count.
    pub origin: Span,
    /// Whether the emulator had precedence over other work (SCHED_FIFO).
    pub real_time: bool,
    /// Times the emulator paused so that the kernel would not stop it for longer.
    pub pauses: u64,
    /// Sightings that were not kept, because nobody took them in time.
    pub unseen: u64,
    /// Inputs that were not kept, for the same reason: the record is not complete.
    pub unrecorded: u64,
    /// What the duplicate-ACK agent did, where there was one.
    pub duplicate_acks: Option<agent::Counters>,
    /// What the stacks did that stood in place of the client's and the server's TCP.
    pub stacks: [Option<stack::Counters>; 2],
}

/// The lateness of the 99th of a hundred packets from which a run is called late.
///
/// Twice what an idle machine reaches without privilege, and a tenth of the shortest delay
/// in common use.
pub const TOLERANCE: Span = Span::from_millis(1);

/// Whether a run can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can: packets left on time, and none was lost but by the link.
    OnTime,
    /// Packets left later than planned: times measured are too long.
    Late {
        /// Lateness that one packet of a hundred exceeded.
        p99: Span,
        /// Of the latest.
        max: Span,
    },
    /// Packets were lost that the link would not have dropped: the run shows more loss than planned.
    Lost {
        /// How many.
        packets: u64,
    },
}

impl Outcome {
    /// One direction of it.
    pub const fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Whether the run can be believed, at [`TOLERANCE`].
    pub fn verdict(&self) -> Verdict {
        let lost = |way: &Way| way.bypassed.overrun + way.bypassed.unsent;
        let packets = lost(&self.up) + lost(&self.down);
        let p99 = self.lateness.quantile(0.99);
        if packets > 0 {
            Verdict::Lost { packets }
        } else if p99 > TOLERANCE {
            let max = self.lateness.max();
            Verdict::Late { p99, max }
        } else {
            Verdict::OnTime
        }
    }
}

impl fmt::Display for Verdict {
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
                "lost: {packets} packets beside those that the link dropped, since the emulator could \
                 not keep up; lower the rate, end other work, or allow real-time priority"
            ),
        }
    }
}
