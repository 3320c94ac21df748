//! HTTP over multiplexed streams as state machines: bytes in, events and bytes out.
//!
//! [`http2::Client`] is the client's end of an HTTP/2 connection (RFC 9113) with its field compression (RFC 7541). The
//! load generator owns the socket, the clock and the exchanges. It passes received bytes in and sends the output.
//!
//! | module | content |
//! |---|---|
//! | [`catalogue`] | The fields of a plan's requests, with a number for each |
//! | [`http2`] | HTTP/2: frames, flow control, streams, HPACK |
//!
//! The Huffman code of RFC 7541 and the classes of reply fields are independent of the version of HTTP. The state
//! machine is our own for two reasons: the client's CPU time per request limits the rate that a machine can offer, and
//! each request needs one exact outcome, also when the server or the connection fails.

pub mod catalogue;
mod counters;
mod error_code;
mod event;
mod field_class;
mod field_decoder;
mod head;
pub mod http2;
pub mod http3;
mod huffman;
mod prefix_integer;
mod prefix_string;
mod recorded_fields;
mod reply_decoder;
mod reply_state;
mod request;

pub use counters::{ClientCounters, CodeCounts};
pub use error_code::ErrorCode;
pub use event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
pub use field_class::FieldClass;
pub use field_decoder::DecodedField;
pub use request::{OpenError, StreamRequest};
