//! Health checks over HTTP/2.

use std::rc::Rc;
use std::time::Duration;

use hyper::{StatusCode, Uri};
use posthaste_serve::Stream;
use posthaste_units::Dscp;

use super::connection::{Http2Connection, MAX_STREAMS};
use super::exchange::{exchange, head_for_http2};
use crate::upstream::health_request::health_request;
use crate::upstream::target::UpstreamTarget;

/// Sends a check on a new connection. Returns the status of its reply, if there is one.
pub(in crate::upstream) async fn check_by_http2(
    stream: Stream,
    target: &UpstreamTarget,
    path: &Uri,
    limit: Duration,
) -> Option<StatusCode> {
    if target.is_https() && !stream.agreed_on_http2() {
        return None;
    }
    let Ok(connection) = Http2Connection::new(stream, Dscp::DEFAULT, MAX_STREAMS).await else {
        return None;
    };
    let (head, body) = health_request(target, path).into_parts();
    let lease = Rc::new(connection).lease();
    let (Some(mut lease), Ok(head)) = (
        lease,
        head_for_http2(&head, &target.host, target.is_https()),
    ) else {
        return None;
    };
    let received = exchange(&mut lease, head, body, limit, None).await;
    received.ok().map(|received| received.reply.status())
}
