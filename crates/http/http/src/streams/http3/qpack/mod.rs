//! QPACK, the field compression of HTTP/3 (RFC 9204), without a dynamic table.
//!
//! | module | content |
//! |---|---|
//! | `static_table` | The 99 fields that both ends know |
//! | `decode` | Field sections of the peer, within limits |
//! | `plan` | The fields of a plan, encoded once for all connections |
//! | `encode` | Field sections of requests and replies |
//!
//! The capacity of the dynamic table is 0 in both directions. Sections then depend on no others, and the streams for
//! instructions are not needed.

mod decode;
mod encode;
mod plan;
mod static_table;

pub use decode::{QpackError, SectionDecoder};
pub use encode::{encode, encode_fields};
pub use plan::FieldPlan;
