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
    /// Handshakes in progress above which a client has to prove its address first (RFC 9000, section 8.1.2).
    pub unproved: usize,
    /// Probes for larger datagrams on each connection (RFC 8899).
    pub probes_size: bool,
    /// Several datagrams leave in one system call (GSO). The pacer then releases several at a time, too.
    pub segmentation_offload: bool,
}

impl Http3 {
    /// Settings of a public server, with the socket and the maximum size of a body.
    pub fn new(socket: UdpSocket, body_limit: usize) -> Self {
        Self {
            socket: Arc::new(socket),
            body_limit,
            unproved: 64,
            probes_size: true,
            segmentation_offload: true,
        }
    }

    /// The field value that announces HTTP/3 for one day (RFC 7838, section 3).
    pub(crate) fn announcement(&self) -> io::Result<HeaderValue> {
        let port = self.socket.local_addr()?.port();
        let value = format!("h3=\":{port}\"; ma=86400");
        Ok(HeaderValue::try_from(value).expect("digits are valid"))
    }
}
