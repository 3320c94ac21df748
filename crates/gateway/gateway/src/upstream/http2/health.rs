//! Health checks over HTTP/2.

use std::rc::Rc;
use std::time::Duration;

use hyper::Uri;
use posthaste_serve::Stream;
use posthaste_units::Dscp;

use super::connection::{Http2Connection, MAX_STREAMS};
use super::exchange::{exchange, head_for_http2};
use crate::upstream::health_request::health_request;
use crate::upstream::target::UpstreamTarget;

/// Sends a check on a new connection. True for a status below 500.
pub(in crate::upstream) async fn check_by_http2(
    stream: Stream,
    target: &UpstreamTarget,
    path: &Uri,
    limit: Duration,
) -> bool {
    if target.is_https() && !stream.agreed_on_http2() {
        return false;
    }
    let Ok(connection) = Http2Connection::new(stream, Dscp::DEFAULT, MAX_STREAMS).await else {
        return false;
    };
    let (head, body) = health_request(target, path).into_parts();
    let lease = Rc::new(connection).lease();
    let (Some(mut lease), Ok(head)) = (
        lease,
        head_for_http2(&head, &target.host, target.is_https()),
    ) else {
        return false;
    };
    let received = exchange(&mut lease, head, body, limit).await;
    received.is_ok_and(|received| received.reply.status().as_u16() < 500)
}
