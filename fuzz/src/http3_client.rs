//! The streams of an HTTP/3 server: cuts change nothing, streams add up, and nothing is sent on a stream after its end.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_http::streams::StreamRequest;
use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::http3::qpack::FieldPlan;
use posthaste_http::streams::http3::{
    ErrorCode, Http3Error, Http3StreamClient, OutputAction, StreamId, varint,
};

use crate::http2_client::Report;
use crate::within;

/// Requests that are open at first: without a body, with one, and for HEAD.
const REQUESTS: u32 = 3;

/// Bytes of the body that the second request sends.
const BODY: usize = 200 << 10;

/// Memory of a connection without input: the buffers for one frame of each stream and for the body.
const CONNECTION: usize = 2 << 20;

/// The streams that an act can name: the requests, the server's control stream, its streams of QPACK, two further
/// ones, and one that it must not open.
const STREAMS: [u64; 8] = [0, 4, 8, 3, 7, 11, 15, 1];

/// Something that the server does.
enum Act<'a> {
    Bytes(&'a [u8], bool),
    Reset(ErrorCode),
    Stop(ErrorCode),
}

/// Takes the next act: a byte for stream and kind, a byte for a length or a code, and the bytes.
fn next_act<'a>(input: &mut &'a [u8]) -> Option<(StreamId, Act<'a>)> {
    let ([choice, number], rest) = input.split_first_chunk()?;
    *input = rest;
    let stream = StreamId::new(STREAMS[usize::from(choice & 7)]);
    let code = ErrorCode(0x100 + u64::from(*number));
    let act = match choice >> 3 & 3 {
        2 => Act::Reset(code),
        3 => Act::Stop(code),
        with_end => {
            let (bytes, rest) = input.split_at(input.len().min((*number).into()));
            *input = rest;
            Act::Bytes(bytes, with_end == 1)
        }
    };
    Some((stream, act))
}

/// A server's acts on its streams, whole and byte by byte.
pub fn http3_client(input: &[u8]) {
    // Events are text, and one byte can name a field.
    let whole = within("Client", input.len(), 4 << 10, CONNECTION, || {
        connection(input, usize::MAX)
    });
    assert!(whole == connection(input, 1), "cuts change nothing");
    assert!(whole == connection(input, 3), "cuts change nothing");
}

/// What the transport has of a stream.
#[derive(Debug, Default, PartialEq)]
struct Sent {
    bytes: Vec<u8>,
    fin: bool,
    reset: Option<ErrorCode>,
    stopped: Option<ErrorCode>,
}

type Outcome = (Report, Option<Http3Error>, HashMap<u64, Sent>);

/// Runs a connection. Returns the events, the error, and the output.
fn connection(mut input: &[u8], length: usize) -> Outcome {
    let mut catalogue = FieldCatalogue::default();
    let field = catalogue.constant(b":method", b"POST").expect("valid");
    let path = catalogue.constant(b":path", b"/any").expect("valid");
    let fields = [RequestField::Constant(field), RequestField::Constant(path)];
    let mut client = Http3StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
    client.permit_streams(REQUESTS.into());
    let (mut report, mut sent) = (Report::default(), HashMap::new());
    for token in 0..REQUESTS {
        let request = StreamRequest {
            fields: &fields,
            has_body: token == 1,
            is_head: token == 2,
        };
        client.open(token, &request).expect("a free stream");
    }
    client.send_body(StreamId::new(4), &[0; 100], false);
    flush(&mut client, &mut sent);
    let (mut error, mut ended) = (None, Vec::new());
    while let Some((stream, act)) = next_act(&mut input) {
        let is_end = matches!(act, Act::Reset(_) | Act::Bytes(_, true));
        // QUIC delivers nothing after the end of a stream.
        if ended.contains(&stream) && !matches!(act, Act::Stop(_)) {
            continue;
        }
        if is_end {
            ended.push(stream);
        }
        error = perform(&mut client, stream, &act, length, &mut report).err();
        if error.is_some() {
            assert_eq!(client.output(), None);
            break;
        }
        flush(&mut client, &mut sent);
    }
    send_body(&mut client, &mut sent);
    let counters = client.counters();
    let open = client.open_streams() as u64;
    assert_eq!(counters.opened, u64::from(REQUESTS));
    assert_eq!(counters.opened, counters.ended + open);
    assert_eq!(counters.ended, report.ended.len() as u64);
    for sent in sent.values().filter(|sent| sent.fin) {
        check_frames(&sent.bytes);
    }
    (report, error, sent)
}

fn perform(
    client: &mut Http3StreamClient,
    stream: StreamId,
    act: &Act<'_>,
    length: usize,
    report: &mut Report,
) -> Result<(), Http3Error> {
    match act {
        Act::Bytes(bytes, fin) => {
            for piece in bytes.chunks(length) {
                client.receive(stream, piece, false, report)?;
            }
            if *fin {
                client.receive(stream, b"", true, report)
            } else {
                Ok(())
            }
        }
        Act::Reset(code) => client.receive_reset(stream, *code, report),
        Act::Stop(code) => client.receive_stop(stream, *code, report),
    }
}

/// Sends the body of the second request, unless its stream has ended.
fn send_body(client: &mut Http3StreamClient, sent: &mut HashMap<u64, Sent>) {
    let body = vec![0; BODY];
    let stream = client.open_tokens().find(|(_, token)| *token == 1);
    let Some((stream, _)) = stream else { return };
    let mut taken = client.send_body(stream, &body, true);
    flush(client, sent);
    while let Some((next, token)) = client.next_writable() {
        assert!((next, token) == (stream, 1) && taken < BODY);
        taken += client.send_body(stream, &body[taken..], true);
        flush(client, sent);
    }
}

/// Passes the output to a transport that accepts everything: one end and one stop per stream, and nothing after an end.
fn flush(client: &mut Http3StreamClient, sent: &mut HashMap<u64, Sent>) {
    while let Some(action) = client.output() {
        match action {
            OutputAction::Write { stream, bytes, fin } => {
                let known = sent.entry(stream.number()).or_default();
                assert!(!known.fin && known.reset.is_none() && (fin || !bytes.is_empty()));
                known.bytes.extend_from_slice(bytes);
                known.fin = fin;
                let count = bytes.len();
                client.sent(stream, count);
            }
            OutputAction::Reset { stream, code } => {
                let known = sent.entry(stream.number()).or_default();
                assert!(!known.fin && known.reset.replace(code).is_none());
            }
            OutputAction::Stop { stream, code } => {
                let known = sent.entry(stream.number()).or_default();
                assert!(known.stopped.replace(code).is_none());
            }
        }
    }
}

/// A complete request has whole frames: HEADERS, then DATA.
fn check_frames(mut bytes: &[u8]) {
    let mut expected = kind::HEADERS;
    while !bytes.is_empty() {
        assert_eq!(varint::decode(&mut bytes), Some(expected));
        let length = varint::decode(&mut bytes).expect("a whole length");
        bytes = bytes.get(length as usize..).expect("a whole frame");
        expected = kind::DATA;
    }
    assert_eq!(expected, kind::DATA, "a request has fields");
}
