//! XML format of the vocabulary.

mod children;
mod error;
mod read;
mod write;

use posthaste_soap::xml::Scanner;

pub use error::DocumentError;

use crate::document::Document;

/// Accepted namespaces; elements in none are accepted, too. The first is written.
pub const NAMESPACES: [&str; 2] = ["http://wsqos.org/", "http://www.wsqos.net/schemas/"];

/// Element of foreign extensions. It may occur anywhere and is skipped.
const EXTENSION: &str = "extension";

impl Document {
    /// Reads a document from the element that `scanner` has started last, which may be inside a WSDL.
    pub fn read_from(scanner: &mut Scanner<'_>) -> Result<Self, DocumentError> {
        let document = read::read(scanner)?;
        document.check()?;
        Ok(document)
    }

    /// Reads a document of at most [`bounds::BYTES`](crate::bounds::BYTES).
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document = read::read_bytes(bytes)?;
        document.check()?;
        Ok(document)
    }

    /// The document as XML, in the first of [`NAMESPACES`].
    pub fn write(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>");
        self.write_into(&mut out);
        out.push('\n');
        out
    }

    /// Appends the document's root element, for use inside another document.
    pub fn write_into(&self, out: &mut String) {
        write::write(self, out);
    }
}
