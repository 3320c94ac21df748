//! The phases of an exchange: name look-up, connection, request, reply.

use posthaste_stats::Histogram;
use posthaste_units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// The instants of one exchange. Those not reached are at the origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) intended: Instant,
    /// Time at which the event loop came to the request.
    pub(crate) begun: Instant,
    /// Time at which it was sent: begun, or later if it waited for a stream of its connection.
    pub(crate) sent: Instant,
    /// True if it has a stream of a connection.
    pub(crate) has_stream: bool,
    pub(crate) connected: Option<Instant>,
    pub(crate) secured: Option<Instant>,
    pub(crate) written: Instant,
    pub(crate) first_byte: Option<Instant>,
    /// Time that the client takes to decode the reply.
    pub(crate) decoding: Option<Span>,
}

/// Phases of complete replies.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Name look-up, once per server and run.
    pub dns: Histogram,
    /// Wait for a stream of a connection: for the handshake, the server's limit or one's own. Only over HTTP/2.
    pub queue: Histogram,
    /// SYN to connected, new connections only.
    pub connect: Histogram,
    /// TLS handshake, new connections only.
    pub tls: Histogram,
    /// Writing the request.
    pub send: Histogram,
    /// Request written to first byte of the reply.
    pub wait: Histogram,
    /// First byte to last byte.
    pub receive: Histogram,
    /// Decoding of replies with a content coding, if the plan decodes.
    pub decode: Histogram,
}

impl Phases {
    /// Names, in the order of a request's life.
    pub const NAMES: [&str; 8] = [
        "dns", "queue", "connect", "tls", "send", "wait", "receive", "decode",
    ];

    /// Names and histograms, in the same order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let phases = [
            &self.dns,
            &self.queue,
            &self.connect,
            &self.tls,
            &self.send,
            &self.wait,
            &self.receive,
            &self.decode,
        ];
        Self::NAMES.into_iter().zip(phases)
    }

    pub(crate) fn record(&mut self, moments: &Moments, done: Instant) {
        let mut ready = moments.sent;
        if moments.has_stream {
            self.queue.record(ready.saturating_since(moments.begun));
        }
        if let Some(connected) = moments.connected {
            self.connect.record(connected.saturating_since(ready));
            ready = connected;
        }
        if let Some(secured) = moments.secured {
            self.tls.record(secured.saturating_since(ready));
            ready = secured;
        }
        let received = done - moments.decoding.unwrap_or_default();
        let first_byte = moments.first_byte.unwrap_or(received);
        // A reply can begin before its request has been written.
        self.send.record(moments.written.saturating_since(ready));
        self.wait
            .record(first_byte.saturating_since(moments.written));
        self.receive.record(received.saturating_since(first_byte));
        if let Some(decoding) = moments.decoding {
            self.decode.record(decoding);
        }
    }

    pub(crate) fn clear(&mut self) {
        for phase in [
            &mut self.dns,
            &mut self.queue,
            &mut self.connect,
            &mut self.tls,
            &mut self.send,
            &mut self.wait,
            &mut self.receive,
            &mut self.decode,
        ] {
            phase.clear();
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.dns.merge(&other.dns);
        self.queue.merge(&other.queue);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.send.merge(&other.send);
        self.wait.merge(&other.wait);
        self.receive.merge(&other.receive);
        self.decode.merge(&other.decode);
    }
}
