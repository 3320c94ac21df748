//! The server's end: requests of our own client, hostile requests, and replies that the client reads.

use posthaste_http::streams::StreamEnd;
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::http3::server::{
    ClientStreams, RequestError, RequestHead, RequestPiece, RequestReader, append_content,
    append_goaway, append_head, append_trailers, opening,
};
use posthaste_http::streams::http3::{ErrorCode, StreamId};
use proptest::prelude::*;

use super::support::{CONTROL, ScriptedExchange, data, frame, goaway, headers, integer, settings};
use crate::streams::support::Event;

/// The client's control stream, and its streams of QPACK.
const CLIENT: [u64; 3] = [2, 6, 10];

/// The least request.
const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

/// A request as it was read.
#[derive(Debug, Default, PartialEq)]
struct ReceivedRequest {
    head: Option<RequestHead>,
    content: Vec<u8>,
    has_trailers: bool,
}

/// Reads a stream in pieces of `length` bytes.
fn read(bytes: &[u8], length: usize) -> Result<ReceivedRequest, RequestError> {
    let (mut reader, mut request) = (RequestReader::default(), ReceivedRequest::default());
    for mut piece in bytes.chunks(length) {
        while let Some(piece) = reader.next(&mut piece)? {
            match piece {
                RequestPiece::Head(head) => request.head = Some(head),
                RequestPiece::Content(content) => request.content.extend_from_slice(content),
                RequestPiece::Trailers => request.has_trailers = true,
            }
        }
    }
    reader.end()?;
    Ok(request)
}

fn with(fields: &[(&str, &str)]) -> Vec<u8> {
    headers(&[&GET, fields].concat())
}

/// Without the field at `position`, then with others.
fn without(position: usize, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut all = GET.to_vec();
    all.remove(position);
    all.extend_from_slice(fields);
    headers(&all)
}

fn pair<'a>(field: &(&'a str, &'a str)) -> (&'a [u8], &'a [u8]) {
    (field.0.as_bytes(), field.1.as_bytes())
}

#[test]
fn requests_and_replies_return() {
    let mut exchange = ScriptedExchange::before_settings();
    exchange.receive(CONTROL, &opening()).unwrap();
    let plain = exchange.open(1);
    let posted = exchange.open_as(2, true, false);
    let body = vec![7; 100_000];
    let mut taken = 0;
    while taken < body.len() {
        let stream = StreamId::new(posted);
        taken += exchange.client.send_body(stream, &body[taken..], true);
        exchange.flush();
    }
    exchange.flush();
    let control = &exchange.sent[&CLIENT[0]];
    let mut client = ClientStreams::default();
    client
        .receive(StreamId::new(CLIENT[0]), &control.bytes, false)
        .unwrap();
    assert!(client.has_settings());
    let first = read(&exchange.sent[&plain].bytes, usize::MAX).unwrap();
    let head = first.head.unwrap();
    assert_eq!(head.method, b"GET");
    assert_eq!(head.authority.as_deref(), Some(&b"a"[..]));
    assert_eq!((first.content.len(), first.has_trailers), (0, false));
    let second = read(&exchange.sent[&posted].bytes, 1_000).unwrap();
    assert_eq!(
        (second.head.unwrap().fields, second.content),
        (vec![], body)
    );

    let fields = [("content-type", "text/plain"), ("x-own", "ä b")];
    let mut reply = Vec::new();
    append_head(404, fields.iter().map(pair), &mut reply);
    append_content(5, &mut reply);
    reply.extend_from_slice(b"hello");
    append_trailers([("x-end", "1")].iter().map(pair), &mut reply);
    exchange.events.0.clear();
    for byte in &reply {
        exchange.receive(plain, &[*byte]).unwrap();
    }
    exchange.receive_last(plain, b"").unwrap();
    let field = |name: &str, value: &str| Event::Field(1, name.to_owned(), value.to_owned());
    let expected = [
        Event::Head(1, 404),
        field("content-type", "text/plain"),
        field("x-own", "ä b"),
        Event::HeadEnd(1),
        Event::Body(1, b"hello".to_vec()),
        Event::Trailer(1, "x-end".to_owned(), "1".to_owned()),
        Event::End(1, StreamEnd::Complete),
    ];
    assert_eq!(exchange.events.0, expected);
}

#[test]
fn goaway_rejects_later_requests() {
    let mut exchange = ScriptedExchange::new();
    let (first, _) = (exchange.open(1), exchange.open(2));
    let mut bytes = Vec::new();
    append_goaway(StreamId::new(first + 4), &mut bytes);
    exchange.receive(CONTROL, &bytes).unwrap();
    assert_eq!(exchange.client.open_streams(), 1);
    assert!(!exchange.client.is_usable());
}

/// Valid requests, some of them unusual.
#[test]
fn valid_requests_are_read() {
    let unknown = frame(0x21, b"x");
    let options = [GET[1], GET[2], (":method", "OPTIONS"), (":path", "*")];
    let long = "a".repeat(120);
    for (name, bytes) in [
        ("plain", with(&[])),
        (
            "unknown frames",
            [&unknown[..], &with(&[]), &unknown].concat(),
        ),
        ("host only", without(2, &[("host", "a")])),
        ("host and authority", with(&[("host", "a")])),
        ("te", with(&[("te", "trailers")])),
        ("options", headers(&options)),
        (
            "connect",
            headers(&[(":method", "CONNECT"), (":authority", "a:1")]),
        ),
        (
            "length",
            [with(&[("content-length", "3")]), data(b"ab"), data(b"c")].concat(),
        ),
        (
            "empty data",
            [with(&[("content-length", "0")]), data(b"")].concat(),
        ),
        (
            "trailers",
            [with(&[]), data(b"a"), headers(&[("x", "y")])].concat(),
        ),
        ("long", with(&[("x", &long)])),
    ] {
        let whole = read(&bytes, usize::MAX);
        assert!(
            whole.as_ref().is_ok_and(|request| request.head.is_some()),
            "{name}: {whole:?}"
        );
        assert_eq!(read(&bytes, 1), whole, "{name}");
    }
}

/// Checks that requests end their stream, each with its code.
fn each_ends_its_stream(cases: impl IntoIterator<Item = (&'static str, ErrorCode, Vec<u8>)>) {
    for (name, code, bytes) in cases {
        for length in [usize::MAX, 1] {
            match read(&bytes, length) {
                Err(RequestError::Stream { code: found, .. }) => assert_eq!(found, code, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn incomplete_and_long_requests_have_their_codes() {
    use ErrorCode as E;
    let many: Vec<(&str, &str)> = (0..700)
        .map(|_| {
            (
                "x-long-name",
                "0123456789012345678901234567890123456789012345678901234567890123456789",
            )
        })
        .collect();
    each_ends_its_stream([
        ("nothing", E::H3_REQUEST_INCOMPLETE, vec![]),
        (
            "unknown frame only",
            E::H3_REQUEST_INCOMPLETE,
            frame(0x21, b""),
        ),
        (
            "long section",
            E::H3_EXCESSIVE_LOAD,
            [integer(1), integer(65_537)].concat(),
        ),
        ("long list", E::H3_EXCESSIVE_LOAD, with(&many)),
    ]);
}

#[test]
fn malformed_pseudo_fields_end_the_stream() {
    let malformed = ErrorCode::H3_MESSAGE_ERROR;
    each_ends_its_stream([
        ("no method", malformed, without(0, &[])),
        ("no scheme", malformed, without(1, &[])),
        ("no authority", malformed, without(2, &[])),
        ("no path", malformed, without(3, &[])),
        (
            "empty authority",
            malformed,
            without(2, &[(":authority", "")]),
        ),
        ("empty path", malformed, without(3, &[(":path", "")])),
        ("star", malformed, without(3, &[(":path", "*")])),
        ("empty method", malformed, without(0, &[(":method", "")])),
        ("method twice", malformed, with(&[(":method", "GET")])),
        ("status", malformed, with(&[(":status", "200")])),
        ("unknown pseudo-field", malformed, with(&[(":own", "1")])),
        ("protocol", malformed, with(&[(":protocol", "websocket")])),
        (
            "late pseudo-field",
            malformed,
            without(3, &[("x", "y"), (":path", "/")]),
        ),
    ]);
}

#[test]
fn malformed_fields_and_lengths_end_the_stream() {
    let malformed = ErrorCode::H3_MESSAGE_ERROR;
    each_ends_its_stream([
        ("upper case", malformed, with(&[("X", "y")])),
        ("space in a name", malformed, with(&[("x y", "z")])),
        ("line feed", malformed, with(&[("x", "y\nz")])),
        ("connection", malformed, with(&[("connection", "close")])),
        (
            "transfer-encoding",
            malformed,
            with(&[("transfer-encoding", "chunked")]),
        ),
        ("te", malformed, with(&[("te", "gzip")])),
        ("other host", malformed, with(&[("host", "b")])),
        (
            "two hosts",
            malformed,
            with(&[("host", "a"), ("host", "a")]),
        ),
        (
            "connect with a path",
            malformed,
            without(0, &[(":method", "CONNECT")]),
        ),
        ("length", malformed, with(&[("content-length", "-1")])),
        (
            "two lengths",
            malformed,
            with(&[("content-length", "1"), ("content-length", "2")]),
        ),
        (
            "too short",
            malformed,
            [with(&[("content-length", "2")]), data(b"a")].concat(),
        ),
        (
            "too long",
            malformed,
            [with(&[("content-length", "2")]), data(b"abc")].concat(),
        ),
        (
            "pseudo-field in trailers",
            malformed,
            [with(&[]), headers(&[(":path", "/")])].concat(),
        ),
    ]);
}

/// Requests that end the connection, each with its code.
#[test]
fn violations_on_a_request_end_the_connection() {
    use ErrorCode as E;
    let unexpected = E::H3_FRAME_UNEXPECTED;
    let trailers = [with(&[]), headers(&[("x", "y")])].concat();
    let mut cases = vec![
        ("data first", unexpected, data(b"a")),
        (
            "data after trailers",
            unexpected,
            [&trailers[..], &data(b"a")].concat(),
        ),
        (
            "headers after trailers",
            unexpected,
            [&trailers[..], &with(&[])].concat(),
        ),
        ("settings", unexpected, frame(kind::SETTINGS, b"")),
        ("goaway", unexpected, goaway(0)),
        ("push promise", unexpected, frame(kind::PUSH_PROMISE, b"\0")),
        ("push limit", unexpected, frame(kind::MAX_PUSH_ID, b"\0")),
        ("cut", E::H3_FRAME_ERROR, with(&[])[..9].to_vec()),
        (
            "cut type",
            E::H3_FRAME_ERROR,
            [with(&[]), vec![0x40]].concat(),
        ),
        (
            "dynamic",
            E::QPACK_DECOMPRESSION_FAILED,
            frame(kind::HEADERS, b"\0\0\x80"),
        ),
        (
            "index",
            E::QPACK_DECOMPRESSION_FAILED,
            frame(kind::HEADERS, b"\0\0\xff\x24"),
        ),
        (
            "empty section",
            E::QPACK_DECOMPRESSION_FAILED,
            frame(kind::HEADERS, b""),
        ),
    ];
    for number in kind::OF_HTTP2 {
        cases.push(("frame of HTTP/2", unexpected, frame(number, b"")));
    }
    for (name, code, bytes) in cases {
        for length in [usize::MAX, 1] {
            match read(&bytes, length) {
                Err(RequestError::Connection(error)) => assert_eq!(error.code, code, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

/// Receives the streams of a client, in pieces, and returns the code of the error.
fn control_code(acts: &[(u64, Vec<u8>, bool)], length: usize) -> Option<ErrorCode> {
    let mut client = ClientStreams::default();
    for (stream, bytes, fin) in acts {
        let stream = StreamId::new(*stream);
        let mut pieces = bytes.chunks(length);
        let mut result = pieces.try_for_each(|piece| client.receive(stream, piece, false));
        if *fin {
            result = result.and_then(|()| client.receive(stream, b"", true));
        }
        if let Err(error) = result {
            return Some(error.code);
        }
    }
    None
}

/// Bytes of a client's stream, and its end.
type StreamAct = (u64, Vec<u8>, bool);

/// SETTINGS and these bytes on the control stream.
fn after_settings(bytes: Vec<u8>) -> Vec<StreamAct> {
    vec![(CLIENT[0], [settings(&[]), bytes].concat(), false)]
}

fn max_push(id: u64) -> Vec<u8> {
    frame(kind::MAX_PUSH_ID, &integer(id))
}

/// Checks the code with which each connection ends.
fn each_ends_with(
    cases: impl IntoIterator<Item = (&'static str, Option<ErrorCode>, Vec<StreamAct>)>,
) {
    for (name, code, acts) in cases {
        assert_eq!(control_code(&acts, usize::MAX), code, "{name}");
        assert_eq!(control_code(&acts, 1), code, "{name}");
    }
}

#[test]
fn valid_streams_of_a_client_are_accepted() {
    let [_, encoder, decoder] = CLIENT;
    each_ends_with([
        ("settings", None, after_settings(vec![])),
        (
            "push limits",
            None,
            after_settings([max_push(1), max_push(1), max_push(1 << 40)].concat()),
        ),
        (
            "goaways",
            None,
            after_settings([goaway(9), goaway(9), goaway(0)].concat()),
        ),
        ("unknown", None, after_settings(frame(0x21, b"abc"))),
        ("unknown stream", None, vec![(14, vec![0x21, 1, 2], true)]),
        (
            "streams of QPACK",
            None,
            vec![
                (encoder, b"\x02\x20".to_vec(), false),
                (decoder, b"\x03\x44".to_vec(), false),
            ],
        ),
    ]);
}

#[test]
fn violations_on_the_control_stream_have_their_codes() {
    use ErrorCode as E;
    let control = CLIENT[0];
    each_ends_with([
        (
            "no settings",
            Some(E::H3_MISSING_SETTINGS),
            vec![(control, [vec![0], goaway(0)].concat(), false)],
        ),
        (
            "settings twice",
            Some(E::H3_FRAME_UNEXPECTED),
            after_settings(settings(&[])[1..].to_vec()),
        ),
        (
            "setting twice",
            Some(E::H3_SETTINGS_ERROR),
            vec![(control, settings(&[(6, 0), (6, 0)]), false)],
        ),
        (
            "data",
            Some(E::H3_FRAME_UNEXPECTED),
            after_settings(data(b"")),
        ),
        (
            "headers",
            Some(E::H3_FRAME_UNEXPECTED),
            after_settings(with(&[])),
        ),
        (
            "ping",
            Some(E::H3_FRAME_UNEXPECTED),
            after_settings(frame(6, b"")),
        ),
        (
            "cancelled push",
            Some(E::H3_ID_ERROR),
            after_settings(frame(kind::CANCEL_PUSH, b"\0")),
        ),
        (
            "lower push limit",
            Some(E::H3_ID_ERROR),
            after_settings([max_push(2), max_push(1)].concat()),
        ),
        (
            "long push limit",
            Some(E::H3_FRAME_ERROR),
            after_settings(frame(kind::MAX_PUSH_ID, b"\0\0")),
        ),
        (
            "higher goaway",
            Some(E::H3_ID_ERROR),
            after_settings([goaway(0), goaway(1)].concat()),
        ),
    ]);
}

#[test]
fn violations_of_unidirectional_streams_have_their_codes() {
    use ErrorCode as E;
    let [control, encoder, decoder] = CLIENT;
    each_ends_with([
        (
            "end",
            Some(E::H3_CLOSED_CRITICAL_STREAM),
            vec![(control, settings(&[]), true)],
        ),
        (
            "second",
            Some(E::H3_STREAM_CREATION_ERROR),
            vec![(control, settings(&[]), false), (14, settings(&[]), false)],
        ),
        (
            "push",
            Some(E::H3_STREAM_CREATION_ERROR),
            vec![(14, vec![1, 0], false)],
        ),
        (
            "insertion",
            Some(E::QPACK_ENCODER_STREAM_ERROR),
            vec![(encoder, b"\x02\x3f\xe1\x01".to_vec(), false)],
        ),
        (
            "acknowledgement",
            Some(E::QPACK_DECODER_STREAM_ERROR),
            vec![(decoder, b"\x03\x80".to_vec(), false)],
        ),
    ]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces(
        frames in prop::collection::vec(
            (prop_oneof![Just(0u64), Just(1), 0..16u64], prop::collection::vec(any::<u8>(), 0..20)),
            0..4,
        ),
        begins_with_head: bool,
        tail in prop::collection::vec(any::<u8>(), 0..4),
        length in 1..9usize,
    ) {
        let mut bytes = if begins_with_head { with(&[]) } else { Vec::new() };
        for (kind, payload) in frames {
            bytes.extend(frame(kind, &payload));
        }
        bytes.extend(tail);
        prop_assert_eq!(read(&bytes, length), read(&bytes, usize::MAX));
    }
}
