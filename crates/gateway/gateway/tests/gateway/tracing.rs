//! Trace spans as the collector gets them, and the trace context for the upstream.

use posthaste_gateway::{RunningGateway, start};
use serde_json::Value;

use crate::support::{
    OK, PATIENCE, TestClient, TestOrigin, closed_port, config, field, get, wait_until,
};
use crate::watching::{fetch_admin, value};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn tracing(origin: &TestOrigin, collector: &str, share: &str) -> RunningGateway {
    let more = format!("[traces]\ncollector = \"{collector}\"\nshare = \"{share}\"\n");
    start(config(&[origin.address], &more)).unwrap()
}

/// A collector and its URL for traces.
fn collector() -> (TestOrigin, String) {
    let origin = TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    let url = format!("http://{}/v1/traces", origin.address);
    (origin, url)
}

/// All trace spans that the collector received.
fn spans(collector: &TestOrigin) -> Vec<Value> {
    let requests = collector.requests.lock().unwrap();
    let documents = requests.iter().map(|request| {
        assert!(
            request.starts_with("POST /v1/traces HTTP/1.1\r\n"),
            "{request}"
        );
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()
    });
    documents
        .flat_map(|document| {
            let resource = &document["resourceSpans"][0];
            let name = &resource["resource"]["attributes"][0]["value"]["stringValue"];
            assert_eq!(name, "posthaste-gateway");
            resource["scopeSpans"][0]["spans"]
                .as_array()
                .unwrap()
                .clone()
        })
        .collect()
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s str> {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes
        .iter()
        .find(|attribute| attribute["key"] == key)?;
    let value = found["value"].as_object().unwrap().values().next().unwrap();
    value.as_str()
}

fn nanos(span: &Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_trace_goes_on_through_the_gateway() {
    let (origin, (collector, url)) = (TestOrigin::answering(OK), collector());
    let gateway = tracing(&origin, &url, "0%");
    let sampled = format!("Traceparent: 00-{TRACE}-{PARENT}-01\r\n");
    assert_eq!(get(&gateway, "/books?q=1", &sampled).status, 200);
    wait_until("the spans are there", || spans(&collector).len() == 2);
    let spans = spans(&collector);
    let [server, client] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!((&server["kind"], &client["kind"]), (&2.into(), &3.into()));
    assert_eq!(
        (&server["traceId"], &client["traceId"]),
        (&TRACE.into(), &TRACE.into())
    );
    assert_eq!(server["parentSpanId"], PARENT);
    assert_eq!(client["parentSpanId"], server["spanId"]);
    let forwarded = origin.last_request().to_lowercase();
    let onward = format!("00-{TRACE}-{}-01", client["spanId"].as_str().unwrap());
    assert_eq!(field(&forwarded, "traceparent"), Some(&*onward));
    assert_eq!(attribute(server, "http.request.method"), Some("GET"));
    assert_eq!(attribute(server, "url.path"), Some("/books"));
    assert_eq!(attribute(server, "client.address"), Some("127.0.0.1"));
    assert_eq!(attribute(server, "http.response.status_code"), Some("200"));
    assert_eq!(attribute(server, "posthaste.wish"), Some("unstated"));
    assert!(server.get("status").is_none(), "{server}");
    let [from, until] = ["startTimeUnixNano", "endTimeUnixNano"];
    assert!(nanos(server, from) < nanos(client, from));
    assert!(nanos(client, from) < nanos(client, until));
    assert!(nanos(client, until) <= nanos(server, until));
}

#[test]
fn sampling_follows_the_sender_and_is_otherwise_random() {
    let (origin, (collector, url)) = (TestOrigin::answering(OK), collector());
    let unsampled = format!("Traceparent: 00-{TRACE}-{PARENT}-00\r\n");
    let seen_by_upstream = |share: &str, fields: &str| {
        let gateway = tracing(&origin, &url, share);
        get(&gateway, "/", fields);
        // The final export includes queued trace spans.
        drop(gateway);
        field(&origin.last_request().to_lowercase(), "traceparent").map(str::to_owned)
    };
    let as_it_came = Some(format!("00-{TRACE}-{PARENT}-00"));
    assert_eq!(seen_by_upstream("100%", &unsampled), as_it_came);
    assert_eq!(seen_by_upstream("0%", ""), None);
    assert!(spans(&collector).is_empty());
    let drawn = seen_by_upstream("100%", "").unwrap();
    let ours = spans(&collector);
    assert_eq!(ours.len(), 2);
    assert!(ours[0].get("parentSpanId").is_none());
    assert_eq!(drawn.split('-').nth(1), ours[0]["traceId"].as_str());
    // Two contexts are both ignored.
    let two = format!("{unsampled}{unsampled}");
    let new = seen_by_upstream("100%", &two).unwrap();
    assert!(!new.contains(TRACE), "{new}");
}

#[test]
fn failed_requests_are_error_spans_and_exported_at_shutdown() {
    let (origin, (collector, url)) = (TestOrigin::start(|_| {}), collector());
    let gateway = tracing(&origin, &url, "100%");
    assert_eq!(get(&gateway, "/", "").status, 502);
    wait_until("the first is there", || spans(&collector).len() == 2);
    assert_eq!(get(&gateway, "/", "").status, 502);
    drop(gateway);
    for span in spans(&collector) {
        assert_eq!(span["status"]["code"], 2, "{span}");
    }
    assert_eq!(spans(&collector).len(), 4);
}

#[test]
fn without_a_collector_spans_are_lost_and_requests_are_not() {
    let origin = TestOrigin::answering(OK);
    let url = format!("http://{}/v1/traces", closed_port());
    let gateway = tracing(&origin, &url, "100%");
    for _ in 0..3 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    wait_until("all are counted", || {
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        let count = |state| {
            value(
                &text,
                &format!("posthaste_gateway_traces_total{{state=\"{state}\"}}"),
            )
        };
        assert_eq!(count("exported"), 0.0);
        count("lost") == 3.0
    });
}

#[test]
fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    let origin = TestOrigin::answering(OK);
    let collector = TestOrigin::start(|line| while line.request().is_some() {});
    let url = format!("http://{}/v1/traces", collector.address);
    let gateway = tracing(&origin, &url, "100%");
    let mut client = TestClient::new(&gateway);
    let begun = std::time::Instant::now();
    for _ in 0..3000 {
        client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        assert_eq!(client.reply(false).unwrap().status, 200);
    }
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let lost = value(&text, "posthaste_gateway_traces_total{state=\"lost\"}");
    // Requests beyond the queue's capacity; on a busy machine also those of exports that failed after 10 s.
    let given_up = 2048 * (begun.elapsed().as_secs() / 10);
    let most = 952 + given_up;
    assert!((1.0..=most as f64).contains(&lost), "{lost} of {most}");
    drop(client);
    let begun = std::time::Instant::now();
    drop(gateway);
    // The collector hangs for the whole time limit of a test.
    assert!(begun.elapsed() < PATIENCE / 2);
}

#[test]
fn an_invalid_collector_is_refused_with_the_remedy() {
    let more = "[traces]\ncollector = \"localhost:4318\"\n";
    let error = start(config(&[closed_port()], more)).err();
    let error = error.unwrap().to_string();
    assert!(
        error.starts_with("traces.collector: ") && error.contains("write it as http://"),
        "{error}"
    );
}
