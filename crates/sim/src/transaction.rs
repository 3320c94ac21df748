//! What became of a connection and its transactions.

use posthaste_link as link;
use posthaste_tcp as tcp;
use posthaste_units::{Instant, ResponseTime};

/// A connection that has been played to its end.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// When its first SYN was sent.
    pub began: Instant,
    /// When nothing happened any more.
    pub ended: Instant,
    /// The response time of each exchange that was completed, in order.
    pub responses: &'a [ResponseTime],
    /// How it ended.
    pub ending: Ending,
    /// What the client's TCP did.
    pub client: &'a tcp::Counters,
    /// What the server's TCP did.
    pub server: &'a tcp::Counters,
    /// What the links did, up and down.
    pub links: [&'a link::Counters; 2],
    /// Segments that came to an end which had all of them, since a link had copied them: not sent
    /// for nothing, though the ends count them.
    pub by_copies: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was answered, and both ends closed.
    Complete,
    /// An end gave up or was reset; what had been answered until then counts.
    Broken(tcp::End),
    /// It was not over after the [longest time](crate::Simulator::PATIENCE), or nothing more would
    /// have happened.
    Unfinished,
}

impl Ending {
    /// Every ending, as tables list them.
    pub const NAMES: [&'static str; 5] =
        ["complete", "reset", "timed-out", "aborted", "unfinished"];

    /// Its place in [`NAMES`](Self::NAMES).
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Complete | Self::Broken(tcp::End::Finished) => 0,
            Self::Broken(tcp::End::Reset) => 1,
            Self::Broken(tcp::End::TimedOut) => 2,
            Self::Broken(tcp::End::Aborted) => 3,
            Self::Unfinished => 4,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}
