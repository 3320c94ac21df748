//! Server reflection: its messages, the answers of a server, and the questions of a client.

mod client;
mod messages;
mod server;

pub use client::{ReflectionClient, ReflectionError, ReflectionStep};
pub use messages::{
    ErrorResponse, ExtensionNumberResponse, ExtensionRequest, FileDescriptorResponse,
    ListServiceResponse, REFLECTION_ALPHA_PROTO, REFLECTION_METHOD, REFLECTION_PROTO,
    REFLECTION_SERVICES, ReflectionAnswer, ReflectionQuestion, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
pub use server::ReflectionServer;
