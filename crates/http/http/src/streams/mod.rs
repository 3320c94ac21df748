//! HTTP over multiplexed streams as state machines: bytes in, events and bytes out.
//!
//! [`http2::Http2StreamClient`] is the client's end of an HTTP/2 connection (RFC 9113) with its field compression (RFC
//! 7541), and [`http3::Http3StreamClient`] that of an HTTP/3 connection (RFC 9114) with QPACK (RFC 9204). The load
//! generator owns the sockets, QUIC, the clock and the exchanges. It passes received bytes in and sends the output.
//!
//! | module | content |
//! |---|---|
//! | [`catalogue`] | The fields of a plan's requests, with a number for each |
//! | [`http2`] | HTTP/2: frames, flow control, streams, HPACK |
//! | [`http3`] | HTTP/3 above the streams of QUIC: frames, QPACK |
//! | [`event`](EventSink) | Events of a connection |
//! | [`error_code`](StreamErrorCode) | Error codes of both versions |
//! | [`counters`](ClientCounters) | Counts for reports |
//! | [`request`](StreamRequest) | A request, and the reasons against it |
//! | `reply_decoder`, `field_decoder` | Fields of replies, with a memory of the last block |
//! | `stream_table`, `shutdown_state` | Open streams, and the end of the connection |
//! | `head`, `reply_state` | Rules for the fields of a reply, and for the order of its parts |
//! | `field_class`, `recorded_fields` | Classes and copies of fields |
//! | `prefix_integer`, `prefix_string`, `huffman` | Integers and strings of HPACK and QPACK |
//!
//! Everything outside of the two modules is independent of the version of HTTP. The state machines are our own for two
//! reasons: the client's CPU time per request limits the rate that a machine can offer, and each request needs one exact
//! outcome, also when the server or the connection fails.

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
mod shutdown_state;
mod stream_table;

pub use counters::{ClientCounters, CodeCounts};
pub use error_code::StreamErrorCode;
pub use event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
pub use field_class::FieldClass;
pub use field_decoder::DecodedField;
pub use request::{OpenError, StreamRequest};
