//! Checks of received messages: framing, heads, and the reasons of connections that cannot be read.
//!
//! | part | content |
//! |---|---|
//! | [`RequestFraming`] | the framing of requests on an HTTP/1 connection (RFC 9112, sections 2, 6 and 7), byte by byte |
//! | [`Frames`] | its counterpart for HTTP/2 |
//! | `check` | the parsed head of any version |
//! | `unreadable` | the reasons for which a connection ended |
//!
//! A [`RequestFraming`] gets every byte from a client, in any segmentation, and returns the number of bytes that the
//! parser may read. It stores only its position: the end of a head, and the length of a body. It rejects messages that
//! parsers interpret differently, and messages with unbounded work. Names, values and request lines are left to the
//! parser. It has no socket, no clock and no allocation.

pub(crate) mod check;
mod chunks;
mod frames;
mod head;
mod hpack;
mod resets;
pub(crate) mod unreadable;

use std::error::Error;
use std::fmt;
use std::num::NonZeroU64;

use self::chunks::{ChunkStep, Chunks};
use self::head::{BodyFraming, Head};

pub use self::frames::Frames;
pub use self::resets::{Reset, Resets};

/// The framing of one connection's requests.
#[derive(Debug, Default)]
pub struct RequestFraming {
    state: FramingState,
    head: Head,
    heads: u64,
}

/// Reasons for rejecting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// 400: more than one Content-Length, or one that is not a number.
    Length,
    /// 400: both fields that define the end of the body.
    Both,
    /// 501: a Transfer-Encoding other than one `chunked`.
    Coding,
    /// 400: a target with a fragment, which some parsers cut off.
    Target,
    /// 400: the size line of a chunk is too long or invalid.
    Size,
    /// 400: a chunk does not end with CRLF.
    End,
    /// 400: the lines after the last chunk are invalid or too long.
    Trailer,
}

impl Cause {
    /// True if the error is in the head, not in the body.
    pub const fn is_of_head(self) -> bool {
        matches!(
            self,
            Self::Length | Self::Both | Self::Coding | Self::Target
        )
    }

    /// The requirement that the request violates.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Length => "a request has one Content-Length, a number",
            Self::Both => "a request has a Content-Length or a Transfer-Encoding, not both",
            Self::Coding => "the only transfer coding served here is one chunked",
            Self::Target => "a target has no fragment",
            Self::Size => {
                "a chunk begins with a line of its size, 1 to 16 hexadecimal digits, 1024 bytes in all at most, and CRLF"
            }
            Self::End => "a chunk ends with CRLF",
            Self::Trailer => {
                "trailer fields are lines that end with CRLF, of 16 KiB in all at most"
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Error for Cause {}

/// A rejection with the number of accepted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingError {
    /// Bytes at the front that may be read. They include a rejected head.
    pub accepted: usize,
    /// The error after these bytes, or in the head at their end.
    pub cause: Cause,
}

#[derive(Debug, Default)]
enum FramingState {
    /// In a head, or before one.
    #[default]
    Head,
    /// In a body with this number of bytes remaining.
    Length(NonZeroU64),
    /// In a body of chunks.
    Chunks(Chunks),
    /// After a rejection. Nothing more is accepted.
    Rejected(Cause),
}

impl RequestFraming {
    /// Processes the next bytes. After a rejection every call fails and accepts nothing.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), FramingError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = match &mut self.state {
                FramingState::Head => match self.head.feed(rest) {
                    Some((used, body)) => {
                        self.heads += 1;
                        let behind = &rest[used..];
                        let body = body.map_err(|cause| self.reject(bytes, behind, cause))?;
                        self.state = FramingState::for_body(body);
                        behind
                    }
                    None => return Ok(()),
                },
                FramingState::Length(left) => {
                    let used =
                        usize::try_from(left.get()).map_or(rest.len(), |left| left.min(rest.len()));
                    match NonZeroU64::new(left.get() - used as u64) {
                        Some(more) => *left = more,
                        None => self.state = FramingState::Head,
                    }
                    &rest[used..]
                }
                FramingState::Chunks(chunks) => {
                    let (used, step) = chunks.feed(rest);
                    let behind = &rest[used..];
                    match step {
                        ChunkStep::More => {}
                        ChunkStep::Over => self.state = FramingState::Head,
                        ChunkStep::Reject(cause) => return Err(self.reject(bytes, behind, cause)),
                    }
                    behind
                }
                FramingState::Rejected(cause) => {
                    let (accepted, cause) = (bytes.len() - rest.len(), *cause);
                    return Err(FramingError { accepted, cause });
                }
            };
        }
        Ok(())
    }

    /// Number of complete heads, including a rejected one.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// True if the end of a body has not arrived yet.
    pub fn is_in_body(&self) -> bool {
        matches!(
            self.state,
            FramingState::Length(_) | FramingState::Chunks(_)
        )
    }

    fn reject(&mut self, bytes: &[u8], behind: &[u8], cause: Cause) -> FramingError {
        debug_assert!(behind.len() <= bytes.len(), "no byte is accepted twice");
        self.state = FramingState::Rejected(cause);
        let accepted = bytes.len() - behind.len();
        FramingError { accepted, cause }
    }
}

impl FramingState {
    fn for_body(body: BodyFraming) -> Self {
        match body {
            BodyFraming::Chunks => Self::Chunks(Chunks::default()),
            BodyFraming::Length(length) => NonZeroU64::new(length).map_or(Self::Head, Self::Length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The accepted bytes of `text`, its heads and the rejection, equal for whole and byte-by-byte input.
    fn fed(text: &[u8]) -> (usize, u64, Option<Cause>) {
        let take = |piece: usize| {
            let mut framing = RequestFraming::default();
            let mut accepted = 0;
            for piece in text.chunks(piece) {
                match framing.feed(piece) {
                    Ok(()) => accepted += piece.len(),
                    Err(error) => {
                        let again = framing.feed(b"x").unwrap_err();
                        assert_eq!((again.accepted, again.cause), (0, error.cause));
                        let accepted = accepted + error.accepted;
                        return (accepted, framing.heads(), Some(error.cause));
                    }
                }
            }
            (accepted, framing.heads(), None)
        };
        let whole = take(text.len());
        for piece in [1, 2, 3, 7, 64] {
            assert_eq!(
                take(piece),
                whole,
                "{piece}: {:?}",
                String::from_utf8_lossy(text)
            );
        }
        whole
    }

    fn head(fields: &str) -> String {
        format!("POST / HTTP/1.1\r\nHost: s\r\n{fields}\r\n\r\n")
    }

    #[test]
    fn messages_follow_one_another() {
        for (fields, body) in [
            ("X: y", ""),
            ("Content-Length: 0", ""),
            ("Content-Length: 005", "hello"),
            ("content-LENGTH:\t5 \t", "GET /"),
            (
                "Content-Lengthy: 5\r\nContent-Lengt: 5\r\nTransfer-Encodings: x",
                "",
            ),
            ("Transfer-Encoding: chunked", "0\r\n\r\n"),
            (
                "transfer-encoding:Chunked ",
                "5\r\nhello\r\n1;a=b\r\nx\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: chunked",
                "0000000000000005\r\nhello\r\n00 ;x\r\nA: b\r\nC:\td\r\n\r\n",
            ),
        ] {
            let text = format!("\r\n\n{}{body}", head(fields)).repeat(3);
            assert_eq!(fed(text.as_bytes()), (text.len(), 3, None), "{fields}");
        }
        let method = format!("{}# / HTTP/1.1\r\nHost: s\r\n\r\n", "y".repeat(100)).repeat(2);
        assert_eq!(fed(method.as_bytes()), (method.len(), 2, None));
        let bare = "GET / HTTP/1.0\nContent-Length: 2\n\nokGET / HTTP/1.0\n\n";
        assert_eq!(fed(bare.as_bytes()), (bare.len(), 2, None));
    }

    #[test]
    fn heads_that_leave_the_length_in_doubt_are_refused_whole() {
        for (fields, cause) in [
            ("Content-Length: 5\r\nContent-Length: 6", Cause::Length),
            ("Content-Length: 5\r\ncontent-length: 5", Cause::Length),
            ("Content-Length: 5, 5", Cause::Length),
            ("Content-Length: +5", Cause::Length),
            ("Content-Length:", Cause::Length),
            ("Content-Length: 18446744073709551616", Cause::Length),
            ("Content-Length: 18446744073709551614", Cause::Length),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked",
                Cause::Both,
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6",
                Cause::Both,
            ),
            ("Transfer-Encoding: chunked, chunked", Cause::Coding),
            ("Transfer-Encoding: x, chunked", Cause::Coding),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                Cause::Coding,
            ),
            ("Transfer-Encoding:", Cause::Coding),
        ] {
            let head = head(fields);
            let text = format!("{head}0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
            assert_eq!(
                fed(text.as_bytes()),
                (head.len(), 1, Some(cause)),
                "{fields}"
            );
        }
        let target = format!("GET /{}#x HTTP/1.1\r\nHost: s\r\n\r\n", "y".repeat(100));
        assert_eq!(
            fed(target.as_bytes()),
            (target.len(), 1, Some(Cause::Target))
        );
        let method = format!("{}# /#x HTTP/1.1\r\nHost: s\r\n\r\n", "y".repeat(100));
        assert_eq!(fed(method.as_bytes()).2, Some(Cause::Target));
        let long = head(&format!("Transfer-Encoding:{}chunked", " ".repeat(4000)));
        assert_eq!(fed(long.as_bytes()).2, Some(Cause::Coding));
        let long = head(&format!("X-Content-Length:{}5", " ".repeat(4000)));
        assert_eq!(fed(long.as_bytes()), (long.len(), 1, None));
    }

    #[test]
    fn chunks_are_refused_at_the_byte_that_breaks_them() {
        let head = head("Transfer-Encoding: chunked");
        let long = format!("5;{}", "x".repeat(chunks::MAX_SIZE_LINE));
        let trailer = format!("0\r\nA: {}", "x".repeat(chunks::MAX_TRAILER));
        for (body, at, cause) in [
            ("00000000000000000", 16, Cause::Size),
            (long.as_str(), chunks::MAX_SIZE_LINE, Cause::Size),
            ("\r\n", 0, Cause::Size),
            (" 5\r\n", 0, Cause::Size),
            ("0x5\r\n", 1, Cause::Size),
            ("5 5\r\n", 2, Cause::Size),
            ("5\nhello", 1, Cause::Size),
            ("5;a\nb", 3, Cause::Size),
            ("5;a\rb", 4, Cause::Size),
            ("5;a\0b", 3, Cause::Size),
            ("5\r\nhello!", 8, Cause::End),
            ("5\r\nhello\n", 8, Cause::End),
            ("5\r\nhello\r\r", 9, Cause::End),
            ("0\r\n\n", 3, Cause::Trailer),
            ("0\r\nA: b\nGET / HTTP/1.1\r\n\r\n", 7, Cause::Trailer),
            ("0\r\nA: b\rc", 8, Cause::Trailer),
            ("0\r\nA: b\r\n\n", 9, Cause::Trailer),
            ("0\r\n: b\r\n", 3, Cause::Trailer),
            ("0\r\n a: b\r\n", 3, Cause::Trailer),
            ("0\r\n\rx", 4, Cause::Trailer),
            (trailer.as_str(), 3 + chunks::MAX_TRAILER, Cause::Trailer),
        ] {
            let text = format!("{head}{body}");
            assert_eq!(
                fed(text.as_bytes()),
                (head.len() + at, 1, Some(cause)),
                "{body:?}"
            );
        }
    }

    #[test]
    fn it_knows_where_it_is() {
        let mut framing = RequestFraming::default();
        for (piece, is_in_body) in [
            ("\r\n", false),
            ("GET / HTTP/1.1\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", true),
            ("o", true),
            ("k", false),
        ] {
            framing.feed(piece.as_bytes()).unwrap();
            assert_eq!(framing.is_in_body(), is_in_body, "{piece:?}");
        }
    }
}
