//! The text of an element as it streams by: its beginning, as much as a word or a name needs.

/// The beginning of a text without the blanks around it.
#[derive(Debug)]
pub(crate) struct Word {
    bytes: [u8; LONGEST],
    len: usize,
    is_other: bool,
}

/// The longest text that is read, in bytes.
const LONGEST: usize = 96;

impl Default for Word {
    fn default() -> Self {
        Self {
            bytes: [0; LONGEST],
            len: 0,
            is_other: false,
        }
    }
}

impl Word {
    /// Takes more of the text.
    pub(crate) fn push(&mut self, text: &[u8]) {
        for byte in text {
            let is_blank = byte.is_ascii_whitespace();
            if self.len < self.bytes.len() && !(is_blank && self.len == 0) {
                self.bytes[self.len] = *byte;
                self.len += 1;
            } else {
                self.is_other |= !is_blank;
            }
        }
    }

    /// It is no word: an element stands in it, or what it belongs to is not understood.
    pub(crate) fn spoil(&mut self) {
        self.is_other = true;
    }

    /// The word; none where there is more than one can be.
    pub(crate) fn read(&self) -> Option<&[u8]> {
        (!self.is_other).then(|| self.bytes[..self.len].trim_ascii_end())
    }
}
