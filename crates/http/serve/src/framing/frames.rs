//! Filter for an HTTP/2 client's frames (RFC 9113, section 4): finds trailers with pseudo-header fields.
//!
//! Such a request is malformed (section 8.1), but the decoder drops the fields and serves it. The decoder does reset a
//! stream whose trailers do not end it, so the filter clears that flag. The decoder itself rejects pseudo-header fields
//! after other fields. Hence the first field of a block decides.
//!
//! Pure: no socket, no clock, no allocation.

use super::hpack::Blocks;

/// Length of the client's connection preface (section 3.4).
const PREFACE: usize = 24;

/// Length of a frame header.
const HEAD: usize = 9;

/// Maximum bytes of a block that are needed for its first field: an index, a length and a letter, after changes of the
/// table's size.
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
    /// Bytes to skip: of the preface, of a payload, of padding.
    skip: usize,
    /// Remaining bytes of a header block in the current frame, and of padding after it.
    block: usize,
    padding: usize,
    /// The highest stream with headers so far.
    last: u32,
    opened: u64,
    blocks: Blocks,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            skip: PREFACE,
            block: 0,
            padding: 0,
            last: 0,
            opened: 0,
            blocks: Blocks::default(),
        }
    }
}

/// A HEADERS frame, as far as parsed.
struct Headers {
    stream: u32,
    flags: u8,
    /// Start and end of its block, and end of the frame.
    begin: usize,
    end: usize,
    over: usize,
}

impl Frames {
    /// Processes the next bytes. Returns the number of bytes at the front to pass on, possibly changed. The caller must
    /// feed the others again, before the following bytes.
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
        debug_assert_eq!(at, bytes.len(), "all bytes are passed on");
        at
    }

    /// Number of streams that have begun.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Processes a frame's header and the fields before its block. `None` if more bytes are needed.
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
        self.opened += u64::from(is_new);
        self.last = self.last.max(headers.stream);
        debug_assert!(
            headers.begin <= headers.end && headers.end <= headers.over,
            "a block lies within its frame"
        );
        self.blocks.begin();
        (self.block, self.padding) = (headers.end - headers.begin, headers.over - headers.end);
        Some(begin)
    }

    /// True if the first field of trailers is a pseudo-header field, or is not in their first frame. `None` if more
    /// bytes are needed.
    fn is_malformed(&self, bytes: &[u8], headers: &Headers) -> Option<bool> {
        // At most the deciding bytes, so that the result does not depend on segmentation.
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

    /// The output for these frames, equal for every segmentation; includes the bytes held at the end.
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
            // Endless changes of the table's size before the first field.
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
