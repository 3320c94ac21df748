//! Result of a connection over QUIC and its transactions.

use posthaste_link::LinkCounters;
use posthaste_sim::{CompletedConnection, ConnectionTally, Ending};
use posthaste_units::{Instant, ResponseTime};

use crate::end::EndCounts;

/// A completed connection.
#[derive(Clone, Copy, Debug)]
pub struct QuicTransaction<'a> {
    /// Number of the transaction, from 1.
    pub number: u64,
    /// Time of the first Initial packet.
    pub began: Instant,
    /// Time of the last event.
    pub ended: Instant,
    /// Response time of each completed exchange, in order.
    pub responses: &'a [ResponseTime],
    /// Cause of the end.
    pub ending: Ending,
    /// Counts of the client.
    pub client: &'a EndCounts,
    /// Counts of the server.
    pub server: &'a EndCounts,
    /// Counters of the links, up and down.
    pub links: [&'a LinkCounters; 2],
}

impl<'a> QuicTransaction<'a> {
    /// The form that totals add.
    ///
    /// A packet that is declared lost counts as a fast retransmit: its frames are sent again. Needless retransmissions
    /// are not known, because quinn-proto does not count them, and count as none.
    pub fn completed(&self) -> CompletedConnection<'a> {
        let mut tally = ConnectionTally::default();
        for end in [self.client, self.server] {
            tally.retransmissions += end.declared_lost + end.probes;
            tally.fast_retransmits += end.declared_lost;
            tally.timeouts += end.timeouts;
            tally.probes += end.probes;
        }
        CompletedConnection {
            number: self.number,
            responses: self.responses,
            ending: self.ending,
            links: self.links,
            tally,
        }
    }
}
