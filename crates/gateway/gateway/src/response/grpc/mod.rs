//! Replies to gRPC calls.
//!
//! - `status`: the fields of a status.
//! - `refusal`: the reply to a call that is refused.
//! - `body`: the body of a reply, with the deadline and the status in its trailers.

pub(crate) mod body;
pub(crate) mod refusal;
pub(super) mod status;
