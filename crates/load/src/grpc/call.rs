//! A method that requests call.

use std::fmt;

use posthaste_grpc::{JsonError, Method, MethodKind, write_frame};

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
