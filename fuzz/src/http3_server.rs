//! The streams of an HTTP/3 client: cuts change nothing, requests are valid, and the fields return in a reply.

use posthaste_http::streams::http3::qpack::SectionDecoder;
use posthaste_http::streams::http3::server::{
    ClientStreams, LIST_LIMIT, RequestError, RequestHead, RequestPiece, RequestReader, append_head,
};
use posthaste_http::streams::http3::{Http3Error, StreamId, varint};

use crate::within;

/// Memory of a stream without input, in bytes.
const STREAM: usize = 256 << 10;

/// The unidirectional streams that an act can name.
const STREAMS: [u64; 4] = [2, 6, 10, 14];

/// A byte that chooses, and the bytes of a request's stream, or acts on unidirectional streams.
pub fn http3_server(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    if choice & 1 == 0 {
        // A field of the static table costs one byte, and has a name and a value in memory.
        let whole = within("RequestReader", rest.len(), 512, STREAM, || {
            request(rest, usize::MAX)
        });
        assert_eq!(whole, request(rest, 1), "cuts change nothing");
        assert_eq!(whole, request(rest, 3), "cuts change nothing");
        if let Ok(request) = whole {
            check(
                &request.head.expect("a complete request has a head"),
                request.content,
            );
        }
    } else {
        let whole = within("ClientStreams", rest.len(), 64, STREAM, || {
            control(rest, usize::MAX)
        });
        assert_eq!(whole, control(rest, 1), "cuts change nothing");
    }
}

#[derive(Debug, Default, PartialEq)]
struct ReceivedRequest {
    head: Option<RequestHead>,
    content: u64,
    has_trailers: bool,
}

/// Reads a whole stream in pieces.
fn request(bytes: &[u8], length: usize) -> Result<ReceivedRequest, RequestError> {
    let (mut reader, mut request) = (RequestReader::default(), ReceivedRequest::default());
    for mut piece in bytes.chunks(length) {
        while let Some(piece) = reader.next(&mut piece)? {
            assert!(!request.has_trailers, "trailers are last");
            match piece {
                RequestPiece::Head(head) => {
                    assert!(request.head.replace(head).is_none(), "one head");
                }
                RequestPiece::Content(content) => {
                    assert!(request.head.is_some() && !content.is_empty());
                    request.content += content.len() as u64;
                }
                RequestPiece::Trailers => request.has_trailers = true,
            }
        }
        assert!(piece.is_empty(), "all bytes are read");
    }
    reader.end()?;
    Ok(request)
}

/// A valid request has the fields of its method, and the announced length. Its fields return in a reply.
fn check(head: &RequestHead, content: u64) {
    assert!(!head.method.is_empty());
    assert_eq!(head.method == b"CONNECT", head.path.is_none());
    assert!(head.content_length.is_none_or(|length| length == content));
    let size = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 32;
    assert!(head.fields.iter().map(size).sum::<usize>() <= LIST_LIMIT);
    let fields = head.fields.iter();
    let fields = fields.map(|(name, value)| (&name[..], &value[..]));
    let mut bytes = Vec::new();
    append_head(200, fields, &mut bytes);
    let mut frame = &bytes[..];
    assert_eq!(varint::decode(&mut frame), Some(1));
    assert_eq!(varint::decode(&mut frame), Some(frame.len() as u64));
    let mut again = Vec::new();
    let each = |field: posthaste_http::streams::DecodedField<'_>| {
        again.push((field.name.to_vec(), field.value.to_vec()));
    };
    let decoded = SectionDecoder::default().decode(frame, each);
    decoded.expect("a written section");
    let status = (b":status".to_vec(), b"200".to_vec());
    assert_eq!(again[0], status);
    assert_eq!(again[1..], head.fields);
}

/// Acts on unidirectional streams: a byte for stream and end, a byte for the length, and the bytes.
fn control(mut input: &[u8], length: usize) -> Result<bool, Http3Error> {
    let mut client = ClientStreams::default();
    let mut ended = [false; STREAMS.len()];
    while let Some(([choice, number], rest)) = input.split_first_chunk() {
        let (bytes, rest) = rest.split_at(rest.len().min((*number).into()));
        input = rest;
        let position = usize::from(choice & 3);
        // QUIC delivers nothing after the end of a stream.
        if ended[position] {
            continue;
        }
        ended[position] = choice & 12 != 0;
        let stream = StreamId::new(STREAMS[position]);
        for piece in bytes.chunks(length) {
            client.receive(stream, piece, false)?;
        }
        match choice >> 2 & 3 {
            0 => {}
            1 => client.receive_reset(stream)?,
            _ => client.receive(stream, b"", true)?,
        }
    }
    Ok(client.has_settings())
}
