//! Start of an element's text in a stream, long enough for a word or a name.

/// Trimmed start of a text.
#[derive(Debug)]
pub(crate) struct Word {
    bytes: [u8; LONGEST],
    len: usize,
    is_other: bool,
}

/// Maximum length of the text, in bytes.
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
    /// Appends text.
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

    /// Marks the text as invalid: it contains an element, or its element is not understood.
    pub(crate) fn spoil(&mut self) {
        self.is_other = true;
    }

    /// The text; `None` if it is too long or invalid.
    pub(crate) fn read(&self) -> Option<&[u8]> {
        (!self.is_other).then(|| self.bytes[..self.len].trim_ascii_end())
    }
}
