//! Elements of a header, and the readers of its blocks.

use crate::xml::Markup;

/// An element inside a header.
#[derive(Clone, Copy, Debug)]
pub struct HeaderElement<'a> {
    /// Depth in the envelope: [`BLOCK_DEPTH`](super::BLOCK_DEPTH) for a header block.
    pub depth: usize,
    /// Its namespace. Empty if it is in none, `None` for an undeclared prefix.
    pub namespace: Option<&'a str>,
    /// Its name without the prefix.
    pub local: &'a str,
    /// The rest of its tag.
    pub(super) attributes: &'a str,
}

impl<'a> HeaderElement<'a> {
    /// Value of the attribute with this literal name. References in it are not resolved.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut markup = Markup::new(self.attributes);
        while let Ok(Some((key, value))) = markup.attribute() {
            if key.written == name {
                return Some(value);
            }
        }
        None
    }
}

/// A reader of header blocks. The scan calls it for elements inside the Header only.
pub trait HeaderBlocks {
    /// An element starts at `depth`. Returns true if [`HeaderBlocks::start`] needs its name.
    fn enter(&mut self, depth: usize) -> bool;

    /// Reads the name and the attributes of an element for which [`HeaderBlocks::enter`] returned true. A reader in a pair
    /// also gets elements that only the other asked for: check depth and name.
    fn start(&mut self, element: &HeaderElement<'_>);

    /// Reads a piece of text, with references not resolved.
    fn text(&mut self, text: &[u8]);

    /// The innermost open element ends, at `depth`.
    fn end(&mut self, depth: usize);
}

/// Reads no blocks.
impl HeaderBlocks for () {
    fn enter(&mut self, _: usize) -> bool {
        false
    }

    fn start(&mut self, _: &HeaderElement<'_>) {}

    fn text(&mut self, _: &[u8]) {}

    fn end(&mut self, _: usize) {}
}

/// Two readers of the same header.
impl<A: HeaderBlocks, B: HeaderBlocks> HeaderBlocks for (A, B) {
    fn enter(&mut self, depth: usize) -> bool {
        // Both must see every element.
        self.0.enter(depth) | self.1.enter(depth)
    }

    fn start(&mut self, element: &HeaderElement<'_>) {
        self.0.start(element);
        self.1.start(element);
    }

    fn text(&mut self, text: &[u8]) {
        self.0.text(text);
        self.1.text(text);
    }

    fn end(&mut self, depth: usize) {
        self.0.end(depth);
        self.1.end(depth);
    }
}
