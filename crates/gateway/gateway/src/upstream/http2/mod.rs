//! HTTP/2 to upstreams. `http2_requests` selects a connection for each request.
//!
//! - `connection`: a connection, shared by requests of its thread and driven by a task.
//! - `pool`: the connections of one thread to one upstream.
//! - `exchange`: one request and the head of its reply.
//! - `upload`: the body of a request. It continues in a task of its own after the head of the reply, because each
//!   direction of a bidirectional stream may be the one that waits.
//! - `body`: the body of a reply.
//!
//! This uses `h2` and not hyper's client for two reasons. hyper reports a stream that the upstream has reset with
//! NO_ERROR as a complete reply, and does not return a request that the upstream has refused. Its client also takes one
//! or two tasks for each request.

pub(super) mod body;
pub(super) mod connection;
pub(super) mod exchange;
mod health;
pub(super) mod pool;
mod upload;

pub(super) use self::body::Http2Body;
pub(super) use self::health::check_by_http2;
