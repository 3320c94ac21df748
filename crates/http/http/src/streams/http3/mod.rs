//! HTTP/3 (RFC 9114): the client's end as a state machine, and the parts of the server's end.
//!
//! QUIC belongs to the caller: packets, loss, flow control, and the numbers of streams. The [`Http3StreamClient`] takes
//! the bytes of streams in, and states what the transport has to write, reset or stop. [`server`] reads requests and
//! writes replies.
//!
//! | module | content |
//! |---|---|
//! | [`client`](Http3StreamClient) | The state machine: open, send, receive, close |
//! | [`server`] | The server's end, one part per stream |
//! | `error` | Errors of connections and streams |
//! | [`frame`] | Types of frames, streams and settings |
//! | [`varint`] | Integers of variable length |
//! | `reader` | Received bytes of a stream to frames |
//! | `control_form` | Frames of a control stream |
//! | `settings` | SETTINGS of both ends |
//! | `streams` | Open streams, with what they have to send |
//! | `output` | Order of the actions for the transport |
//! | `unidirectional` | Unidirectional streams that the peer opens: control and QPACK |
//! | [`qpack`] | Field compression (RFC 9204) |
//!
//! # Life of bytes that the client receives
//!
//! 1. **Dispatch** (`client/receive`): by the kind of the stream's identifier. A stream of the server begins with its
//!    type.
//! 2. **Cut** (`reader`): HEADERS and the frames of the control stream wait until they are complete. DATA is passed on
//!    in pieces, and unknown frames are skipped.
//! 3. **Reply** (`client/reply`): fields are decoded and checked, and the content length is counted.
//!    **Control** (`client/control`): SETTINGS and GOAWAY.
//! 4. **Event** ([`EventSink`](crate::streams::EventSink)): the caller learns about each stream by its token.
//!
//! # Absent from the client
//!
//! | absent | reason |
//! |---|---|
//! | dynamic table of QPACK | Its capacity is 0 in both directions: requests are encoded once for all connections |
//! | server push | No MAX_PUSH_ID is sent |
//! | trailers of requests, CONNECT, datagrams | The load generator does not send them |
//! | priorities | A `priority` field is an ordinary field (RFC 9218) |
//! | time limits | The caller has the clock, and resets streams |

mod client;
mod control_form;
mod error;
pub mod frame;
mod output;
pub mod qpack;
mod reader;
pub mod server;
mod settings;
mod streams;
mod unidirectional;
pub mod varint;

pub use crate::streams::error_code::http3::ErrorCode;
pub use client::Http3StreamClient;
pub use error::Http3Error;
pub use frame::StreamId;
pub use output::OutputAction;
