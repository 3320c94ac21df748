//! Counts of connections with several streams.

use posthaste_http::streams::{ClientCounters, CodeCounts};
use posthaste_units::Span;
use serde::{Deserialize, Serialize};

/// Reason why a request waits for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueReason {
    /// Its connection is being established.
    Handshake,
    /// `--streams` of its connection are in use.
    OwnLimit,
    /// As many streams of its connection are in use as the server permits.
    ServerLimit,
}

/// Requests that waited for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuedRequests {
    /// Waited for their connection.
    pub handshake: u64,
    /// Waited because of the plan's limit of streams.
    pub own_limit: u64,
    /// Waited because of the server's limit of streams.
    pub server_limit: u64,
    /// The longest wait, also of requests that never got a stream.
    #[serde(with = "crate::exact::nanos")]
    pub longest: Span,
}

/// Counts of the HTTP/2 connections of a run, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamCounts {
    /// Requests that waited for a stream.
    pub queued: QueuedRequests,
    /// Requests sent once more, because the server rejected them without processing them.
    pub resent: u64,
    /// Connections that ended with open streams.
    pub connections_lost: u64,
    /// RST_STREAM of the server, by code.
    pub resets_received: CodeCounts,
    /// RST_STREAM sent, by code. Servers limit their number and close the connection beyond it.
    pub resets_sent: CodeCounts,
    /// GOAWAY of the server, by code.
    pub goaways: CodeCounts,
    /// Requests whose body waited for flow control of the server.
    pub stalled: u64,
    /// Times that the server used up a receive window of the generator. Above 0 the generator was the limit.
    pub windows_exhausted: u64,
    /// Early data of HTTP/3.
    pub early_data: EarlyDataCounts,
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

impl QueuedRequests {
    pub(crate) fn count(&mut self, reason: QueueReason) {
        *match reason {
            QueueReason::Handshake => &mut self.handshake,
            QueueReason::OwnLimit => &mut self.own_limit,
            QueueReason::ServerLimit => &mut self.server_limit,
        } += 1;
    }

    pub(crate) fn add_wait(&mut self, wait: Span) {
        self.longest = self.longest.max(wait);
    }
}

impl StreamCounts {
    /// Adds the counts of a connection.
    pub(crate) fn add(&mut self, counters: &ClientCounters) {
        self.resets_received.merge(&counters.resets_received);
        self.resets_sent.merge(&counters.resets_sent);
        self.goaways.merge(&counters.goaways);
        self.stalled += counters.stalled;
        self.windows_exhausted += counters.windows_exhausted;
    }

    /// All counts. Those by code as their sums.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        let QueuedRequests {
            handshake,
            own_limit,
            server_limit,
            ..
        } = self.queued;
        let by_code = [self.resets_received, self.resets_sent, self.goaways];
        let own = [
            handshake,
            own_limit,
            server_limit,
            self.resent,
            self.connections_lost,
            self.stalled,
            self.windows_exhausted,
        ];
        let by_code = by_code.map(|codes| codes.total());
        own.into_iter()
            .chain(by_code)
            .chain(self.early_data.counts())
    }

    /// Adds the counts of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        let QueuedRequests {
            handshake,
            own_limit,
            server_limit,
            longest,
        } = other.queued;
        self.queued.handshake += handshake;
        self.queued.own_limit += own_limit;
        self.queued.server_limit += server_limit;
        self.queued.add_wait(longest);
        self.resent += other.resent;
        self.connections_lost += other.connections_lost;
        self.resets_received.merge(&other.resets_received);
        self.resets_sent.merge(&other.resets_sent);
        self.goaways.merge(&other.goaways);
        self.stalled += other.stalled;
        self.windows_exhausted += other.windows_exhausted;
        self.early_data.merge(&other.early_data);
    }
}

impl EarlyDataCounts {
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
