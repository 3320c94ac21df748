//! Reasons to give up a reply.

use thiserror::Error;

use super::{FIELDS_LIMIT, HEAD_LIMIT};
use crate::reply::NoMemory;

/// A reply that is invalid or cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Not an HTTP/1 head.
    #[error("not an HTTP/1.1 reply: {0}")]
    Head(String),
    /// A head beyond the limits.
    #[error("the head is above the limit of {HEAD_LIMIT} bytes or {FIELDS_LIMIT} fields")]
    HeadTooLong,
    /// Lengths that contradict each other, or are no numbers.
    #[error("contradictory or invalid body length")]
    Length,
    /// A transfer coding other than chunked.
    #[error("transfer coding {0:?} was not requested")]
    Coding(String),
    /// Broken chunked framing.
    #[error("broken chunked body: {0}")]
    Chunked(&'static str),
    /// An unrequested switch of protocols.
    #[error("switch of protocols that was not requested")]
    Switch,
    /// The connection ended inside a reply.
    #[error("body shorter than announced")]
    Short,
    /// No memory for a coded body. The server is not the cause.
    #[error(transparent)]
    Memory(#[from] NoMemory),
}
