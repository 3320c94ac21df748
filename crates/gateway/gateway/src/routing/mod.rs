//! The routing stage: selects the route of a request by its host and the longest path prefix.
//!
//! [`resolved`] is a configuration with names resolved and files read, shared by all threads. [`router`] has the routes
//! of one thread, each with its connections. [`renewal`] resolves names again.

pub(crate) mod field_changes;
pub(crate) mod forwarding;
mod hosts;
pub(crate) mod offers;
pub(crate) mod renewal;
pub(crate) mod resolved;
pub(crate) mod router;
