//! gRPC without a network: message framing, statuses, schemas, JSON, health, server reflection.
//!
//! Functions over bytes and text, for the client of the load generator and for the bookshop. HTTP/2, header fields,
//! deadlines and the reading of files are left to the callers. Messages are never compressed here.

mod frame;
mod health;
mod method;
mod nearest;
pub mod reflection;
mod schema;
mod status;

pub use frame::{
    FrameError, FramePart, FrameReader, FramedMessage, MessageReader, PREFIX_BYTES, frame,
    write_frame,
};
pub use health::{
    HEALTH, HEALTH_PROTO, HealthCheckRequest, HealthCheckResponse, HealthListRequest,
    HealthListResponse, ServingStatus,
};
pub use method::{DecodeError, JsonError, Method, MethodKind};
pub use schema::{MethodError, ProtoFiles, Schema, SchemaError};
pub use status::{Code, Status, decode_message, encode_message};
