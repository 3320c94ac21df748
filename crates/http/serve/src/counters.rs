//! Counters of a server's connections, one set per server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the server started, and requests in service now.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    pub(crate) accepted: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) in_service: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    pub(crate) timed_out_idle: AtomicU64,
    pub(crate) timed_out_reading: AtomicU64,
    pub(crate) timed_out_writing: AtomicU64,
    pub(crate) protocol_errors: AtomicU64,
    pub(crate) left: AtomicU64,
    pub(crate) tls_failures: AtomicU64,
    pub(crate) client_certificate_failures: AtomicU64,
    pub(crate) proxy_header_errors: AtomicU64,
    pub(crate) cut_off: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) marks_set: AtomicU64,
    pub(crate) marks_waited: AtomicU64,
    pub(crate) marks_shared: AtomicU64,
    pub(crate) marks_refused: AtomicU64,
}

/// [`ConnectionCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Requests in service now, each to the end of its reply.
    pub in_service: u64,
    /// Failed calls of accept, mostly for lack of descriptors.
    pub accept_errors: u64,
    /// Connections ended because no request arrived.
    pub timed_out_idle: u64,
    /// Connections ended within a request.
    pub timed_out_reading: u64,
    /// Connections, and switched streams of HTTP/2, ended because the peer did not take their data.
    pub timed_out_writing: u64,
    /// Connections ended by invalid HTTP, and rejected requests. Over HTTP/2 and HTTP/3 also malformed requests.
    pub protocol_errors: u64,
    /// Connections of HTTP/1 and HTTP/2 that the peer closed within a request or a reply, for example because its time
    /// had passed.
    pub left: u64,
    /// Failed TLS handshakes, except those that fail by the client's certificate.
    pub tls_failures: u64,
    /// TLS handshakes that failed because the client's certificate is missing or invalid.
    pub client_certificate_failures: u64,
    /// Connections of trusted load balancers without a valid header of the PROXY protocol.
    pub proxy_header_errors: u64,
    /// Connections closed at the end of a drain's grace time.
    pub cut_off: u64,
    /// Unused connections closed in favour of others.
    pub evicted: u64,
    /// Changes of a connection's mark.
    pub marks_set: u64,
    /// Replies that waited for the acknowledgement of the previous reply with another mark.
    pub marks_waited: u64,
    /// Replies sent with another mark than their own: that of their HTTP/2 connection.
    pub marks_shared: u64,
    /// Changes of a connection's mark that the kernel refused.
    pub marks_refused: u64,
}

impl Snapshot {
    /// Events of connections: label and count.
    pub const fn events(&self) -> [(&'static str, u64); 12] {
        [
            ("accepted", self.accepted),
            ("accept-error", self.accept_errors),
            ("timed-out-idle", self.timed_out_idle),
            ("timed-out-reading", self.timed_out_reading),
            ("timed-out-writing", self.timed_out_writing),
            ("protocol-error", self.protocol_errors),
            ("client-left", self.left),
            ("tls-failure", self.tls_failures),
            (
                "client-certificate-failure",
                self.client_certificate_failures,
            ),
            ("proxy-header-error", self.proxy_header_errors),
            ("cut-off", self.cut_off),
            ("closed-for-room", self.evicted),
        ]
    }

    /// Events of marks: label and count.
    pub const fn marks(&self) -> [(&'static str, u64); 4] {
        [
            ("set", self.marks_set),
            ("waited", self.marks_waited),
            ("shared", self.marks_shared),
            ("refused", self.marks_refused),
        ]
    }
}

impl ConnectionCounters {
    /// The current counts.
    pub fn snapshot(&self) -> Snapshot {
        let closed = self.closed.load(Relaxed);
        let accepted = self.accepted.load(Relaxed);
        Snapshot {
            accepted,
            open: accepted.saturating_sub(closed),
            in_service: self.in_service.load(Relaxed),
            accept_errors: self.accept_errors.load(Relaxed),
            timed_out_idle: self.timed_out_idle.load(Relaxed),
            timed_out_reading: self.timed_out_reading.load(Relaxed),
            timed_out_writing: self.timed_out_writing.load(Relaxed),
            protocol_errors: self.protocol_errors.load(Relaxed),
            left: self.left.load(Relaxed),
            tls_failures: self.tls_failures.load(Relaxed),
            client_certificate_failures: self.client_certificate_failures.load(Relaxed),
            proxy_header_errors: self.proxy_header_errors.load(Relaxed),
            cut_off: self.cut_off.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            marks_set: self.marks_set.load(Relaxed),
            marks_waited: self.marks_waited.load(Relaxed),
            marks_shared: self.marks_shared.load(Relaxed),
            marks_refused: self.marks_refused.load(Relaxed),
        }
    }
}

/// Increments a counter and returns its previous value.
pub(crate) fn add_one(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Relaxed)
}
