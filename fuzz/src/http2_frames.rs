//! The frames that a client sends over HTTP/2: cuts change nothing, and nothing is changed but what trailers say of being
//! the last of their stream.

use posthaste_serve::framing::Frames;

use crate::cuts::Cut;
use crate::within;

/// The preface of a client, before its first frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes at the end of what came that may wait for more: a frame's head, its padding and priority, and a field's beginning.
const WAITING: usize = 48;

const HEAD: usize = 9;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// Cuts and the frames of a connection.
pub fn http2_frames(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let preface = [PREFACE];
    let whole = pass(preface.into_iter().chain([cut.stream]));
    assert_eq!(pass(preface.into_iter().chain(cut.pieces())), whole);
    assert_eq!(pass(preface.into_iter().chain(cut.stream.chunks(1))), whole);
    let passed = &whole[PREFACE.len()..];
    assert_eq!(passed.len(), cut.stream.len(), "no byte comes or goes");
    let changed = (0..passed.len()).filter(|at| passed[*at] != cut.stream[*at]);
    let may_change = last_flags(cut.stream);
    for at in changed {
        assert_eq!(passed[at] ^ cut.stream[at], END_STREAM, "{at}");
        assert!(may_change.contains(&at), "{at} is no flag of trailers");
    }
}

/// The bytes that go on of a connection that came in pieces, with those that wait at its end.
fn pass<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut frames = Frames::default();
    let (mut passed, mut held) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        let length = within("Frames", held.len(), 0, 0, || frames.feed(&mut held));
        passed.extend(held.drain(..length));
        assert!(held.len() < WAITING, "{} bytes wait", held.len());
    }
    passed.extend(held);
    passed
}

/// Places of the flags of frames that may be trailers and end their stream: HEADERS of a stream that has had some.
fn last_flags(stream: &[u8]) -> Vec<usize> {
    let (mut at, mut highest, mut found) = (0, 0, Vec::new());
    while let Some(head) = stream.get(at..at + HEAD) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let number = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        if head[3] == HEADERS {
            if number <= highest && head[4] & END_STREAM != 0 {
                found.push(at + 4);
            }
            highest = highest.max(number);
        }
        at += HEAD + length;
    }
    found
}
