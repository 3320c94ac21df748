//! Messages of `grpc.health.v1`. `proto/grpc/health/v1/health.proto` describes them.

use std::collections::HashMap;

/// The file, by the name under which others import it.
pub const HEALTH_PROTO: (&str, &str) = (
    "grpc/health/v1/health.proto",
    include_str!("../proto/grpc/health/v1/health.proto"),
);

/// The service's name.
pub const HEALTH: &str = "grpc.health.v1.Health";

/// Request of `Check` and `Watch`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckRequest {
    /// Full name of a service; empty for the whole server.
    #[prost(string, tag = "1")]
    pub service: String,
}

/// Reply of `Check` and `Watch`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckResponse {
    /// The status.
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub status: i32,
}

/// Request of `List`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthListRequest {}

/// Reply of `List`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthListResponse {
    /// Status by the name of the service.
    #[prost(map = "string, message", tag = "1")]
    pub statuses: HashMap<String, HealthCheckResponse>,
}

/// Health of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ServingStatus {
    /// Not known.
    Unknown = 0,
    /// Calls are answered.
    Serving = 1,
    /// Calls fail.
    NotServing = 2,
    /// There is no such service.
    ServiceUnknown = 3,
}
