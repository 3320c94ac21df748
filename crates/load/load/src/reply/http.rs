//! Incremental parser of HTTP/1 replies, for input in pieces of any size.
//!
//! httparse reads heads and chunk sizes. This file keeps the position between two reads, enforces the limits, and
//! rejects invalid replies. It does not use sockets: bytes in, progress and a [`HttpReply`] out.

mod framing;
mod violation;

use std::mem::MaybeUninit;

use crate::reply::HttpReply;
use framing::FramingFields;
pub use violation::Violation;

/// Maximum size of a head in bytes. The same as curl's.
const HEAD_LIMIT: usize = 300 * 1024;
/// Maximum number of header fields.
const FIELDS_LIMIT: usize = 1_024;
/// Maximum length of a chunk-size line or trailer line in bytes.
const LINE_LIMIT: usize = 4 * 1024;
/// Maximum length of all trailer lines together in bytes.
const TRAILER_LIMIT: usize = 64 * 1024;

/// Progress of reading a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyProgress {
    /// More bytes are needed.
    Partial,
    /// The reply is complete.
    Complete {
        /// Bytes of the fed slice that belong to this reply.
        used: usize,
    },
}

/// The state of reading one reply. [`ReplyReader::begin`] prepares it for the next.
#[derive(Debug, Default)]
pub struct ReplyReader {
    stage: ReaderStage,
    head_request: bool,
    held: Vec<u8>,
    keep_alive: bool,
}

#[derive(Debug, Default)]
enum ReaderStage {
    #[default]
    Head,
    Length(u64),
    UntilClose,
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer(usize),
}

enum ReplyFraming {
    Interim,
    Empty,
    Body(ReaderStage),
}

impl ReplyReader {
    /// Prepares for a reply to a request. `head_request` states that the method is HEAD.
    pub fn begin(&mut self, head_request: bool) {
        self.stage = ReaderStage::Head;
        self.head_request = head_request;
        self.held.clear();
    }

    /// True if the server will answer another request on this connection.
    pub const fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Parses the next bytes of the connection, which belong to `reply`.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        reply: &mut HttpReply,
    ) -> Result<ReplyProgress, Violation> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let step = match &mut self.stage {
                ReaderStage::Head => self.head(rest, reply)?,
                ReaderStage::Length(left) => {
                    let used = take_up_to(left, rest);
                    let done = *left == 0;
                    reply.body(&rest[..used])?;
                    StageResult {
                        used,
                        done,
                        waits: !done,
                    }
                }
                ReaderStage::UntilClose => {
                    reply.body(rest)?;
                    StageResult::all(rest)
                }
                _ => self.chunked(rest, reply)?,
            };
            used += step.used;
            debug_assert!(used <= bytes.len(), "more bytes are used than there are");
            if step.done {
                return Ok(ReplyProgress::Complete { used });
            }
            if step.waits {
                return Ok(ReplyProgress::Partial);
            }
        }
    }

    /// Handles the end of the connection. An error if the reply is incomplete.
    pub fn closed(&mut self) -> Result<(), Violation> {
        match self.stage {
            ReaderStage::UntilClose => Ok(()),
            _ => Err(Violation::Short),
        }
    }

    /// Reads the head: from `rest` if complete, otherwise from the held bytes and `rest`.
    fn head(&mut self, rest: &[u8], reply: &mut HttpReply) -> Result<StageResult, Violation> {
        if rest.is_empty() {
            return Ok(StageResult::all(rest));
        }
        let before = self.held.len();
        let mut held = std::mem::take(&mut self.held);
        let joined = if before == 0 {
            rest
        } else {
            held.extend_from_slice(rest);
            &held
        };
        match self.parse_head(joined, reply)? {
            // The same limit applies if all of it came at once.
            Some((length, _)) if length > HEAD_LIMIT => Err(Violation::HeadTooLong),
            Some((length, framing)) => {
                debug_assert!(length > before, "the head was complete before");
                let done = matches!(framing, ReplyFraming::Empty);
                if let ReplyFraming::Body(stage) = framing {
                    self.stage = stage;
                }
                Ok(StageResult {
                    used: length - before,
                    done,
                    waits: false,
                })
            }
            None if joined.len() > HEAD_LIMIT => Err(Violation::HeadTooLong),
            None => {
                if before == 0 {
                    held.extend_from_slice(rest);
                }
                self.held = held;
                Ok(StageResult::all(rest))
            }
        }
    }

    fn parse_head(
        &mut self,
        bytes: &[u8],
        reply: &mut HttpReply,
    ) -> Result<Option<(usize, ReplyFraming)>, Violation> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_LIMIT];
        let mut head = httparse::Response::new(&mut []);
        let mut parser = httparse::ParserConfig::default();
        // A client has to accept folded lines (RFC 9112, section 5.2), and may accept several blanks in the status line
        // (section 4). Blanks before a colon are no part of the name (section 5.1).
        parser.allow_obsolete_multiline_headers_in_responses(true);
        parser.allow_multiple_spaces_in_response_status_delimiters(true);
        parser.allow_spaces_after_header_name_in_responses(true);
        let length = match parser.parse_response_with_uninit_headers(&mut head, bytes, &mut fields)
        {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Violation::HeadTooLong),
            Err(error) => return Err(Violation::Head(error.to_string())),
        };
        let status = head.code.expect("a complete head has a status");
        match status {
            101 => return Err(Violation::Switch),
            100..200 => return Ok(Some((length, ReplyFraming::Interim))),
            200..1000 => {}
            _ => return Err(Violation::Head("invalid status".to_owned())),
        }
        reply.begin(status);
        let fields = FramingFields::read(head.version == Some(1), head.headers, reply)?;
        self.keep_alive = fields.keep_alive;
        let bodiless = self.head_request || matches!(status, 204 | 304);
        let framing = match (fields.chunked, fields.length) {
            _ if bodiless => ReplyFraming::Empty,
            (true, Some(_)) => return Err(Violation::Length),
            (true, None) => ReplyFraming::Body(ReaderStage::ChunkSize),
            (false, Some(0)) => ReplyFraming::Empty,
            (false, Some(length)) => ReplyFraming::Body(ReaderStage::Length(length)),
            (false, None) => {
                self.keep_alive = false;
                ReplyFraming::Body(ReaderStage::UntilClose)
            }
        };
        Ok(Some((length, framing)))
    }

    fn chunked(&mut self, rest: &[u8], reply: &mut HttpReply) -> Result<StageResult, Violation> {
        if let ReaderStage::ChunkData(left) = &mut self.stage {
            let used = take_up_to(left, rest);
            if *left == 0 {
                self.stage = ReaderStage::ChunkEnd;
            }
            reply.body(&rest[..used])?;
            return Ok(StageResult {
                used,
                done: false,
                waits: used == rest.len(),
            });
        }
        let Some(end) = memchr::memchr(b'\n', rest) else {
            self.held.extend_from_slice(rest);
            if self.held.len() > LINE_LIMIT {
                return Err(Violation::Chunked("endless line"));
            }
            return Ok(StageResult::all(rest));
        };
        debug_assert!(
            self.held.len() <= LINE_LIMIT,
            "a line is held beyond its limit"
        );
        let mut line = std::mem::take(&mut self.held);
        line.extend_from_slice(&rest[..=end]);
        if line.len() > LINE_LIMIT {
            return Err(Violation::Chunked("endless line"));
        }
        // LF alone ends a line, as in the head.
        if !line.ends_with(b"\r\n") {
            line.insert(line.len() - 1, b'\r');
        }
        let done = self.chunk_line(&line)?;
        line.clear();
        self.held = line;
        Ok(StageResult {
            used: end + 1,
            done,
            waits: false,
        })
    }

    /// Handles one whole line of chunked framing, which ends with CRLF. Returns true for the last line of the body.
    fn chunk_line(&mut self, line: &[u8]) -> Result<bool, Violation> {
        match self.stage {
            ReaderStage::ChunkSize => {
                // httparse accepts a line without a digit as a size of 0.
                let size = match httparse::parse_chunk_size(line) {
                    Ok(httparse::Status::Complete((_, size))) if line[0].is_ascii_hexdigit() => {
                        size
                    }
                    _ => return Err(Violation::Chunked("invalid chunk size")),
                };
                self.stage = match size {
                    0 => ReaderStage::Trailer(0),
                    size => ReaderStage::ChunkData(size),
                };
                Ok(false)
            }
            ReaderStage::Trailer(before) => {
                let total = before + line.len();
                if total > TRAILER_LIMIT {
                    return Err(Violation::Chunked("endless trailers"));
                }
                self.stage = ReaderStage::Trailer(total);
                Ok(line == b"\r\n")
            }
            _ if line == b"\r\n" => {
                self.stage = ReaderStage::ChunkSize;
                Ok(false)
            }
            _ => Err(Violation::Chunked("chunk longer than its size")),
        }
    }
}

/// Result of one stage: the bytes used, and its end.
struct StageResult {
    used: usize,
    done: bool,
    waits: bool,
}

impl StageResult {
    const fn all(rest: &[u8]) -> Self {
        Self {
            used: rest.len(),
            done: false,
            waits: true,
        }
    }
}

/// Returns the number of bytes of `rest` that belong to a part with `left` bytes, and subtracts them.
fn take_up_to(left: &mut u64, rest: &[u8]) -> usize {
    let used = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
    *left -= used as u64;
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Content;
    use posthaste_compression::Coding;
    use proptest::prelude::*;

    /// A complete reply.
    #[derive(Debug)]
    struct ReadReply {
        reply: HttpReply,
        keep_alive: bool,
    }

    /// Feeds `wire` cut at `cuts`. Returns the reply and the number of bytes left over.
    fn read(wire: &[u8], cuts: &[usize], head: bool) -> Result<(ReadReply, usize), Violation> {
        let (mut reader, mut reply) = (ReplyReader::default(), HttpReply::default());
        reader.begin(head);
        let mut at = 0;
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
        ends.sort_unstable();
        ends.push(wire.len());
        for end in ends {
            if let ReplyProgress::Complete { used } = reader.feed(&wire[at..end], &mut reply)? {
                return Ok((read_reply(&reader, reply), wire.len() - at - used));
            }
            at = end;
        }
        reader.closed().map(|()| (read_reply(&reader, reply), 0))
    }

    fn read_reply(reader: &ReplyReader, reply: HttpReply) -> ReadReply {
        ReadReply {
            reply,
            keep_alive: reader.keep_alive(),
        }
    }

    const PLAIN: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/xml\r\n\r\n<a/>\n";
    const CHUNKED: &[u8] = b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\nContent-Type: \
        application/soap+xml\r\n\r\n3;x=y\r\n<a>\r\n4\r\n</a>\r\n0\r\nT: 1\r\n\r\n";

    #[test]
    fn lengths_chunks_and_closes() {
        let (plain, left) = read(PLAIN, &[], false).unwrap();
        assert_eq!(
            (plain.reply.status(), plain.keep_alive, left),
            (200, true, 0)
        );
        assert_eq!(plain.reply.xml_body(), Some(&b"<a/>\n"[..]));
        let (chunked, left) = read(CHUNKED, &[], false).unwrap();
        assert_eq!((chunked.reply.status(), left), (500, 0));
        assert_eq!(chunked.reply.xml_body(), Some(&b"<a></a>"[..]));
        let (until_close, _) = read(b"HTTP/1.0 200 OK\r\n\r\nall of it", &[], false).unwrap();
        assert!(!until_close.keep_alive);
    }

    #[test]
    fn blanks_and_line_ends_that_clients_accept() {
        let spaced = b"HTTP/1.1  204  None\r\n\r\n";
        assert_eq!(read(spaced, &[], false).unwrap().0.reply.status(), 204);
        let named = b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok";
        assert_eq!(read(named, &[], false).unwrap().1, 0);
        let chunks = b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: text/xml\n\n\
            4;x\n<a/>\n0\nT: 1\n\n";
        let (chunked, left) = read(chunks, &[], false).unwrap();
        assert_eq!((chunked.reply.xml_body(), left), (Some(&b"<a/>"[..]), 0));
    }

    #[test]
    fn replies_without_a_body() {
        for wire in [
            &b"HTTP/1.1 204 No\r\n\r\n"[..],
            b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n",
        ] {
            assert_eq!(read(wire, &[], false).unwrap().1, 0);
        }
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
        assert_eq!(read(head, &[], true).unwrap().1, 0);
        let interim = [&b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"[..], PLAIN].concat();
        assert_eq!(read(&interim, &[], false).unwrap().0.reply.status(), 200);
    }

    #[test]
    fn fields_in_unusual_spelling_mean_the_same() {
        let with = |fields: &str| {
            let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
            read(wire.as_bytes(), &[], false).unwrap().0
        };
        assert!(with("Connection: x, Keep-Alive\r\n").keep_alive);
        assert!(!with("Connection: close\r\nConnection: keep-alive\r\n").keep_alive);
        assert!(!with("connection: keep-alive, Close\r\n").keep_alive);
        assert!(with("X-Folded: a\r\n b\r\n").keep_alive);
        assert!(!with("Connection : close\r\n").keep_alive);
        let coded = with("CONTENT-TYPE: Text/XML\r\ncontent-encoding: x-gzip\r\n");
        assert_eq!(coded.reply.xml_body(), Some(&b""[..]));
        let content = |fields: &str| with(fields).reply.content().clone();
        let unknown = |text: &str| Content::Unknown(text.to_owned());
        for (value, meant) in [
            ("X-GZIP", Content::Coded(Coding::Gzip)),
            (" br ", Content::Coded(Coding::Brotli)),
            ("identity", Content::Plain),
            ("", Content::Plain),
            ("gzip, br", unknown("gzip, br")),
            ("deflate", unknown("deflate")),
            ("gzip\r\nContent-Encoding: br", unknown("several fields")),
        ] {
            assert_eq!(content(&format!("Content-Encoding: {value}\r\n")), meant);
        }
    }

    #[test]
    fn quote_and_present_offer_of_a_reply_are_kept_until_the_next() {
        let (mut reader, mut reply) = (ReplyReader::default(), HttpReply::default());
        let mut quote = |fields: &str| {
            reader.begin(false);
            let wire = format!("HTTP/1.1 204 OK\r\n{fields}\r\n");
            reader.feed(wire.as_bytes(), &mut reply).unwrap();
            reply.quote().map(<[u8]>::to_vec)
        };
        let long = |length| "x".repeat(length);
        assert_eq!(quote("qUOTE: a;rate=5\r\n"), Some(b"a;rate=5".to_vec()));
        assert_eq!(quote("Quota: a\r\n"), None);
        let kept = quote(&format!("Quote: {}\r\n", long(1024)));
        assert_eq!(kept, Some(long(1024).into_bytes()));
        let kept = quote(&format!("Quote: {}\r\n", long(1025)));
        assert_eq!(kept, Some(Vec::new()));
        let mut offer = |fields: &str| {
            reader.begin(false);
            let wire = format!("HTTP/1.1 204 OK\r\n{fields}\r\n");
            reader.feed(wire.as_bytes(), &mut reply).unwrap();
            reply.offer().map(<[u8]>::to_vec)
        };
        assert_eq!(
            offer("current-Offer: a;price=\"1 EUR\"\r\n"),
            Some(b"a;price=\"1 EUR\"".to_vec())
        );
        assert_eq!(offer("Current-Order: a\r\n"), None);
    }

    #[test]
    fn surplus_is_seen() {
        let longer = [PLAIN, b"more"].concat();
        assert_eq!(read(&longer, &[], false).unwrap().1, 4);
    }

    #[test]
    fn lies_and_garbage_are_named() {
        let refused = |wire: &[u8]| read(wire, &[], false).unwrap_err();
        assert!(matches!(
            refused(b"\x16\x03\x01\x02\x00garbage"),
            Violation::Head(_)
        ));
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
            Violation::Short
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            Violation::Length
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            Violation::Length
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Violation::Length
        );
        assert_eq!(refused(b"HTTP/1.1 101 Up\r\n\r\n"), Violation::Switch);
        let chunks = |body: &str| {
            refused(
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").as_bytes(),
            )
        };
        assert!(matches!(chunks("zz\r\n"), Violation::Chunked(_)));
        assert!(matches!(chunks("\r\n\r\n"), Violation::Chunked(_)));
        assert!(matches!(chunks("2\r\nabc\r\n"), Violation::Chunked(_)));
        assert!(matches!(
            chunks("fffffffffffffffff\r\n"),
            Violation::Chunked(_)
        ));
        assert_eq!(chunks("5\r\nab"), Violation::Short);
        assert!(matches!(chunks(&"1".repeat(9000)), Violation::Chunked(_)));
    }

    #[test]
    fn an_endless_head_ends() {
        let (mut reader, mut reply) = (ReplyReader::default(), HttpReply::default());
        reader.begin(false);
        reader.feed(b"HTTP/1.1 200 OK\r\nX: ", &mut reply).unwrap();
        let fed = (0..400)
            .map(|_| reader.feed(&[b'a'; 1024], &mut reply))
            .find(Result::is_err);
        assert_eq!(fed, Some(Err(Violation::HeadTooLong)));
        let whole = format!("HTTP/1.1 204 OK\r\nX: {}\r\n\r\n", "a".repeat(HEAD_LIMIT));
        for cuts in [&[][..], &[HEAD_LIMIT + 10], &[9, 40_000]] {
            let outcome = read(whole.as_bytes(), cuts, false).map(drop);
            assert_eq!(outcome, Err(Violation::HeadTooLong), "cut at {cuts:?}");
        }
        let many = format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "A: b\r\n".repeat(FIELDS_LIMIT + 1)
        );
        assert_eq!(
            read(many.as_bytes(), &[], false).unwrap_err(),
            Violation::HeadTooLong
        );
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(cuts in proptest::collection::vec(0usize..400, 0..12)) {
            let lines = CHUNKED.strip_suffix(b"\r\n").expect("it ends with a line");
            let lines = [lines, b"\n"].concat();
            for wire in [PLAIN, CHUNKED, &lines] {
                let (whole, _) = read(wire, &[], false).unwrap();
                let (cut, left) = read(wire, &cuts, false).unwrap();
                prop_assert_eq!(left, 0);
                prop_assert_eq!(whole.reply.xml_body(), cut.reply.xml_body());
                prop_assert_eq!(whole.reply.status(), cut.reply.status());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, cuts in proptest::collection::vec(0usize..400, 0..6)) {
            let _ = read(&bytes, &cuts, false);
            let _ = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat(), &cuts, false);
        }
    }
}
