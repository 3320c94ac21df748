//! Replies to gRPC calls.
//!
//! - `status`: the fields of a status.
//! - `body`: the body of a reply, with the deadline and the status in its trailers.

pub(crate) mod body;
pub(super) mod status;
