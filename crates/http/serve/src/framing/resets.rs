//! Filter for an HTTP/2 server's frames (RFC 9113, section 4): finds requests that the decoder refuses.
//!
//! The decoder reports them to nobody. It resets the stream of a malformed request with PROTOCOL_ERROR (section 8.1.1).
//! To a head that is too large it replies with a head that has the status 431 and no field; replies of a service have at
//! least a date.
//!
//! Pure: no socket, no clock, no allocation.

/// Length of a frame header.
const HEAD: usize = 9;

/// Maximum length of the payloads that are kept: the code of RST_STREAM, and [`TOO_LARGE`].
const KEPT: usize = 5;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 0x1;
const PROTOCOL_ERROR: [u8; 4] = [0, 0, 0, 1];

/// `:status 431`, with its value in the Huffman code. Entered into the table, it is one byte from then on.
const TOO_LARGE: [u8; KEPT] = [0x48, 0x83, 0x69, 0x90, 0xff];

/// The frames of one server.
#[derive(Debug, Default)]
pub struct Resets {
    /// Bytes of a payload to skip.
    skip: usize,
    /// The start of a frame: its header, and a short payload.
    start: [u8; HEAD + KEPT],
    /// Length of `start` so far.
    length: usize,
    /// The last stream with a head that was too large. A reset may follow.
    too_large: Option<u32>,
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reset {
    /// The head is too large: the client gets 431.
    TooLarge,
    /// The request is malformed, possibly in its body: the client gets no reply.
    Malformed,
}

impl Resets {
    /// Processes the next bytes that were sent. Calls `found` for each refused request.
    pub fn feed(&mut self, bytes: &[u8], mut found: impl FnMut(Reset)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.skip > 0 {
                let length = self.skip.min(rest.len());
                self.skip -= length;
                rest = &rest[length..];
                continue;
            }
            let length = (self.wanted() - self.length).min(rest.len());
            self.start[self.length..self.length + length].copy_from_slice(&rest[..length]);
            self.length += length;
            rest = &rest[length..];
            // The header may ask for a payload.
            if self.length == self.wanted()
                && let Some(reset) = self.end_start()
            {
                found(reset);
            }
        }
    }

    /// Length of the start: the header, and the payload if it is kept.
    fn wanted(&self) -> usize {
        let kept = self.payload();
        let is_kept = matches!(self.start[3], HEADERS | RST_STREAM) && kept <= KEPT;
        if self.length >= HEAD && is_kept {
            HEAD + kept
        } else {
            HEAD
        }
    }

    /// Length of the payload, once the header is complete.
    fn payload(&self) -> usize {
        let [l1, l2, l3, ..] = self.start;
        u32::from_be_bytes([0, l1, l2, l3]) as usize
    }

    /// Processes a complete start of a frame.
    fn end_start(&mut self) -> Option<Reset> {
        let [_, _, _, kind, flags, s1, s2, s3, s4, payload @ ..] = self.start;
        let stream = u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]);
        let kept = self.length - HEAD;
        self.skip = self.payload() - kept;
        self.length = 0;
        match kind {
            HEADERS if flags & END_STREAM != 0 && (kept == 1 || payload[..kept] == TOO_LARGE) => {
                self.too_large = Some(stream);
                Some(Reset::TooLarge)
            }
            RST_STREAM if payload[..kept] == PROTOCOL_ERROR => {
                (self.too_large != Some(stream)).then_some(Reset::Malformed)
            }
            _ => None,
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

    fn reset(stream: u8, code: u8) -> Vec<u8> {
        frame(RST_STREAM, 0, stream, &[0, 0, 0, code])
    }

    /// The resets in these frames, equal for every segmentation.
    fn found(frames: &[Vec<u8>]) -> Vec<Reset> {
        let bytes = frames.concat();
        let find = |piece: usize| {
            let (mut resets, mut found) = (Resets::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                resets.feed(piece, |reset| found.push(reset));
            }
            found
        };
        let whole = find(bytes.len());
        for piece in [1, 2, 5, 12, 13, 14] {
            assert_eq!(find(piece), whole, "{piece}");
        }
        whole
    }

    #[test]
    fn refused_requests_are_found() {
        let settings = frame(4, 0, 0, &[0; 12]);
        // A payload that looks like a reset.
        let data = frame(0, END_STREAM, 1, &reset(1, 1));
        let head = frame(HEADERS, 4, 1, b"\x88");
        let frames = [
            settings,
            head,
            data,
            reset(5, 8),
            reset(7, 1),
            frame(HEADERS, 4 | END_STREAM, 3, &TOO_LARGE),
            reset(3, 1),
            frame(HEADERS, 4 | END_STREAM, 11, b"\xbe"),
            reset(9, 1),
        ];
        use Reset::{Malformed, TooLarge};
        assert_eq!(found(&frames), [Malformed, TooLarge, TooLarge, Malformed]);
    }

    #[test]
    fn replies_and_ordinary_resets_are_none() {
        let frames = [
            frame(HEADERS, 4 | END_STREAM, 1, b"\x88\xbe"),
            frame(HEADERS, 4 | END_STREAM, 1, b"\x48\x82\x64\x02\xbe"),
            frame(HEADERS, 4, 1, b"\x88\xbe\xbf"),
            reset(1, 0),
            reset(3, 7),
            frame(6, 1, 0, &[0; 8]),
            frame(4, 1, 0, &[]),
            frame(HEADERS, 4, 1, b"a block of some length"),
        ];
        assert_eq!(found(&frames), []);
    }
}
