//! Settings of HTTP/3.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use hyper::header::HeaderValue;

/// HTTP/3 of a server, next to HTTP/1.1 and HTTP/2.
#[derive(Clone, Debug)]
pub struct Http3 {
    /// The socket, from [`crate::listen_udp`]. Its port is announced in `Alt-Svc`.
    pub socket: Arc<UdpSocket>,
    /// Maximum size of a request's body, in bytes. Beyond it the reply is 413.
    pub body_limit: usize,
}

impl Http3 {
    /// The field value that announces HTTP/3 for one day (RFC 7838, section 3).
    pub(crate) fn announcement(&self) -> io::Result<HeaderValue> {
        let port = self.socket.local_addr()?.port();
        let value = format!("h3=\":{port}\"; ma=86400");
        Ok(HeaderValue::try_from(value).expect("digits are valid"))
    }
}
