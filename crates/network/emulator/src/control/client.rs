//! The client of a control: one request, one reply.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use posthaste_link::change::Change;
use thiserror::Error;

use super::address::ControlAddress;
use super::state::AppliedChangeDocument;

/// Maximum number of bytes of a reply that are read.
const REPLY_LIMIT: u64 = 64 << 10;
/// Time limit for each step of the reply: more than that of a change.
const PATIENCE: Duration = Duration::from_secs(10);

/// Error of a request to a control.
#[derive(Debug, Error)]
pub enum ControlClientError {
    /// Nothing listens there, or it ended before its reply.
    #[error(
        "{address}: {source}; is `posthaste net --control` running there? Inside, use the address in POSTHASTE_CONTROL"
    )]
    Unreachable {
        /// The control.
        address: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The reply is not that of a control.
    #[error(
        "{address}: not the reply of a control: {reply:?}; is `posthaste net --control` running there?"
    )]
    Unreadable {
        /// The control.
        address: String,
        /// Its reply.
        reply: String,
    },
    /// The change was refused.
    #[error("{0}")]
    Refused(String),
    /// The run has ended, or has too many clients.
    #[error("{0}")]
    Unavailable(String),
}

/// Requests a change. Returns it with its time.
pub fn send_change(
    address: &ControlAddress,
    change: &Change,
) -> Result<AppliedChangeDocument, ControlClientError> {
    let body = change.to_string();
    let request = format!(
        "PATCH / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = exchange(address, request.as_bytes());
    let reply = reply.map_err(|source| ControlClientError::Unreachable {
        address: address.to_string(),
        source,
    })?;
    let unreadable = || ControlClientError::Unreadable {
        address: address.to_string(),
        reply: String::from_utf8_lossy(&reply).into_owned(),
    };
    let (status, body) = read(&reply).ok_or_else(unreadable)?;
    match status {
        200 => serde_json::from_slice(body).map_err(|_| unreadable()),
        503 => Err(ControlClientError::Unavailable(message(body))),
        400 | 413 => Err(ControlClientError::Refused(message(body))),
        // A control rejects nothing else of this request.
        _ => Err(unreadable()),
    }
}

fn exchange(address: &ControlAddress, request: &[u8]) -> io::Result<Vec<u8>> {
    match address {
        ControlAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            send(stream, request)
        }
        ControlAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            send(stream, request)
        }
    }
}

fn send(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(request)?;
    let mut reply = Vec::new();
    stream.take(REPLY_LIMIT).read_to_end(&mut reply)?;
    Ok(reply)
}

fn message(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim_end().to_owned()
}

/// Status and body of a complete reply.
fn read(reply: &[u8]) -> Option<(u16, &[u8])> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(reply).ok()? else {
        return None;
    };
    Some((head.code?, &reply[length..]))
}
