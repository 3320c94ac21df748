//! A response time and its parts, for measurement, emulation and prediction alike.

use crate::Span;

/// The parts of one response time, r = t_conn + t_req + t_proc + t_resp (Garcia, Hurtig, Brunstrom, WEBIST 2007,
/// equation 1; its p is `t_proc` here).
///
/// Each part ends where the next begins, so they add up to the nanosecond. The times are those of packets that arrive
/// at a link or leave it:
///
/// | part | from | to |
/// |---|---|---|
/// | `t_conn` | the client's first SYN arrives at the link | the first SYN-ACK leaves for the client |
/// | `t_client` | then | the first byte of the request arrives at the link |
/// | `t_req` | then | every byte of the request has left for the server |
/// | `t_proc` | then | the first byte of the reply arrives at the link |
/// | `t_resp` | then | every byte of the reply has left for the client |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTime {
    /// Connection setup; zero for a later request on the same connection.
    pub t_conn: Span,
    /// Time until the client's program sent its request. Not part of the equation above.
    pub t_client: Span,
    /// Transmission of the request.
    pub t_req: Span,
    /// Processing at the server.
    pub t_proc: Span,
    /// Transmission of the reply.
    pub t_resp: Span,
}

impl ResponseTime {
    /// The response time: the sum of all parts.
    pub fn total(&self) -> Span {
        self.t_conn + self.t_client + self.t_req + self.t_proc + self.t_resp
    }
}
