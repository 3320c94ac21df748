//! A server that hands over every request as it arrives, over HTTP/1.1 or HTTP/2, and answers 204.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use posthaste_http::streams::http2::frame::{PREFACE, flag, kind};
use posthaste_http::streams::http2::hpack::BlockDecoder;

use super::frames::{self, WireFrame, read_frame, write_frame};
use super::message::{Message, Protocol, parse};
use crate::error::{Outcome, TaskError};

/// Time limit for a request to arrive behind its reply.
const PATIENCE: Duration = Duration::from_secs(5);

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const REPLY: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// `:status: 100` as a literal with an indexed name.
const CONTINUE_BLOCK: &[u8] = &[0x08, 3, b'1', b'0', b'0'];

/// `:status: 204` by its index in the static table (RFC 7541, appendix A).
const REPLY_BLOCK: &[u8] = &[0x89];

/// A server that records requests.
pub(super) struct RawOrigin {
    pub(super) address: SocketAddr,
    received: Receiver<Message>,
}

impl RawOrigin {
    pub(super) fn start(protocol: Protocol) -> Outcome<Self> {
        let failed = |error| TaskError::Failed(format!("the origin does not listen: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, received) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                // A connection ends with its proxy. A broken request is missing, which is an error of its form.
                std::thread::spawn(move || match protocol {
                    Protocol::Http1 => serve_http1(stream, &sender),
                    Protocol::Http2 => serve_http2(stream, &sender),
                });
            }
        });
        Ok(Self { address, received })
    }

    /// The only request since the last call.
    pub(super) fn take(&self) -> Result<Message, String> {
        let first = self.received.recv_timeout(PATIENCE);
        let first = first.map_err(|_| "no request arrives".to_owned())?;
        match self.received.try_iter().count() {
            0 => Ok(first),
            more => Err(format!("{more} more requests arrive")),
        }
    }

    /// Forgets what has arrived.
    pub(super) fn clear(&self) {
        self.received.try_iter().for_each(drop);
    }
}

fn serve_http1(mut stream: TcpStream, received: &Sender<Message>) -> io::Result<()> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 16_384]);
    let mut is_asked = false;
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..length]);
        if !is_asked && expects_continue(&bytes) {
            is_asked = true;
            stream.write_all(CONTINUE)?;
        }
        while let Some((message, length)) = parse(&bytes) {
            if message.http1_bytes() != bytes[..length] {
                return Err(io::Error::other("the record differs from its bytes"));
            }
            bytes.drain(..length);
            is_asked = false;
            received.send(message).map_err(io::Error::other)?;
            stream.write_all(REPLY)?;
        }
    }
}

/// True if `bytes` have a whole head that asks for 100 before the body.
fn expects_continue(bytes: &[u8]) -> bool {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| {
        let head = bytes[..end].to_ascii_lowercase();
        let field = b"\r\nexpect: 100-continue";
        head.windows(field.len()).any(|part| part == field)
    })
}

/// Serves requests that follow one another. Streams of one connection do not overlap, since forms do not.
fn serve_http2(mut stream: TcpStream, received: &Sender<Message>) -> io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface)?;
    write_frame(&mut stream, kind::SETTINGS, 0, 0, b"")?;
    let mut decoder = BlockDecoder::default();
    let mut block = Vec::new();
    let mut is_last = false;
    let mut request: Option<Message> = None;
    loop {
        let WireFrame { head, payload } = read_frame(&mut stream)?;
        match head.kind {
            kind::SETTINGS if !head.has(flag::ACK) => {
                write_frame(&mut stream, kind::SETTINGS, flag::ACK, 0, b"")?;
            }
            kind::PING if !head.has(flag::ACK) => {
                write_frame(&mut stream, kind::PING, flag::ACK, 0, &payload)?;
            }
            kind::HEADERS | kind::CONTINUATION => {
                block.extend_from_slice(&payload);
                is_last |= head.kind == kind::HEADERS && head.has(flag::END_STREAM);
                if !head.has(flag::END_HEADERS) {
                    continue;
                }
                let fields = frames::fields(&mut decoder, &std::mem::take(&mut block))?;
                match &mut request {
                    Some(request) => request.trailers = fields,
                    None => {
                        if fields.iter().any(|line| line.is("expect")) && !is_last {
                            let flags = flag::END_HEADERS;
                            let id = head.stream;
                            write_frame(&mut stream, kind::HEADERS, flags, id, CONTINUE_BLOCK)?;
                        }
                        request = Some(frames::request(fields));
                    }
                }
            }
            kind::DATA => {
                let request = request.as_mut();
                let request = request.ok_or_else(|| io::Error::other("content without a head"))?;
                request.content.extend_from_slice(&payload);
                is_last = head.has(flag::END_STREAM);
                if head.length > 0 {
                    // The window is given back for the connection only: no form fills that of its stream.
                    let bytes = head.length.to_be_bytes();
                    write_frame(&mut stream, kind::WINDOW_UPDATE, 0, 0, &bytes)?;
                }
            }
            _ => {}
        }
        if is_last && let Some(request) = request.take() {
            is_last = false;
            received.send(request).map_err(io::Error::other)?;
            let flags = flag::END_STREAM | flag::END_HEADERS;
            write_frame(&mut stream, kind::HEADERS, flags, head.stream, REPLY_BLOCK)?;
        }
    }
}
