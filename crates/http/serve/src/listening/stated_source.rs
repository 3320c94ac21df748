//! Reading of the PROXY protocol's header from a new connection, before TLS and HTTP.
//!
//! Nothing behind the header is consumed: bytes are peeked at first, and read when they are known to belong to the
//! header. The sweep ends the connection if this takes longer than `head`.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use tokio::io::AsyncReadExt as _;

use crate::listening::proxy_protocol::{MAX_LENGTH, Malformed, parse};
use crate::socket::stream::Stream;

/// Reasons why a connection has no header.
#[derive(Debug, Error)]
pub(crate) enum NoHeader {
    /// The sender has closed without a byte, as health checks of load balancers do. It is no error.
    #[error("closed without a byte")]
    Silent,
    /// The sender has closed within the header.
    #[error("closed within a header of the PROXY protocol")]
    Cut,
    /// The bytes are no header.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The socket has failed within the header.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// Reads the header and returns the client's address. `None` if the address of the socket counts.
pub(crate) async fn stated_source(stream: &mut Stream) -> Result<Option<SocketAddr>, NoHeader> {
    let mut bytes = vec![0; MAX_LENGTH];
    let mut filled = 0;
    loop {
        debug_assert!(filled < MAX_LENGTH, "a longer header is malformed");
        let more = match stream.peek(&mut bytes[filled..]).await {
            // A reset by a health check is no error either.
            Ok(0) | Err(_) if filled == 0 => return Err(NoHeader::Silent),
            Ok(0) => return Err(NoHeader::Cut),
            more => more?,
        };
        let header = parse(&bytes[..filled + more])?;
        let end = header.map_or(filled + more, |header| header.length);
        debug_assert!(end > filled, "a complete header was not incomplete before");
        stream.read_exact(&mut bytes[filled..end]).await?;
        filled = end;
        if let Some(header) = header {
            return Ok(header.source);
        }
    }
}
