//! A method that requests call.

use std::fmt;

use std::sync::Arc;

use posthaste_grpc_schema::{JsonError, Method, MethodKind, Schema};
use posthaste_http::grpc::write_frame;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::exact;

/// A method that requests call.
#[derive(Clone, Debug)]
pub struct GrpcCall {
    method: Method,
}

impl GrpcCall {
    /// Creates calls of a method. `None` if it has streams in both directions, whose next message may depend on a reply.
    pub fn new(method: Method) -> Option<Self> {
        let is_possible = method.kind() != MethodKind::BidirectionalStreaming;
        is_possible.then_some(Self { method })
    }

    /// True if a call may not set the header field: gRPC and its framing define it.
    pub fn is_reserved(field: &str) -> bool {
        let field = field.to_ascii_lowercase();
        matches!(&*field, "content-type" | "te" | "accept-encoding") || field.starts_with("grpc-")
    }

    /// The streams of the method.
    pub fn kind(&self) -> MethodKind {
        self.method.kind()
    }

    /// The method as `package.Service/Method`.
    pub fn name(&self) -> String {
        self.method.path()[1..].to_owned()
    }

    /// Appends the messages that `json` describes, with their prefixes.
    pub(crate) fn write_messages(&self, json: &str, to: &mut Vec<u8>) -> Result<(), JsonError> {
        for message in self.method.encode_requests(json)? {
            write_frame(to, &message);
        }
        Ok(())
    }
}

/// A method as it travels.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallForm {
    /// `package.Service/Method`.
    method: String,
    /// The descriptors that it needs, as a `FileDescriptorSet`.
    #[serde(with = "exact::base64")]
    schema: Arc<[u8]>,
}

impl Serialize for GrpcCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = CallForm {
            method: self.name(),
            schema: self.method.descriptor_set().into(),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for GrpcCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = CallForm::deserialize(deserializer)?;
        let schema = Schema::from_descriptor_set(&form.schema).map_err(D::Error::custom)?;
        let method = schema.find(&form.method).map_err(D::Error::custom)?;
        let both = || D::Error::custom("the method has streams in both directions");
        Self::new(method).ok_or_else(both)
    }
}

impl fmt::Display for GrpcCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_grpc_are_reserved() {
        for field in ["TE", "Content-Type", "grpc-timeout", "GRPC-Encoding"] {
            assert!(GrpcCall::is_reserved(field), "{field}");
        }
        assert!(!GrpcCall::is_reserved("x-tenant"));
    }
}
