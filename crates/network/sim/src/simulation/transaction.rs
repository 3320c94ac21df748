//! Result of a connection and its transactions.

use posthaste_link as link;
use posthaste_tcp as tcp;
use posthaste_units::{Instant, ResponseTime};

use crate::ConnectionTally;

/// A completed connection.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// Number of the transaction, from 1.
    pub number: u64,
    /// Time of the first SYN.
    pub began: Instant,
    /// Time of the last event.
    pub ended: Instant,
    /// Response time of each completed exchange, in order.
    pub responses: &'a [ResponseTime],
    /// Cause of the end.
    pub ending: Ending,
    /// Counters of the client's TCP.
    pub client: &'a tcp::EndpointCounters,
    /// Counters of the server's TCP.
    pub server: &'a tcp::EndpointCounters,
    /// Counters of the links, up and down.
    pub links: [&'a link::LinkCounters; 2],
    /// Duplicate segments that arrived because a link had copied them. They are not unnecessary retransmissions,
    /// although the ends count them.
    pub by_copies: u64,
}

impl Transaction<'_> {
    /// Counts of both ends together.
    pub fn tally(&self) -> ConnectionTally {
        let mut tally = ConnectionTally::default();
        for end in [self.client, self.server] {
            tally.retransmissions += end.retransmissions;
            tally.fast_retransmits += end.fast;
            tally.timeouts += end.timeouts;
            tally.probes += end.probes;
            tally.adaptive_acks += end.adaptive_acks;
            tally.for_nothing += end.duplicate_data;
        }
        debug_assert!(
            tally.for_nothing >= self.by_copies,
            "more copies than duplicate segments arrived"
        );
        tally.for_nothing = tally.for_nothing.saturating_sub(self.by_copies);
        tally
    }
}

/// Ending of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every request was answered, and both ends closed.
    Complete,
    /// An end gave up or was reset. Earlier replies count.
    Broken(tcp::ConnectionEnd),
    /// The connection exceeded the [longest time](crate::Simulator::PATIENCE), or no further event was due.
    Unfinished,
}

impl Ending {
    /// Names of all endings, in the order of tables.
    pub const NAMES: [&'static str; 5] =
        ["complete", "reset", "timed-out", "aborted", "unfinished"];

    /// Index in [`NAMES`](Self::NAMES).
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Complete | Self::Broken(tcp::ConnectionEnd::Finished) => 0,
            Self::Broken(tcp::ConnectionEnd::Reset) => 1,
            Self::Broken(tcp::ConnectionEnd::TimedOut) => 2,
            Self::Broken(tcp::ConnectionEnd::Aborted) => 3,
            Self::Unfinished => 4,
        }
    }

    /// Name of the ending.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}
