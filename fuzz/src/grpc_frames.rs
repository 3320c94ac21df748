//! The messages of a gRPC body: cuts change nothing, and every byte has its place in a message or a prefix.

use posthaste_http::grpc::{
    FrameError, FramePart, FrameReader, FramedMessage, MessageReader, PREFIX_BYTES,
};

use crate::cuts::Cut;
use crate::within;

/// The limit of a message, so that a short input can exceed it.
const LIMIT: usize = 300;

/// The messages of a body, and its end.
type Read = (Vec<FramedMessage>, Result<(), FrameError>);

/// Cuts and a body.
pub fn grpc_frames(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let whole = read([cut.stream].into_iter());
    assert_eq!(read(cut.pieces()), whole);
    assert_eq!(read(cut.stream.chunks(1)), whole);
    parts(cut.stream);
    // What was read, written again, is what stands there.
    let mut written = Vec::new();
    for message in &whole.0 {
        assert!(message.data.len() <= LIMIT, "{}", message.data.len());
        written.push(u8::from(message.compressed));
        let length = u32::try_from(message.data.len()).expect("it is within the limit");
        written.extend_from_slice(&length.to_be_bytes());
        written.extend_from_slice(&message.data);
    }
    assert!(cut.stream.starts_with(&written));
    let rest = &cut.stream[written.len()..];
    match whole.1 {
        Ok(()) => assert!(rest.is_empty(), "{rest:?} is left"),
        Err(FrameError::Cut) => assert!(!rest.is_empty(), "nothing is cut"),
        Err(FrameError::Flag(flag)) => assert!(flag > 1 && rest[0] == flag, "{flag}"),
        Err(FrameError::TooLong { length, limit }) => {
            assert!(length > limit && limit == LIMIT && rest.len() >= PREFIX_BYTES);
        }
    }
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let mut reader = MessageReader::new(LIMIT);
    let mut messages = Vec::new();
    for mut piece in pieces {
        loop {
            match reader.next(&mut piece) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next(&mut &b"\0"[..]), Err(error), "an error stays");
                    return (messages, Err(error));
                }
            }
        }
        assert!(piece.is_empty(), "{} bytes are left", piece.len());
    }
    (messages, reader.end())
}

/// Parts without memory: each message has the length that its prefix states.
fn parts(mut bytes: &[u8]) {
    let mut reader = FrameReader::new(LIMIT);
    let mut left = 0;
    loop {
        match within("FrameReader", 0, 0, 0, || reader.next(&mut bytes)) {
            Ok(Some(FramePart::Begin { length, .. })) => left = length,
            Ok(Some(FramePart::Data(data))) => {
                assert!(!data.is_empty() && data.len() <= left);
                left -= data.len();
            }
            Ok(Some(FramePart::End)) => assert_eq!(left, 0),
            Ok(None) | Err(_) => return,
        }
    }
}
