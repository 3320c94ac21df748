//! Why a document was refused.

use posthaste_soap::xml::XmlError;
use thiserror::Error;

use crate::qos::bounds::Excess;

/// Why a document was refused; where a byte is named, it is the one behind the element's tag.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// Not XML, or more of it than is allowed.
    #[error("{0}")]
    Xml(#[from] XmlError),
    /// XML, and something else.
    #[error("the root element is {0:?}: want wsqos with one definition in it")]
    NotWsQos(String),
    /// An element or text where none of that kind stands.
    #[error("byte {position}: {found} in {inside}: want {wanted}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// In which element.
        inside: String,
        /// What may stand there.
        wanted: String,
        /// Where.
        position: usize,
    },
    /// Something that stands once stands again.
    #[error("byte {position}: {what} stands twice")]
    Twice {
        /// Which element or name.
        what: String,
        /// Where.
        position: usize,
    },
    /// An element or attribute that must stand does not.
    #[error("byte {position}: {inside} has no {what}")]
    Missing {
        /// Which.
        what: &'static str,
        /// In which element.
        inside: String,
        /// Where.
        position: usize,
    },
    /// A value that cannot be read.
    #[error("byte {position}: {inside} is {text:?}: want {wanted}")]
    Value {
        /// The element or attribute.
        inside: String,
        /// What stands there.
        text: String,
        /// What may.
        wanted: String,
        /// Where.
        position: usize,
    },
    /// More than there may be of something.
    #[error("{0}")]
    TooMuch(#[from] Excess),
}
