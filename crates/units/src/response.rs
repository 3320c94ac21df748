//! A response time and its parts: the one vocabulary in which it is measured, emulated and predicted.

use crate::Span;

/// The parts of one response time, r = t_conn + t_req + t_proc + t_resp (Garcia, Hurtig, Brunstrom,
/// WEBIST 2007, equation 1, whose p is `t_proc` here).
///
/// Each part ends where the next begins, so that they add up to the nanosecond. Times are those at
/// which packets come to a link and leave it:
///
/// | part | from | to |
/// |---|---|---|
/// | `t_conn` | the client's first SYN comes to the link | the first SYN-ACK is sent on to the client |
/// | `t_client` | then | the first byte of the request comes to the link |
/// | `t_req` | then | every byte of the request has been sent on to the server |
/// | `t_proc` | then | the first byte of the reply comes to the link |
/// | `t_resp` | then | every byte of the reply has been sent on to the client |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTime {
    /// Establishing the connection; zero for a later request on the same one.
    pub t_conn: Span,
    /// Until the client's program sent its request; the study leaves it out.
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
