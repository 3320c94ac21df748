//! gRPC without a network: message framing and statuses.
//!
//! Functions over bytes, for the client of the load generator, for the gateway and for the bookshop. HTTP/2, header
//! fields and deadlines are left to the callers, schemas to `posthaste_grpc_schema`. Messages are never compressed here.

mod frame;
mod status;

pub use frame::{
    FrameError, FramePart, FrameReader, FramedMessage, MessageReader, PREFIX_BYTES, frame,
    write_frame,
};
pub use status::{Code, Status, decode_message, encode_message};
