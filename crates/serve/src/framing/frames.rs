//! The frames of an HTTP/2 client (RFC 9113, section 4), watched for trailers that hold pseudo-header fields.
//!
//! Such a request is malformed (section 8.1), and the decoder behind drops the fields and serves it. It does reset a stream
//! whose trailers do not end it, so that flag is taken from them. Pseudo-header fields behind other fields it refuses itself:
//! the first field of a block decides.
//!
//! Pure: no socket, no clock, no allocation.

use super::hpack::Blocks;

/// What a client sends before its first frame (section 3.4).
const PREFACE: usize = 24;

/// The head of a frame.
const HEAD: usize = 9;

/// Bytes of a block at most that are waited for, to know its first field: an index, a length and a letter, behind changes of
/// the table's size.
const DECIDES: usize = 32;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The frames of one connection.
#[derive(Debug)]
pub struct Frames {
    /// Bytes to pass over: of the preface, of a payload, of padding.
    skip: usize,
    /// Bytes of a header block in the present frame, and of padding behind it.
    block: usize,
    padding: usize,
    /// The highest stream whose headers have come.
    last: u32,
    blocks: Blocks,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            skip: PREFACE,
            block: 0,
            padding: 0,
            last: 0,
            blocks: Blocks::default(),
        }
    }
}

/// What is known of a frame of headers.
struct Headers {
    stream: u32,
    flags: u8,
    /// Where its block begins and ends, and the frame.
    begin: usize,
    end: usize,
    over: usize,
}

impl Frames {
    /// Takes the next bytes: so many at the front go on, changed or not. The others are to be fed again in front of what
    /// comes next.
    pub fn feed(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let there = bytes.len() - at;
            if self.skip > 0 {
                let length = self.skip.min(there);
                (self.skip, at) = (self.skip - length, at + length);
            } else if self.block > 0 {
                let length = self.block.min(there);
                self.blocks.feed(&bytes[at..at + length]);
                (self.block, at) = (self.block - length, at + length);
            } else if self.padding > 0 {
                self.skip = std::mem::take(&mut self.padding);
            } else {
                match self.begin(&mut bytes[at..]) {
                    Some(length) => at += length,
                    None => return at,
                }
            }
        }
        at
    }

    /// Takes what stands before a frame's payload, or its block; none where too little is there.
    fn begin(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let [l1, l2, l3, kind, flags, s1, s2, s3, s4, ..] = *bytes else {
            return None;
        };
        let length = u32::from_be_bytes([0, l1, l2, l3]) as usize;
        match kind {
            HEADERS => {
                let stream = u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]);
                self.headers(bytes, length, flags, stream)
            }
            CONTINUATION => {
                self.block = length;
                Some(HEAD)
            }
            _ => {
                self.skip = length;
                Some(HEAD)
            }
        }
    }

    fn headers(
        &mut self,
        bytes: &mut [u8],
        length: usize,
        flags: u8,
        stream: u32,
    ) -> Option<usize> {
        let is_padded = flags & PADDED != 0;
        let front = usize::from(is_padded) + if flags & PRIORITY != 0 { 5 } else { 0 };
        let begin = HEAD + front.min(length);
        if bytes.len() < begin {
            return None;
        }
        let padding = if is_padded && length > 0 {
            usize::from(bytes[HEAD])
        } else {
            0
        };
        let over = HEAD + length;
        let end = over.saturating_sub(padding).max(begin);
        let headers = Headers {
            stream,
            flags,
            begin,
            end,
            over,
        };
        let is_new = stream > self.last;
        if !is_new && flags & END_STREAM != 0 && self.is_malformed(bytes, &headers)? {
            bytes[4] &= !END_STREAM;
        }
        self.last = self.last.max(headers.stream);
        self.blocks.begin();
        (self.block, self.padding) = (headers.end - headers.begin, headers.over - headers.end);
        Some(begin)
    }

    /// Whether the first field of trailers is a pseudo-header field, or cannot be seen in their first frame; none where too
    /// little of it is there.
    fn is_malformed(&self, bytes: &[u8], headers: &Headers) -> Option<bool> {
        // No more than decides, whatever has come: where the connection is cut must not matter.
        let decides = headers.end.min(headers.begin + DECIDES);
        let there = decides.min(bytes.len());
        let mut blocks = self.blocks;
        blocks.begin();
        blocks.feed(&bytes[headers.begin..there]);
        match blocks.first() {
            Some(is_pseudo) => Some(is_pseudo),
            None if there == decides => {
                let is_empty = headers.begin == headers.end && headers.flags & END_HEADERS != 0;
                Some(!is_empty)
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// What goes on of these frames, in whatever pieces they come; what is left at the end is part of it.
    fn passed(frames: &[Vec<u8>]) -> Vec<u8> {
        let stream = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frames.concat()].concat();
        let pass = |piece: usize| {
            let mut watched = Frames::default();
            let (mut out, mut held) = (Vec::new(), Vec::new());
            for piece in stream.chunks(piece) {
                held.extend_from_slice(piece);
                let length = watched.feed(&mut held);
                out.extend(held.drain(..length));
                assert!(held.len() < HEAD + 6 + DECIDES);
            }
            out.extend(held);
            out
        };
        let whole = pass(stream.len());
        for piece in [1, 2, 5, 13] {
            assert_eq!(pass(piece), whole, "{piece}");
        }
        assert_eq!(whole.len(), stream.len());
        whole[PREFACE..].to_vec()
    }

    const HEAD_OF: &[u8] = b"\x83\x86\x84\x41\x01s";

    #[test]
    fn trailers_with_pseudo_fields_do_not_end_their_stream() {
        let head = frame(HEADERS, END_HEADERS, 1, HEAD_OF);
        let data = frame(0, 0, 1, b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82");
        for (trailers, is_changed) in [
            (
                frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x01a\x01b"),
                false,
            ),
            (frame(HEADERS, END_HEADERS | END_STREAM, 1, b""), false),
            (frame(HEADERS, END_HEADERS | END_STREAM, 3, HEAD_OF), false),
            (frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x82"), true),
            (
                frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x05:path\x01/"),
                true,
            ),
            (
                frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xbe\x00\x01a\x01b"),
                true,
            ),
            (frame(HEADERS, END_STREAM, 1, b""), true),
            (frame(HEADERS, END_STREAM, 1, b"\x00"), true),
            (
                frame(
                    HEADERS,
                    END_HEADERS | END_STREAM | PADDED | PRIORITY,
                    1,
                    b"\x02\0\0\0\0\x10\x82\0\0",
                ),
                true,
            ),
            (
                frame(
                    HEADERS,
                    END_HEADERS | END_STREAM | PADDED,
                    1,
                    b"\x02\x00\x01a\x01b\x82\x82",
                ),
                false,
            ),
        ] {
            let after = frame(HEADERS, END_HEADERS | END_STREAM, 5, HEAD_OF);
            let frames = [head.clone(), data.clone(), trailers.clone(), after.clone()];
            let mut expected = frames.concat();
            if is_changed {
                expected[head.len() + data.len() + 4] &= !END_STREAM;
            }
            assert_eq!(passed(&frames), expected, "{trailers:x?}");
        }
    }

    #[test]
    fn blocks_go_on_in_the_next_frame() {
        let head = [
            frame(HEADERS, 0, 1, b"\x83\x86\x84\x40"),
            frame(CONTINUATION, END_HEADERS, 1, b"\x01x\x01y\x41\x01s"),
        ];
        let trailers = |index| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[index]);
        for (index, is_changed) in [(0xbe, true), (0xbf, false)] {
            let frames = [head.concat(), trailers(index)];
            let mut expected = frames.concat();
            if is_changed {
                expected[head.concat().len() + 4] &= !END_STREAM;
            }
            assert_eq!(passed(&frames), expected);
        }
    }

    #[test]
    fn broken_frames_pass() {
        for frame in [
            frame(HEADERS, PADDED | PRIORITY | END_STREAM, 0, b""),
            frame(HEADERS, PADDED, 1, b"\xff"),
            frame(HEADERS, PADDED, 1, b"\xff\x82"),
            frame(CONTINUATION, 0, 1, b"\xff\xff\xff\xff\xff\xff"),
            // Changes of the table's size without end, before the first field.
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                0,
                &[[0x27; 60].as_slice(), b"\x00\x01a\x01b"].concat(),
            ),
        ] {
            passed(&[frame.clone(), frame]);
        }
    }
}
