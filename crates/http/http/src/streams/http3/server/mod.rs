//! The server's end of HTTP/3 (RFC 9114).
//!
//! QUIC and the clock belong to the caller, who has a task or a state for each stream. The parts here have one stream
//! each, so that they can be on different tasks:
//!
//! | part | stream |
//! |---|---|
//! | [`RequestReader`] | A request: received bytes to its head and content |
//! | [`append_head`], [`append_content`], [`append_trailers`] | The reply to it: frames |
//! | [`ClientStreams`] | The unidirectional streams of the client: SETTINGS, GOAWAY, QPACK |
//! | [`opening`], [`append_goaway`] | Our control stream |
//!
//! An error of a [`ClientStreams`] ends the connection. An error of a request ends its stream or the connection
//! ([`RequestError`]).
//!
//! # Absent
//!
//! | absent | reason |
//! |---|---|
//! | dynamic table of QPACK | Its capacity is 0 in both directions |
//! | server push | The clients of today do not permit it |
//! | extended CONNECT, datagrams | No service here has a protocol over them |
//! | interim replies | The services here read a body as soon as it arrives |

mod control;
mod head;
mod reply;
mod request;

pub use control::{ClientStreams, append_goaway, opening};
pub use head::{LIST_LIMIT, RequestHead};
pub use reply::{append_content, append_head, append_trailers};
pub use request::{RequestError, RequestPiece, RequestReader};
