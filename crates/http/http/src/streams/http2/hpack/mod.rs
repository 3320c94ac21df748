//! HPACK, the field compression of HTTP/2 (RFC 7541).
//!
//! | module | content |
//! |---|---|
//! | `static_table` | The 61 fields that both ends know |
//! | `table` | The fields that a connection has seen, for decoding |
//! | `decode` | Blocks of the server, within limits |
//! | `plan` | The fields of a plan, encoded once for all connections |
//! | `encode` | Blocks of a connection, mostly as indices |

mod decode;
mod encode;
mod plan;
mod static_table;
mod table;

pub use decode::{BlockDecoder, HpackError};
pub use encode::BlockEncoder;
pub use plan::FieldPlan;

/// Capacity of the dynamic table of each end, in bytes: the initial value of SETTINGS_HEADER_TABLE_SIZE.
pub const TABLE_SIZE: usize = 4096;

/// Bytes that an entry counts beyond name and value (RFC 7541, section 4.1).
pub const ENTRY_OVERHEAD: usize = 32;
