//! Early data (0-RTT, RFC 9001, section 4.6): requests in the first datagrams of a resumed connection.

use posthaste_http::streams::http3::Client;
use serde::{Deserialize, Serialize};

/// Early data of a connection.
pub(super) enum EarlyData {
    /// The connection has offered none.
    None,
    /// Offered. The server has not answered.
    Offered,
    /// Accepted with the handshake.
    Accepted,
    /// Rejected with the handshake. The streams of this client ended with it.
    Rejected(Box<Client>),
}

/// Counts of early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyDataCounts {
    /// Connections that offered early data. The others had no ticket that permits it.
    pub offered: u64,
    /// Connections whose early data the server accepted.
    pub accepted: u64,
    /// Connections whose early data the server rejected. A connection that was lost before is neither.
    pub rejected: u64,
    /// Requests in rejected early data. They were sent again after the handshake, as another attempt each.
    pub sent_again: u64,
}

impl EarlyDataCounts {
    /// Counts a connection.
    pub(super) fn add(&mut self, early: &EarlyData) {
        match early {
            EarlyData::None => return,
            EarlyData::Offered => {}
            EarlyData::Accepted => self.accepted += 1,
            EarlyData::Rejected(_) => self.rejected += 1,
        }
        self.offered += 1;
    }

    /// All counts.
    pub fn counts(&self) -> [u64; 4] {
        [self.offered, self.accepted, self.rejected, self.sent_again]
    }

    /// Adds the counts of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.sent_again += other.sent_again;
    }
}
