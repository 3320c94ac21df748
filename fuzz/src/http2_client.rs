//! The frames of an HTTP/2 server: cuts change nothing, streams add up, and nothing is sent on a stream after its end.

use std::sync::Arc;

use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http2::frame::{FrameHead, HEAD_LENGTH, PREFACE, flag, kind};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::http2::{ConnectionError, Http2StreamClient};
use posthaste_http::streams::{ConnectionEvent, EventSink, StreamEnd, StreamRequest};

use crate::cuts::Cut;
use crate::within;

/// Streams that are open at first: without a body, with one, and for HEAD.
const STREAMS: u32 = 3;

/// Bytes of the body that the second stream sends as its windows open.
const BODY: usize = 200 << 10;

/// Memory of a connection without input: the table, the buffers for one frame and for the body.
const CONNECTION: usize = 2 << 20;

/// Everything that was reported, as text. Pieces of content are joined.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    events: Vec<String>,
    content: Vec<(u32, usize)>,
    pub(crate) ended: Vec<u32>,
}

impl Report {
    fn add(&mut self, token: u32, text: String) {
        assert!(
            !self.ended.contains(&token),
            "{token} has ended before {text}"
        );
        self.events.push(text);
    }
}

impl EventSink for Report {
    fn interim(&mut self, token: u32, status: u16) {
        assert!((100..200).contains(&status) && status != 101);
        self.add(token, format!("{token} {status}"));
    }

    fn head(&mut self, token: u32, status: u16) {
        assert!((200..1000).contains(&status));
        self.add(token, format!("{token} {status}"));
    }

    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        check(name, value);
        self.add(token, format!("{token} {name:?}: {} bytes", value.len()));
    }

    fn body(&mut self, token: u32, bytes: &[u8]) {
        assert!(!self.ended.contains(&token) && !bytes.is_empty());
        match self.content.last_mut() {
            Some((last, length)) if *last == token => *length += bytes.len(),
            _ => self.content.push((token, bytes.len())),
        }
    }

    fn trailer(&mut self, token: u32, name: &[u8], value: &[u8]) {
        check(name, value);
        self.add(
            token,
            format!("{token} trailer {name:?}: {} bytes", value.len()),
        );
    }

    fn end(&mut self, token: u32, end: StreamEnd) {
        self.add(token, format!("{token} {end:?}"));
        self.ended.push(token);
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.events.push(format!("{event:?}"));
    }
}

/// A field that is passed on is valid.
fn check(name: &[u8], value: &[u8]) {
    assert!(!name.is_empty() && !name.starts_with(b":"));
    assert!(!name.iter().any(u8::is_ascii_uppercase));
    assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
}

/// A server's frames after its SETTINGS, cut anywhere.
pub fn http2_client(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let stream = cut.stream;
    // Events are text, and one byte can name a field of 4 kB.
    let whole = within("Client", stream.len(), 4 << 10, CONNECTION, || {
        connection(&mut std::iter::once(stream))
    });
    let pieces = connection(&mut cut.pieces());
    let bytes = connection(&mut stream.chunks(1));
    assert!(whole == pieces, "cuts change nothing");
    assert!(whole == bytes, "cuts change nothing");
}

/// Runs a connection. Returns the events and the error.
fn connection(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Report, Option<ConnectionError>) {
    let mut catalogue = FieldCatalogue::default();
    let field = catalogue.constant(b":method", b"POST").expect("valid");
    let path = catalogue.constant(b":path", b"/any").expect("valid");
    let fields = [RequestField::Constant(field), RequestField::Constant(path)];
    let mut client = Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
    let mut report = Report::default();
    let settings = frame_head(kind::SETTINGS);
    client.receive(&settings, &mut report).expect("valid");
    for token in 0..STREAMS {
        let request = StreamRequest {
            fields: &fields,
            has_body: token == 1,
            is_head: token == 2,
        };
        client.open(token, &request).expect("a free stream");
    }
    let mut sent = client.output().to_vec();
    client.sent(sent.len());
    let mut results = pieces.map(|piece| client.receive(piece, &mut report));
    let error = results.find_map(Result::err);
    drop(results);
    if error.is_none() {
        send_body(&mut client);
    }
    sent.extend_from_slice(client.output());
    check_output(&sent);
    let counters = client.counters();
    let open = client.open_streams() as u64;
    assert_eq!(counters.opened, u64::from(STREAMS));
    assert_eq!(counters.opened, counters.ended + open);
    assert_eq!(counters.ended, report.ended.len() as u64);
    assert_eq!(counters.windows_exhausted, 0);
    (report, error)
}

/// Sends the body of the second stream, as far as the windows permit.
fn send_body(client: &mut Http2StreamClient) {
    let body = vec![0; BODY];
    let stream = client.open_tokens().find(|(_, token)| *token == 1);
    let Some((stream, _)) = stream else { return };
    let mut taken = client.send_body(stream, &body, true);
    while let Some((next, token)) = client.next_writable() {
        assert!((next, token) == (stream, 1) && taken < BODY);
        taken += client.send_body(stream, &body[taken..], true);
    }
}

fn frame_head(kind: u8) -> [u8; HEAD_LENGTH] {
    let head = FrameHead {
        length: 0,
        kind,
        flags: 0,
        stream: 0,
    };
    head.bytes()
}

/// Whole frames, one reset per stream at most, and no content after the end.
fn check_output(sent: &[u8]) {
    let mut rest = sent.strip_prefix(PREFACE).expect("the preface");
    let (mut reset, mut ended) = (Vec::new(), Vec::<u32>::new());
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk().expect("a whole frame header");
        let head = FrameHead::parse(head);
        rest = after.get(head.length as usize..).expect("a whole frame");
        match head.kind {
            kind::RST_STREAM => {
                assert!(!reset.contains(&head.stream), "one reset per stream");
                reset.push(head.stream);
            }
            kind::DATA => {
                assert!(!reset.contains(&head.stream) && !ended.contains(&head.stream));
            }
            _ => {}
        }
        if matches!(head.kind, kind::DATA | kind::HEADERS) && head.has(flag::END_STREAM) {
            ended.push(head.stream);
        }
    }
}
