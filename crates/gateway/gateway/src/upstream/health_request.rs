//! The request of a health check.

use hyper::header::{HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};

use super::target::UpstreamTarget;
use crate::request::body::RequestBody;

/// A GET for `path`, with the name of the upstream as Host.
pub(super) fn health_request(target: &UpstreamTarget, path: &Uri) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::Nothing);
    *request.uri_mut() = path.clone();
    let host = target.host.clone();
    request.headers_mut().insert(HOST, host);
    let agent = HeaderValue::from_static("posthaste health check");
    request.headers_mut().insert(USER_AGENT, agent);
    request
}
