//! A pull scanner for XML 1.0 with namespaces that enforces every bound of [`Limits`].
//!
//! `markup` finds the pieces. The scanner adds the rules for a service on an open network: no DOCTYPE (WS-I R1008), no
//! processing instruction in messages (R1009), UTF-8 or UTF-16 only (R1012), only the five named entities, bounded
//! prefixes, exactly one root. Names and values borrow from the document.

use std::borrow::Cow;

use thiserror::Error;

use crate::limits::Limit;

mod encoding;
mod markup;
mod scanner;
mod text;

pub use encoding::decode;
pub(crate) use markup::{Markup, Piece, QName};
pub use scanner::Scanner;

pub(crate) use encoding::declares_utf16;
pub(crate) use text::{is_char, is_name, shortened};

/// Reason why a document was rejected, with the byte position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum XmlError {
    /// A bound of [`Limits`] is exceeded.
    #[error("byte {position}: more than {allowed} {limit}")]
    Limit {
        /// The limit.
        limit: Limit,
        /// Its value.
        allowed: usize,
        /// Position at which it was exceeded.
        position: usize,
    },
    /// A DOCTYPE, which R1008 forbids.
    #[error("byte {position}: a DOCTYPE is not allowed (R1008)")]
    Doctype {
        /// Start position.
        position: usize,
    },
    /// A processing instruction, which R1009 forbids.
    #[error("byte {position}: a processing instruction is not allowed (R1009)")]
    Instruction {
        /// Start position.
        position: usize,
    },
    /// An undefined entity, or a reference to an invalid character.
    #[error(
        "byte {position}: the entity &{name}; is not defined: only lt, gt, amp, apos, quot and numbers of characters are"
    )]
    Entity {
        /// Its name.
        name: String,
        /// Start position.
        position: usize,
    },
    /// An encoding other than UTF-8 or UTF-16, or invalid bytes.
    #[error("byte {position}: {violation}: send UTF-8 or UTF-16 (R1012)")]
    Encoding {
        /// Description of the error.
        violation: String,
        /// Byte position.
        position: usize,
    },
    /// An undeclared prefix, or an invalid declaration.
    #[error("byte {position}: the namespace prefix {prefix:?} is not declared or may not be")]
    Prefix {
        /// The prefix.
        prefix: String,
        /// Position of its use.
        position: usize,
    },
    /// Another violation of well-formedness.
    #[error("byte {position}: not well-formed XML: {violation}")]
    Malformed {
        /// Description of the error.
        violation: String,
        /// Byte position.
        position: usize,
    },
}

/// A qualified name. The namespace is empty if there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// The namespace's URI.
    pub namespace: Cow<'a, str>,
    /// The part after the prefix.
    pub local: &'a str,
}

/// An attribute with its references resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name. Unprefixed attributes are in no namespace.
    pub name: Name<'a>,
    /// Its value, normalised as in XML 1.0, section 3.3.3.
    pub value: Cow<'a, str>,
}

/// One token of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Start of an element. Its attributes are in [`Scanner::attributes`].
    Start(Name<'a>),
    /// End of the innermost open element.
    End,
    /// Character data: a piece without references, or one reference, or a CDATA section.
    Text(Cow<'a, str>),
    /// End of a complete document.
    Eof,
}

impl Name<'_> {
    /// Returns true for the name `local` in `namespace`.
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }
}

/// Maximum number of characters of an error description, including quotations of the document.
const QUOTED: usize = 200;

fn malformed(violation: &str, position: usize) -> XmlError {
    XmlError::Malformed {
        violation: shortened(violation, QUOTED),
        position,
    }
}
