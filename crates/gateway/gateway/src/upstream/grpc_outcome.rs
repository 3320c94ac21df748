//! Outcome of a gRPC call as the head of its reply states it.

use hyper::header::HeaderName;
use hyper::{Response, Version};

use crate::request::media::is_grpc;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Statuses that mean a failure of the server: DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, DATA_LOSS.
const FAILURES: [&[u8]; 4] = [b"4", b"13", b"14", b"15"];

/// True for a reply without messages whose status is a failure of the server (Trailers-Only of gRPC over HTTP/2). Other
/// replies state the status after their messages.
pub(crate) fn is_failed_call<B>(reply: &Response<B>) -> bool {
    // Replies over HTTP/1.1 cost no more than this comparison.
    if reply.version() != Version::HTTP_2 {
        return false;
    }
    let status = reply.headers().get(STATUS).map(|status| status.as_bytes());
    status.is_some_and(|status| FAILURES.contains(&status)) && is_grpc(reply.headers())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_statuses_of_servers_are_failures_others_are_not() {
        let reply = |version, media: &str, status: &str| {
            let reply = Response::builder().version(version);
            let reply = reply.header("content-type", media);
            reply.header("grpc-status", status).body(()).unwrap()
        };
        let call =
            |status| is_failed_call(&reply(Version::HTTP_2, "application/grpc+proto", status));
        for status in ["4", "13", "14", "15"] {
            assert!(call(status), "{status}");
        }
        for status in ["0", "1", "3", "5", "8", "12", "16", "", "014"] {
            assert!(!call(status), "{status}");
        }
        assert!(!is_failed_call(&reply(
            Version::HTTP_11,
            "application/grpc",
            "14"
        )));
        assert!(!is_failed_call(&reply(Version::HTTP_2, "text/plain", "14")));
    }
}
