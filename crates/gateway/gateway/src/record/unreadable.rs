//! The record of requests that the parser refuses: counters, and a line in the access log.

use std::sync::atomic::Ordering::Relaxed;
use std::time::UNIX_EPOCH;

use hyper::Version;
use posthaste_gateway_config::Log;
use posthaste_serve::UnreadableRequest;
use posthaste_units::Span;

use super::access_log::AccessLog;
use super::log_entry::version;
use super::log_line::{AccessLine, Phases, RequestText, text};
use super::metrics::GatewayMetrics;
use crate::client_address::ClientAddress;
use crate::clock::wall_clock;

/// Counts the request and writes its line.
pub(crate) fn record(
    metrics: &GatewayMetrics,
    log: Option<&AccessLog>,
    settings: Log,
    client: ClientAddress,
    request: &UnreadableRequest,
) {
    let is_http2 = request.version == Version::HTTP_2;
    metrics.unreadable[usize::from(is_http2)].fetch_add(1, Relaxed);
    let status = request.status.as_u16();
    if request.has_reply {
        metrics.service.add(Span::ZERO);
        metrics.replied(status);
        metrics.unrouted.add(status, Span::ZERO);
    }
    let Some(log) = log else {
        return;
    };
    let time = wall_clock().duration_since(UNIX_EPOCH);
    let line = AccessLine {
        time: time.unwrap_or_default().as_secs_f64(),
        client,
        account: None,
        request: RequestText {
            version: version(request.version),
            ..RequestText::default()
        },
        status,
        request_bytes: 0,
        bytes: None,
        complete: None,
        route: None,
        tier: None,
        upstream: None,
        offer: None,
        milliseconds: 0.0,
        phases: Phases::default(),
        wish: None,
        origin: None,
        reason: None,
        error: Some(text(request.reason.as_bytes())),
        dry_run: None,
        traceparent: None,
    };
    log.write(&line.text(settings.format));
}
