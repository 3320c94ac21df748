//! The schema of the shop's services, compiled from the `.proto` files when reflection is first asked.

use posthaste_grpc_schema::reflection::{
    REFLECTION_ALPHA_PROTO, REFLECTION_PROTO, ReflectionServer,
};
use posthaste_grpc_schema::{HEALTH_PROTO, Schema, SchemaError};
use posthaste_http::grpc::{Code, Status};

use crate::service::ShopService;

/// The file of the shop's service, by the name under which others import it.
pub(crate) const BOOKSHOP_PROTO: (&str, &str) = (
    "bookshop/v1/bookshop.proto",
    include_str!("../../proto/bookshop/v1/bookshop.proto"),
);

const FILES: &[(&str, &str)] = &[
    BOOKSHOP_PROTO,
    HEALTH_PROTO,
    REFLECTION_PROTO,
    REFLECTION_ALPHA_PROTO,
];

/// The schema of the gRPC services: the shop's own, health, and both versions of reflection.
pub fn schema() -> Result<Schema, SchemaError> {
    let roots: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    Schema::compile(&roots, FILES)
}

/// Answers about the schema.
pub(super) fn reflection(shop: &ShopService) -> Result<&ReflectionServer, Status> {
    let server = shop.reflection().get_or_init(|| {
        let schema = schema();
        schema.map(|schema| ReflectionServer::new(&schema))
    });
    let broken = |error: &SchemaError| Status::new(Code::Internal, error.to_string());
    server.as_ref().map_err(broken)
}
