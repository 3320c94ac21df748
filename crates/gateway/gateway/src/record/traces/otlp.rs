//! Trace spans in the collector's format: OTLP 1, as JSON (ExportTraceServiceRequest).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};

use super::EndedRequest;

/// Kinds of trace spans: server and client.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// Status code of a failed trace span.
const ERROR: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

/// Builds the export request for these trace spans.
pub(super) fn document(service: &str, ended: &[EndedRequest]) -> Vec<u8> {
    let spans: Vec<OtlpSpan<'_>> = ended.iter().flat_map(spans).collect();
    let document = json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service)] },
        "scopeSpans": [{
            "scope": { "name": "posthaste", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans,
        }],
    }]});
    document.to_string().into_bytes()
}

/// Returns the request's trace span and that of the upstream request inside it.
fn spans(ended: &EndedRequest) -> impl Iterator<Item = OtlpSpan<'_>> {
    let id = |span: u64| format!("{span:016x}");
    let base = |kind, span, parent, from, until, status| OtlpSpan {
        trace_id: format!("{:032x}", ended.trace),
        span_id: id(span),
        parent_span_id: parent,
        name: ended.method.as_str(),
        kind,
        start_time_unix_nano: nanos(from),
        end_time_unix_nano: nanos(until),
        attributes: vec![text("http.request.method", ended.method.as_str())],
        status,
    };
    let mut server = base(
        SERVER,
        ended.span,
        ended.parent.map(id),
        ended.start,
        ended.start + Duration::from(ended.time),
        failed(ended.status >= 500),
    );
    server.attributes.extend([
        text("url.path", &ended.path),
        text("client.address", &ended.client.to_string()),
        number("http.response.status_code", ended.status),
    ]);
    if let Some((preference, reason)) = ended.decided {
        server.attributes.extend([
            text("posthaste.wish", preference.wish.name()),
            text("posthaste.origin", preference.origin.name()),
            text("posthaste.reason", reason.name()),
        ]);
    }
    let client = ended.upstream.map(|upstream| {
        let from = ended.start + Duration::from(upstream.after);
        let until = from + Duration::from(upstream.time);
        let is_bad = upstream.status.is_none_or(|status| status >= 500);
        let parent = Some(id(ended.span));
        let mut client = base(CLIENT, upstream.span, parent, from, until, failed(is_bad));
        let status = upstream
            .status
            .map(|status| number("http.response.status_code", status));
        client.attributes.extend(status);
        client
    });
    [Some(server), client].into_iter().flatten()
}

fn nanos(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

fn failed(is_bad: bool) -> Option<Value> {
    is_bad.then(|| json!({ "code": ERROR }))
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Builds an integer attribute. JSON's mapping of Protocol Buffers writes 64-bit numbers as strings.
fn number(key: &str, value: u16) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}
