//! End of a piece of markup whose bytes arrive one after another.

use memchr::{memchr, memchr3};

/// Progress of the search for the end of a tag, comment, section or instruction.
#[derive(Debug, Default)]
pub(super) struct MarkupEnd {
    from: usize,
    quote: Option<u8>,
}

impl MarkupEnd {
    /// Position after the end of the markup at the start of `bytes`; `None` if incomplete. The next call may pass the
    /// same markup with more bytes and continues the search.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = match bytes.get(1)? {
            b'!' | b'?' => self.of_section(bytes),
            _ => self.of_tag(bytes),
        }?;
        *self = Self::default();
        Some(end)
    }

    fn of_tag(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            let rest = &bytes[self.from..];
            let found = match self.quote {
                Some(quote) => memchr(quote, rest),
                None => memchr3(b'>', b'"', b'\'', rest),
            };
            let Some(at) = found else {
                self.from = bytes.len();
                return None;
            };
            self.from += at + 1;
            match (self.quote, rest[at]) {
                (Some(_), _) => self.quote = None,
                (None, b'>') => return Some(self.from),
                (None, quote) => self.quote = Some(quote),
            }
        }
    }

    fn of_section(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            let Some(at) = memchr(b'>', &bytes[self.from..]) else {
                self.from = bytes.len();
                return None;
            };
            self.from += at + 1;
            let whole = &bytes[..self.from];
            let ends = |start: &[u8], end: &[u8]| {
                whole.len() >= start.len() + end.len() && whole.ends_with(end)
            };
            let is_over = match whole {
                [b'<', b'?', ..] => ends(b"<?", b"?>"),
                [b'<', b'!', b'-', b'-', ..] => ends(b"<!--", b"-->"),
                _ if whole.starts_with(b"<![CDATA[") => ends(b"<![CDATA[", b"]]>"),
                _ => true,
            };
            if is_over {
                return Some(self.from);
            }
        }
    }
}
