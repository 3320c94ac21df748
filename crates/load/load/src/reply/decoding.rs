//! Decoding of coded replies, with the decoding time of a slower machine.
//!
//! Nothing waits for the slower machine: its time is calculated and counts as if it had passed.

use std::io::{self, Write};

use posthaste_compression::Coding;
use posthaste_compression::Decoder;
use posthaste_units::Span;
use serde::{Deserialize, Serialize};

use crate::clock::processor_time;
use crate::reply::{Content, HttpReply};

/// Maximum number of bytes decoded from one reply. The event loop does nothing else while it decodes.
pub(crate) const DECODED_LIMIT: u64 = 256 << 20;

/// Decoded content of a run. All zero if the plan leaves replies coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decoded {
    /// Replies with a content coding.
    pub replies: u64,
    /// Bytes of their content as received.
    pub bytes_coded: u64,
    /// Bytes of their content after decoding.
    pub bytes: u64,
}

impl Decoded {
    /// Adds the counts of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.replies += other.replies;
        self.bytes_coded += other.bytes_coded;
        self.bytes += other.bytes;
    }
}

/// Decodes a complete reply. Returns the time that a machine `slowdown` times slower takes; `None` if the reply has no
/// coding.
///
/// The time is the measured CPU time multiplied by `slowdown`. For a slowdown above 1 the reply is decoded three times
/// and the least time counts, because a cold cache here says nothing about the other machine.
pub(crate) fn decode(reply: &HttpReply, slowdown: u32) -> Result<Option<(Span, Decoded)>, String> {
    let body = reply.coded();
    let bytes_coded = body.clone().map(<[u8]>::len).sum::<usize>() as u64;
    let coding = match reply.content() {
        Content::Plain => return Ok(None),
        _ if bytes_coded == 0 => return Ok(None),
        Content::Coded(coding) => *coding,
        Content::Unknown(text) => return Err(format!("no way to decode {text:?}")),
    };
    let times = if slowdown > 1 { 3 } else { 1 };
    let mut least = Span::MAX;
    let mut bytes = 0;
    for _ in 0..times {
        let before = processor_time();
        bytes =
            length(coding, body.clone()).map_err(|error| format!("{}: {error}", coding.token()))?;
        least = least.min(processor_time().saturating_sub(before));
    }
    let decoded = Decoded {
        replies: 1,
        bytes_coded,
        bytes,
    };
    Ok(Some((least * u64::from(slowdown), decoded)))
}

/// Returns the decoded length of a coded body.
fn length<'b>(coding: Coding, body: impl Iterator<Item = &'b [u8]>) -> io::Result<u64> {
    let mut decoder = Decoder::new(coding, ByteCounter(0))?;
    for piece in body {
        decoder.push(piece)?;
    }
    decoder.finish()?;
    Ok(decoder.writer().0)
}

/// Counts the bytes written and discards them.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        if self.0 > DECODED_LIMIT {
            let message = format!("more than {DECODED_LIMIT} bytes come of it");
            return Err(io::Error::other(message));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
