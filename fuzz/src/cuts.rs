//! How an input says where its bytes are cut into pieces.
//!
//! The first byte holds the number of cuts in its lower four bits and a flag in its highest; two
//! bytes for each cut follow, little-endian; the rest is the stream. A stream without cuts is a
//! readable file behind one zero byte.

/// A stream and the places where it is cut.
pub(crate) struct Cut<'a> {
    /// The whole stream.
    pub(crate) stream: &'a [u8],
    /// What the input's flag says.
    pub(crate) flag: bool,
    ends: Vec<usize>,
}

impl<'a> Cut<'a> {
    /// Takes an input apart; an empty one, or one without all its cuts, is none.
    pub(crate) fn from_input(input: &'a [u8]) -> Option<Self> {
        let (first, rest) = input.split_first()?;
        let (cuts, stream) = rest.split_at_checked(usize::from(first & 15) * 2)?;
        let (cuts, _) = cuts.as_chunks::<2>();
        let mut ends: Vec<usize> = cuts
            .iter()
            .map(|cut| usize::from(u16::from_le_bytes(*cut)) % (stream.len() + 1))
            .collect();
        ends.sort_unstable();
        ends.push(stream.len());
        Some(Self {
            stream,
            flag: first & 0x80 != 0,
            ends,
        })
    }

    /// The pieces in order; some may be empty.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let piece = &self.stream[from..*end];
            from = *end;
            piece
        })
    }
}
