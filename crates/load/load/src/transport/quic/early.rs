//! Early data (0-RTT, RFC 9001, section 4.6): requests in the first datagrams of a resumed connection.

use posthaste_http::streams::http3::Http3StreamClient;

use crate::transport::multiplexed::EarlyDataCounts;

/// Early data of a connection.
pub(super) enum EarlyData {
    /// The connection has offered none.
    None,
    /// Offered. The server has not answered.
    Offered,
    /// Accepted with the handshake.
    Accepted,
    /// Rejected with the handshake. The streams of this client ended with it.
    Rejected(Box<Http3StreamClient>),
}

impl EarlyData {
    /// Counts a connection.
    pub(super) fn count(&self, counts: &mut EarlyDataCounts) {
        match self {
            Self::None => return,
            Self::Offered => {}
            Self::Accepted => counts.accepted += 1,
            Self::Rejected(_) => counts.rejected += 1,
        }
        counts.offered += 1;
    }
}
