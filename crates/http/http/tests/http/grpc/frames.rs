//! Message framing: any pieces, limits, cut bodies.

use posthaste_http::grpc::{FrameError, FramePart, FrameReader, MessageReader, frame, write_frame};
use proptest::prelude::*;

/// The messages of a body that arrives in pieces of these lengths, repeated.
fn read(body: &[u8], lengths: &[usize], limit: usize) -> Result<Vec<Vec<u8>>, FrameError> {
    let mut reader = MessageReader::new(limit);
    let mut messages = Vec::new();
    let (mut rest, mut count) = (body, 0);
    loop {
        let length = lengths[count % lengths.len()].clamp(1, rest.len().max(1));
        let (mut piece, after) = rest.split_at(length.min(rest.len()));
        while let Some(message) = reader.next(&mut piece)? {
            messages.push(message.data);
        }
        assert!(piece.is_empty(), "a piece is used up");
        if after.is_empty() {
            break;
        }
        (rest, count) = (after, count + 1);
    }
    reader.end()?;
    Ok(messages)
}

fn body(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for message in messages {
        write_frame(&mut body, message);
    }
    body
}

proptest! {
    #[test]
    fn messages_in_any_pieces_are_those_that_were_written(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
        lengths in prop::collection::vec(1usize..20, 1..5),
    ) {
        prop_assert_eq!(read(&body(&messages), &lengths, 64), Ok(messages));
    }

    #[test]
    fn a_body_cut_within_a_message_is_cut(
        message in prop::collection::vec(any::<u8>(), 0..50),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = body(&[message]);
        let at = 1 + cut.index(whole.len() - 1);
        prop_assume!(at < whole.len());
        prop_assert_eq!(read(&whole[..at], &[7], 64), Err(FrameError::Cut));
    }
}

#[test]
fn an_overlong_message_is_a_lasting_error_at_its_prefix() {
    let mut reader = FrameReader::new(10);
    let mut bytes: &[u8] = b"\0\0\0\0\x0brest";
    let error = FrameError::TooLong {
        length: 11,
        limit: 10,
    };
    assert_eq!(reader.next(&mut bytes), Err(error));
    assert_eq!(reader.next(&mut bytes), Err(error));
    assert_eq!(reader.end(), Err(error));
    assert_eq!(read(&body(&[vec![7; 10]]), &[100], 10).unwrap().len(), 1);
}

#[test]
fn flags_other_than_zero_and_one_are_errors() {
    let mut reader = FrameReader::new(10);
    assert_eq!(
        reader.next(&mut &b"\x01\0\0\0\x02"[..]),
        Ok(Some(FramePart::Begin {
            compressed: true,
            length: 2
        }))
    );
    for flag in [2, 3, 128, 255] {
        let mut reader = FrameReader::new(10);
        assert_eq!(
            reader.next(&mut &[flag, 0, 0, 0, 0][..]),
            Err(FrameError::Flag(flag))
        );
    }
}

#[test]
fn an_encoded_message_has_its_prefix() {
    // A text encodes as google.protobuf.StringValue.
    assert_eq!(frame(&"a".to_owned()), b"\0\0\0\0\x03\x0a\x01a");
    assert_eq!(frame(&String::new()), [0; 5]);
}
