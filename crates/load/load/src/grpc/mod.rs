//! gRPC calls: the method and its messages, the reply and its outcome, and counts by status.
//!
//! | module | content |
//! |---|---|
//! | [`call`](GrpcCall) | The method, and the messages of a request |
//! | `reply` | The messages and the status of a reply, and its outcome |
//! | [`statuses`](GrpcStatuses) | Counts of calls by status |
//!
//! Calls are sent like other requests of HTTP/2: a call is due at its time, and its messages are its body. Only unary,
//! server-streaming and client-streaming methods have a fixed body. A method with streams in both directions has none,
//! because its next message may depend on a reply.

mod call;
mod reply;
mod statuses;

pub use call::GrpcCall;
pub(crate) use reply::GrpcReply;
pub use statuses::GrpcStatuses;

/// Longest message of a reply in bytes. A longer one is a violation of the protocol. Most clients accept 4 MiB unless
/// configured otherwise.
pub(crate) const MESSAGE_LIMIT: usize = 64 << 20;
