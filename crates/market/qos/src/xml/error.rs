//! Errors of reading a document.

use posthaste_soap::xml::XmlError;
use thiserror::Error;

use crate::bounds::Excess;

/// Reason why a document was rejected. Positions are of the byte after the element's tag.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// Not XML, or larger than the limits allow.
    #[error("{0}")]
    Xml(#[from] XmlError),
    /// XML with another root element.
    #[error("the root element is {0:?}: expected wsqos with one definition")]
    NotWsQos(String),
    /// An unexpected element or text.
    #[error("byte {position}: {found} in {inside}: expected {wanted}")]
    Unexpected {
        /// The unexpected item.
        found: String,
        /// Name of the enclosing element.
        inside: String,
        /// Permitted items.
        wanted: String,
        /// Byte position.
        position: usize,
    },
    /// A repeated item that may occur once.
    #[error("byte {position}: {item} occurs twice")]
    Twice {
        /// The element or name.
        item: String,
        /// Byte position.
        position: usize,
    },
    /// A missing element or attribute.
    #[error("byte {position}: {inside} has no {item}")]
    Missing {
        /// The missing item.
        item: &'static str,
        /// Name of the enclosing element.
        inside: String,
        /// Byte position.
        position: usize,
    },
    /// An invalid value.
    #[error("byte {position}: {inside} is {text:?}: expected {wanted}")]
    Value {
        /// The element or attribute.
        inside: String,
        /// The invalid value.
        text: String,
        /// Description of valid values.
        wanted: String,
        /// Byte position.
        position: usize,
    },
    /// A limit is exceeded.
    #[error("{0}")]
    TooMuch(#[from] Excess),
}
