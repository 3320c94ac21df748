//! Schemas of gRPC: `.proto` files and descriptor sets, messages as JSON, health, server reflection.
//!
//! Functions over bytes and text, for the client of the load generator and for the bookshop. Frames and statuses are in
//! `posthaste_http::grpc`. A crate of its own because nothing here is on the path of a request without placeholders.

mod health;
mod method;
mod nearest;
pub mod reflection;
mod schema;

pub use health::{
    HEALTH, HEALTH_PROTO, HealthCheckRequest, HealthCheckResponse, HealthListRequest,
    HealthListResponse, ServingStatus,
};
pub use method::{DecodeError, JsonError, Method, MethodKind};
pub use schema::{MethodError, ProtoFiles, Schema, SchemaError};
