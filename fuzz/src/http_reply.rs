//! HTTP replies off a connection: where the stream is cut into reads changes nothing.

use posthaste_load::http::{ReplyProgress, ReplyReader, Violation};
use posthaste_load::reply::{self, Content};

use crate::cuts::Cut;
use crate::within;

/// As much of an XML body is kept.
const KEPT: usize = 16 << 10;

/// Beyond this length of a head the reader stops, on which byte depends on the cuts.
const HEAD: usize = 64 << 10;

/// What was read of one reply.
#[derive(Debug, PartialEq)]
struct Reply {
    /// The byte of the stream after it.
    end: usize,
    status: u16,
    keep_alive: bool,
    body: Option<Vec<u8>>,
    content: Content,
}

/// Everything that was read of a connection, and how it ended.
#[derive(Debug, PartialEq)]
struct Outcome {
    replies: Vec<Reply>,
    end: Result<(), Violation>,
}

/// Any bytes as the stream of a connection, cut anywhere; the flag says that HEAD was asked.
pub fn http_reply(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let stream = cut.stream;
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>, reader: &mut ReplyReader| {
        within("ReplyReader::feed", stream.len(), 16, 256 << 10, || {
            connection(pieces, reader, cut.flag)
        })
    };
    let mut reader = ReplyReader::default();
    let whole = read(&mut std::iter::once(stream), &mut reader);
    let pieces = read(&mut cut.pieces(), &mut ReplyReader::default());
    same(&whole, &pieces, stream.len());
    // What the reader went through before leaves no trace.
    let again = read(&mut cut.pieces(), &mut reader);
    same(&whole, &again, stream.len());
    for reply in &whole.replies {
        assert!((200..1000).contains(&reply.status));
        if let Some(body) = &reply.body {
            assert!(body.len() <= KEPT.min(stream.len()));
        }
    }
}

fn same(whole: &Outcome, pieces: &Outcome, length: usize) {
    if length > HEAD && whole.end.is_err() {
        assert!(pieces.end.is_err());
        assert_eq!(whole.replies, pieces.replies);
    } else {
        assert_eq!(whole, pieces);
    }
}

/// Feeds a connection's reads, one reply after the other, to its end.
fn connection(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    reader: &mut ReplyReader,
    head: bool,
) -> Outcome {
    let (mut replies, mut begun, mut at) = (Vec::new(), false, 0);
    let mut read = reply::HttpReply::default();
    reader.begin(head);
    for piece in pieces {
        let mut rest = piece;
        loop {
            begun |= !rest.is_empty();
            let progress = match reader.feed(rest, &mut read) {
                Ok(progress) => progress,
                Err(violation) => {
                    return Outcome {
                        replies,
                        end: Err(violation),
                    };
                }
            };
            let ReplyProgress::Complete { used } = progress else {
                at += rest.len();
                break;
            };
            assert!(used <= rest.len(), "{used} of {} bytes used", rest.len());
            at += used;
            rest = &rest[used..];
            replies.push(reply(reader, &read, at));
            reader.begin(head);
            begun = false;
            if rest.is_empty() {
                break;
            }
        }
    }
    let end = if begun { reader.closed() } else { Ok(()) };
    if begun && end.is_ok() {
        replies.push(reply(reader, &read, at));
    }
    Outcome { replies, end }
}

fn reply(reader: &ReplyReader, read: &reply::HttpReply, end: usize) -> Reply {
    Reply {
        end,
        status: read.status(),
        keep_alive: reader.keep_alive(),
        body: read.xml_body().map(<[u8]>::to_vec),
        content: read.content().clone(),
    }
}
