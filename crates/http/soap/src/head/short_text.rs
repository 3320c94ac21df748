//! Text of an element in a stream, short enough for a word or a name.

/// Text of an element, trimmed, of at most 96 bytes.
#[derive(Debug)]
pub struct ShortText {
    bytes: [u8; LONGEST],
    len: usize,
    is_other: bool,
}

/// Maximum length of the text, in bytes.
const LONGEST: usize = 96;

impl Default for ShortText {
    fn default() -> Self {
        Self {
            bytes: [0; LONGEST],
            len: 0,
            is_other: false,
        }
    }
}

impl ShortText {
    /// Appends text.
    pub fn push(&mut self, text: &[u8]) {
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
    pub fn spoil(&mut self) {
        self.is_other = true;
    }

    /// The text; `None` if it is too long or invalid.
    pub fn read(&self) -> Option<&[u8]> {
        (!self.is_other).then(|| self.bytes[..self.len].trim_ascii_end())
    }
}
