//! The client's end of HTTP/2 (RFC 9113).
//!
//! | module | content |
//! |---|---|
//! | [`client`](Http2StreamClient) | The state machine: open, send, receive, close |
//! | `error` | Errors of connections and streams |
//! | [`frame`] | Frame headers and their constants |
//! | `reader` | Received bytes to frames |
//! | `block_assembly` | Field blocks of several frames |
//! | `frame_sender`, `output` | Frames to be sent, within the limits of the server |
//! | `settings` | SETTINGS of the peer |
//! | `streams`, `closed` | Open streams, and those closed recently |
//! | `window` | Flow control |
//! | [`hpack`] | Field compression (RFC 7541) |
//!
//! # Life of a received frame
//!
//! 1. **Cut** (`reader`): a frame waits until it is complete. DATA is passed on in pieces.
//! 2. **Dispatch** (`client/receive`): SETTINGS come first, and nothing interrupts a field block.
//! 3. **Field block** (`client/fields`): HEADERS and CONTINUATION are joined (`block_assembly`), decoded and checked.
//!    **Content** (`client/content`): windows and the content length are checked.
//!    **Control** (`client/control`): SETTINGS, PING, GOAWAY, RST_STREAM, WINDOW_UPDATE.
//! 4. **Event** ([`EventSink`](crate::streams::EventSink)): the caller learns about each stream by its token.
//!
//! A fault of one stream ends the stream ([`StreamEnd::Malformed`](crate::streams::StreamEnd::Malformed)). A fault of the
//! connection ends the connection ([`ConnectionError`]) and names the token of the stream that caused it.
//!
//! # Absent
//!
//! | absent | reason |
//! |---|---|
//! | server push | Refused with SETTINGS_ENABLE_PUSH = 0 |
//! | trailers of requests, CONNECT | The load generator does not send them |
//! | priorities | Deprecated (RFC 9113, section 5.3.2); a `priority` field is an ordinary field |
//! | time limits | The caller has the clock, and resets streams |

mod block_assembly;
mod client;
mod closed;
mod error;
pub mod frame;
mod frame_sender;
pub mod hpack;
mod output;
mod reader;
mod settings;
mod streams;
mod window;

pub use crate::streams::error_code::http2::ErrorCode;
pub use client::Http2StreamClient;
pub use error::ConnectionError;
pub use frame::StreamId;
