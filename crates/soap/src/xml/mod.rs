//! A pull scanner over XML 1.0 with namespaces, in which every bound of [`Limits`] holds.
//!
//! `markup` finds the pieces; the scanner adds what a service on an open network needs: no DOCTYPE
//! (WS-I R1008), no processing instruction in messages (R1009), UTF-8 or UTF-16 only (R1012), only the five named
//! entities, bounded prefixes, exactly one root. Names and values borrow from the document.

use std::borrow::Cow;

use thiserror::Error;

use crate::limits::Limit;

mod markup;
mod scanner;
mod text;

pub use scanner::Scanner;
pub use text::decode;
pub(crate) use text::{declares_utf16, is_char, is_name, shortened};

/// Why a document was refused, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum XmlError {
    /// More of something than [`Limits`] allows.
    #[error("byte {position}: more than {allowed} {limit}")]
    Limit {
        /// Which limit.
        limit: Limit,
        /// Its value.
        allowed: usize,
        /// Where it was passed.
        position: usize,
    },
    /// A DOCTYPE, which R1008 forbids.
    #[error("byte {position}: a DOCTYPE is not allowed (R1008)")]
    Doctype {
        /// Where it starts.
        position: usize,
    },
    /// A processing instruction, which R1009 forbids.
    #[error("byte {position}: a processing instruction is not allowed (R1009)")]
    Instruction {
        /// Where it starts.
        position: usize,
    },
    /// An entity that is not one of the five, or a reference to no character of XML.
    #[error(
        "byte {position}: the entity &{name}; is not defined: only lt, gt, amp, apos, quot and numbers of characters are"
    )]
    Entity {
        /// Its name.
        name: String,
        /// Where it starts.
        position: usize,
    },
    /// Another encoding than UTF-8 or UTF-16, or bytes that are not in it.
    #[error("byte {position}: {what}: send UTF-8 or UTF-16 (R1012)")]
    Encoding {
        /// What is wrong.
        what: String,
        /// Where.
        position: usize,
    },
    /// A prefix nobody declared, or a declaration that is not allowed.
    #[error("byte {position}: the namespace prefix {prefix:?} is not declared or may not be")]
    Prefix {
        /// The prefix.
        prefix: String,
        /// Where it is used.
        position: usize,
    },
    /// Not well-formed in some other way.
    #[error("byte {position}: not well-formed XML: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// Where.
        position: usize,
    },
}

/// A name in a namespace; the namespace is empty where there is none.
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
    /// Its name; unprefixed attributes are in no namespace.
    pub name: Name<'a>,
    /// Its value, normalised as XML 1.0 section 3.3.3 says.
    pub value: Cow<'a, str>,
}

/// One step through a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// An element starts; its attributes are in [`Scanner::attributes`].
    Start(Name<'a>),
    /// The element that was started last and not ended yet, ends.
    End,
    /// Character data: a piece without references, or one reference, or a CDATA section.
    Text(Cow<'a, str>),
    /// The document is over, and was whole.
    Eof,
}

impl Name<'_> {
    /// Whether this is the name `local` in `namespace`.
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }
}

/// Characters of the document that an error repeats at most, its own words counted.
const QUOTED: usize = 200;

fn malformed(what: &str, position: usize) -> XmlError {
    XmlError::Malformed {
        what: shortened(what, QUOTED),
        position,
    }
}
