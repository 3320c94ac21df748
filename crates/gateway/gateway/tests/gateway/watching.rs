//! Monitoring of a gateway: metrics, the status page, the access log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{
    ReceivedReply, TestClient, TestOrigin, closed_port, config, field, get, wait_until,
};
use posthaste_gateway::{RunningGateway, start};

/// Sends a GET for `path` to the admin address.
pub(crate) fn fetch_admin(gateway: &RunningGateway, path: &str) -> ReceivedReply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    TestClient::to(gateway.admin)
        .send(request)
        .reply(false)
        .unwrap()
}

fn answer() -> String {
    let body = "<book>".repeat(500);
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// The value of a metric, found by the start of its line.
pub(crate) fn value(text: &str, start: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(start));
    let line = line.unwrap_or_else(|| panic!("no {start} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn metrics_count_requests_by_reason() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "")).unwrap();
    for _ in 0..3 {
        get(
            &gateway,
            "/",
            "Accept-Encoding: gzip\r\nPrefer: compression=always\r\n",
        );
    }
    get(&gateway, "/", "Accept-Encoding: identity\r\n");
    get(&gateway, "http://user@s/", "");
    let open =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n";
    let mut client = TestClient::to(gateway.admin);
    let reply = client.send(open).reply(false).unwrap();
    let kind = field(&reply.head, "content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let plain = fetch_admin(&gateway, "/metrics");
    let kind = field(&plain.head, "content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = String::from_utf8(reply.body).unwrap();
    let at = |start: &str| value(&text, &format!("posthaste_gateway_{start}"));
    assert_eq!(at("replies_total{status=\"200\"}"), 4.0);
    assert_eq!(at("replies_total{status=\"400\"}"), 1.0);
    assert_eq!(
        at("decisions_total{wish=\"always\",decision=\"compressed\",reason=\"asked\"}"),
        3.0
    );
    assert_eq!(
        at("decisions_total{wish=\"never\",decision=\"plain\",reason=\"refused\"}"),
        1.0
    );
    assert_eq!(at("wishes_total{origin=\"prefer\"}"), 3.0);
    // The third reply came from the cache.
    assert_eq!(at("packed_total{coding=\"gzip\""), 2.0);
    assert_eq!(at("packed_bytes_read_total{coding=\"gzip\""), 6000.0);
    let written = at("packed_bytes_written_total{coding=\"gzip\"");
    assert!(written < 600.0);
    assert_eq!(at("cached_total"), 1.0);
    assert_eq!(at("cached_bytes_saved_total"), 3000.0 - written / 2.0);
    assert!(at("packed_cpu_seconds_total{coding=\"gzip\"") > 0.0);
    assert_eq!(at("service_seconds_count"), 5.0);
    assert_eq!(at("upstream_seconds_count"), 4.0);
    assert_eq!(at("upstream_up"), 1.0);
    assert_eq!(at("connections_total{event=\"accepted\"}"), 5.0);
    assert!(text.ends_with("# EOF\n"));
}

/// Prometheus computes quantiles only for histograms with this last bucket.
#[test]
fn every_histogram_ends_with_a_bucket_of_all_observations() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "")).unwrap();
    for _ in 0..3 {
        get(&gateway, "/", "");
    }
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let histograms: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram"))
        // It has labels.
        .filter(|name| !name.ends_with("route_seconds"))
        .collect();
    assert_eq!(histograms.len(), 2, "{text}");
    for name in histograms {
        let start = format!("{name}_bucket{{le=\"");
        let buckets: Vec<(&str, u64)> = text
            .lines()
            .filter_map(|line| line.strip_prefix(&start)?.split_once("\"} "))
            .map(|(bound, count)| (bound, count.parse().unwrap()))
            .collect();
        let counts = buckets.iter().map(|(_, count)| count);
        assert!(counts.is_sorted(), "{name}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&("+Inf", 3)), "{name}: {buckets:?}");
        assert_eq!(value(&text, &format!("{name}_count")), 3.0);
        let finite = &buckets[..buckets.len() - 1];
        // 2^24 µs, far beyond any reply.
        assert_eq!(finite.last(), Some(&("16.777216", 3)), "{name}");
    }
}

#[test]
fn unmeasured_messages_are_charged_their_learned_cost() {
    let origin = TestOrigin::answering(answer());
    let anew = "[compression]\npolicy = \"always\"\ncache = \"0B\"";
    let gateway = start(config(&[origin.address], anew)).unwrap();
    let mut client = TestClient::new(&gateway);
    let mut spent_after = |messages| {
        for _ in 0..messages {
            client.send("GET / HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\n\r\n");
            client.reply(false).unwrap();
        }
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        let at = |name: &str| value(&text, &format!("posthaste_gateway_{name}"));
        assert_eq!(
            at("packed_bytes_read_total{coding=\"gzip\""),
            3000.0 * at("packed_total{coding=\"gzip\"")
        );
        at("packed_cpu_seconds_total{coding=\"gzip\"")
    };
    // Each of the first messages is measured, then one in seven.
    let measured = spent_after(32) / 32.0;
    let booked = (spent_after(320) - measured * 32.0) / 320.0;
    let ratio = booked / measured;
    assert!((0.3..3.0).contains(&ratio), "{booked} for {measured}");
}

#[test]
fn the_page_says_it_in_words() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "")).unwrap();
    get(
        &gateway,
        "/",
        "Accept-Encoding: gzip\r\nPrefer: compression=always\r\n",
    );
    let page = || String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    wait_until("demand is known", || page().contains("Demand is low"));
    let page = page();
    let address = origin.address.to_string();
    for expected in [
        "threshold",
        "asked",
        "gzip-1",
        ">Metrics<",
        ">State<",
        &address,
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert_eq!(fetch_admin(&gateway, "/healthz").body, b"ok\n");
    assert_eq!(fetch_admin(&gateway, "/elsewhere").status, 404);
}

#[test]
fn upstreams_are_up_out_or_unknown_on_the_page_and_in_json() {
    let origin = TestOrigin::answering(answer());
    let gone = closed_port();
    let health = "[route.health]\nevery = \"1h\"\nfailures = 1";
    let routes = |address| {
        format!("[[route]]\npath = \"/{address}\"\nupstream = [\"{address}\"]\n{health}\n")
    };
    let (up, out) = (routes(origin.address), routes(gone));
    let text = format!("listen = \"127.0.0.1:0\"\n{up}{out}");
    let gateway = start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    let states = || {
        let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
        let reply = fetch_admin(&gateway, "/status.json");
        assert_eq!(field(&reply.head, "content-type"), Some("application/json"));
        let document: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        [origin.address, gone].map(|address| {
            let upstreams = document["upstreams"].as_array().unwrap().iter();
            let mut of_it = upstreams.filter(|row| row["upstream"] == address.to_string());
            let row = of_it.next().unwrap();
            assert_eq!(row["route"], format!("/{address}"));
            let state = row["state"].as_str().unwrap().to_owned();
            let cells = format!("<td>{address}</td><td class=\"{state}\">{state}</td>");
            assert!(page.contains(&cells), "no {cells} in {page}");
            state
        })
    };
    assert_eq!(states(), ["unknown", "unknown"]);
    for address in [origin.address, gone] {
        get(&gateway, &format!("/{address}"), "");
    }
    assert_eq!(states(), ["up", "out"]);
}

#[test]
fn each_reply_has_a_line_in_the_log() {
    let origin = TestOrigin::answering(answer());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let gateway = start(config(&[origin.address], &format!("access_log = {file:?}"))).unwrap();
    get(
        &gateway,
        "/a?b",
        "Accept-Encoding: gzip\r\nPrefer: compression=always\r\ntraceparent: 00-ab-cd-01\r\n",
    );
    get(&gateway, "http://user@s/", "");
    drop(gateway);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    let first = &lines[0];
    assert_eq!(
        (&first["method"], &first["path"]),
        (&"GET".into(), &"/a".into())
    );
    assert_eq!(
        (&first["status"], &first["reason"]),
        (&200.into(), &"asked".into())
    );
    assert_eq!(first["traceparent"], "00-ab-cd-01");
    assert!(first["milliseconds"].as_f64().unwrap() > 0.0);
    assert_eq!(lines[1]["status"], 400);
    assert!(lines[1]["reason"].is_null());
}

#[test]
fn a_log_that_cannot_be_written_is_named() {
    let origin = TestOrigin::answering(answer());
    let error = start(config(&[origin.address], "access_log = \"/nowhere/log\""))
        .err()
        .unwrap();
    assert!(error.to_string().contains("/nowhere/log"), "{error}");
}

#[test]
fn an_upstream_that_says_it_is_busy_is_spared() {
    let busy = Arc::new(Mutex::new("95%"));
    let says = busy.clone();
    let body = "<book>".repeat(500);
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            let (length, busy) = (body.len(), *says.lock().unwrap());
            line.write(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nX-Busy: {busy}\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        }
    });
    // Cached replies would be sent compressed at any load.
    let watch = "[compression]\ncache = \"0B\"\n[demand]\nwatch = { upstream = \"X-Busy\" }";
    let gateway = start(config(&[origin.address], watch)).unwrap();
    let fields = "Accept-Encoding: gzip\r\nPrefer: compression-reason\r\n";
    let reason = || {
        let reply = get(&gateway, "/", fields);
        assert_eq!(field(&reply.head, "x-busy"), None);
        field(&reply.head, "compression-decision")
            .unwrap()
            .to_owned()
    };
    wait_until("its report is heard", || reason() == "demand-high");
    // Time for the first report to arrive and be smoothed.
    for _ in 0..30 {
        assert_eq!(reason(), "demand-high");
        std::thread::sleep(Duration::from_millis(20));
    }
    *busy.lock().unwrap() = "0.1";
    wait_until("it is not busy any more", || reason() == "affordable");
    *busy.lock().unwrap() = "0.97";
    wait_until("it is busy again", || reason() == "demand-high");
}

#[test]
fn demand_is_unknown_if_the_process_cannot_be_watched() {
    let origin = TestOrigin::answering(answer());
    let watch = "[demand]\nwatch = { process = \"nobody-is-so\" }";
    let gateway = start(config(&[origin.address], watch)).unwrap();
    let fields = "Accept-Encoding: gzip\r\nPrefer: compression-reason\r\n";
    // Time for the first sample of the resource.
    for _ in 0..30 {
        let reply = get(&gateway, "/", fields);
        let reason = field(&reply.head, "compression-decision");
        assert_eq!(reason, Some("demand-unknown"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    assert_eq!(value(&text, "posthaste_gateway_demand_known"), 0.0);
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    assert!(page.contains("Demand is not known."), "{page}");
}

#[test]
fn workers_with_nothing_to_do_compress_what_is_left_open() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "threads = 2")).unwrap();
    let fields = "Accept-Encoding: gzip\r\nPrefer: compression-reason\r\n";
    wait_until("they know that they can afford it", || {
        let reply = get(&gateway, "/", fields);
        field(&reply.head, "compression-decision") == Some("affordable")
    });
}

#[test]
fn log_lines_lost_on_a_full_disk_are_counted() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "access_log = \"/dev/full\"")).unwrap();
    for _ in 0..3 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    wait_until("three lines are missed", || {
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        value(&text, "posthaste_gateway_log_lines_lost_total") == 3.0
    });
}

#[test]
fn a_wish_that_cannot_be_read_is_counted() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "")).unwrap();
    get(
        &gateway,
        "/",
        "Accept-Encoding: gzip;q=high\r\nPrefer: compression=never\r\n",
    );
    get(
        &gateway,
        "/",
        "Accept-Encoding: gzip\r\nPrefer: compression=seldom\r\n",
    );
    get(&gateway, "/", "Accept-Encoding: br;q=x\r\n");
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let unread = |field: &str| {
        let start = format!("posthaste_gateway_fields_unread_total{{field=\"{field}\"}}");
        value(&text, &start)
    };
    assert_eq!((unread("accept-encoding"), unread("prefer")), (2.0, 1.0));
}

/// The rules of `promtool check metrics`.
#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    let origin = TestOrigin::answering(answer());
    let keys = "access_log = \"/dev/null\"\n[protection]\npolicy = \"prices\"";
    let gateway = start(config(&[origin.address], keys)).unwrap();
    get(&gateway, "/", "");
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let mut helped = "";
    let mut families = 0;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty(), "{name}");
            helped = name;
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert_eq!(helped, name, "a family has a help text");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'0'..=b'9');
            assert!(name.bytes().all(is_plain), "{name}");
            let units = [
                "ms",
                "us",
                "ns",
                "sec",
                "milliseconds",
                "minutes",
                "kb",
                "mb",
                "percent",
            ];
            assert!(!name.split('_').any(|word| units.contains(&word)), "{name}");
            families += 1;
        } else {
            assert!(line.starts_with("posthaste_gateway_"), "{line}");
        }
    }
    assert!(families > 30, "{families} families");
}
