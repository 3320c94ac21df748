//! Rates, percentiles and history of the status page, and times by route.

use posthaste_gateway::{GatewayConfig, RunningGateway, start};
use serde_json::Value;

use crate::support::{TestClient, TestOrigin, config, get, wait_until};
use crate::watching::{fetch_admin, value};

fn document(gateway: &RunningGateway) -> Value {
    serde_json::from_slice(&fetch_admin(gateway, "/status.json").body).unwrap()
}

fn metrics(gateway: &RunningGateway) -> String {
    String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap()
}

/// An upstream that replies with the status in the path: `/shop/500`.
fn origin() -> TestOrigin {
    TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            let path = request.split(' ').nth(1).unwrap();
            let status = path.rsplit('/').next().unwrap();
            line.write(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"));
        }
    })
}

#[test]
fn percentiles_count_only_requests_that_reached_an_upstream() {
    let origin = origin();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[protection]\npolicy = \"rate\"\nrate = \"1/min\"\nburst = 5\n\
         [[route]]\npath = \"/shop\"\nupstream = [\"{}\"]\n",
        origin.address
    );
    let gateway = start(GatewayConfig::read(&text).unwrap()).unwrap();
    let empty = document(&gateway);
    assert_eq!(empty["percentiles"][0]["answered"], 0);
    assert!(empty["percentiles"][0]["p50"].is_null());
    for path in [
        "/shop/200",
        "/shop/304",
        "/shop/404",
        "/shop/200",
        "/shop/500",
    ] {
        get(&gateway, path, "");
    }
    // Refused, without a route, and rejected.
    for (path, status) in [("/shop/200", 429), ("/shop/200", 429), ("/", 404)] {
        assert_eq!(get(&gateway, path, "").status, status);
    }
    let shown = document(&gateway);
    for percentiles in shown["percentiles"].as_array().unwrap() {
        let counts = ["answered", "failed", "refused", "cancelled"];
        let counts = counts.map(|key| percentiles[key].as_u64().unwrap());
        assert_eq!(counts, [4, 1, 2, 0]);
        assert!(percentiles["p50"].as_f64().unwrap() > 0.0, "{percentiles}");
        // One in five has failed.
        assert!(percentiles["p90"].is_null() && percentiles["p99"].is_null());
    }
    let rates = &shown["rates"][0];
    let seconds = rates["seconds"].as_f64().unwrap();
    let counts = [
        "requests",
        "succeeded",
        "client_errors",
        "refused",
        "server_errors",
    ];
    let counts = counts.map(|key| (rates[key].as_f64().unwrap() * seconds).round());
    assert_eq!(counts, [8.0, 3.0, 2.0, 2.0, 1.0]);
    assert!(shown["upstreams"].is_array());
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    for expected in [">p99<", ">at least ", "6.25 %", "not included", "<svg"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn a_request_whose_client_leaves_is_counted() {
    let silent = TestOrigin::start(|line| {
        line.request();
        std::thread::park();
    });
    let gateway = start(config(&[silent.address], "")).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the upstream is asked", || silent.request_count() == 1);
    assert_eq!(
        value(&metrics(&gateway), "posthaste_gateway_requests_in_service"),
        1.0
    );
    drop(client);
    wait_until("it is counted", || {
        document(&gateway)["percentiles"][0]["cancelled"] == 1
    });
    let percentiles = &document(&gateway)["percentiles"][0];
    assert_eq!(percentiles["failed"], 1);
    assert!(percentiles["p50"].is_null(), "it was never served");
    assert_eq!(
        value(&metrics(&gateway), "posthaste_gateway_cancelled_total"),
        1.0
    );
    wait_until("it is over", || {
        value(&metrics(&gateway), "posthaste_gateway_requests_in_service") == 0.0
    });
}

#[test]
fn the_history_has_a_slot_for_each_five_seconds() {
    let origin = origin();
    let gateway = start(config(&[origin.address], "")).unwrap();
    let page = || String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    // No slot has ended: both drawings of each of three charts are empty.
    assert_eq!(page().matches(">no data</text>").count(), 6);
    for _ in 0..4 {
        get(&gateway, "/200", "");
    }
    let slots = || {
        document(&gateway)["history"]["slots"]
            .as_array()
            .unwrap()
            .clone()
    };
    let answered = |slots: &[Value]| -> u64 {
        slots
            .iter()
            .map(|slot| slot["answered"].as_u64().unwrap())
            .sum()
    };
    wait_until("two slots have ended, and those of the requests", || {
        let slots = slots();
        slots.len() >= 2 && answered(&slots) == 4
    });
    let slots = slots();
    assert_eq!(answered(&slots), 4, "{slots:?}");
    for slot in &slots {
        assert_eq!(slot["p50"].is_null(), slot["answered"] == 0, "{slot}");
        assert!(slot["seconds"].as_f64().unwrap() >= 4.0, "{slot}");
    }
    let ages: Vec<f64> = slots
        .iter()
        .map(|slot| slot["ago"].as_f64().unwrap())
        .collect();
    assert!(ages.is_sorted_by(|older, newer| older > newer), "{ages:?}");
    assert!(page().contains("Response times of answered requests"));
}

#[test]
fn times_are_counted_by_route_and_class_of_status() {
    let origin = origin();
    let routes = |paths: &[&str]| {
        let route = |path: &&str| {
            format!(
                "[[route]]\npath = \"{path}\"\nupstream = [\"{}\"]\n",
                origin.address
            )
        };
        let routes: String = paths.iter().map(route).collect();
        GatewayConfig::read(&format!("listen = \"127.0.0.1:0\"\n{routes}")).unwrap()
    };
    let gateway = start(routes(&["/a", "/b"])).unwrap();
    for path in ["/a/200", "/a/204", "/a/404", "/b/301", "/b/503", "/c"] {
        get(&gateway, path, "");
    }
    let count = |text: &str, route: &str, class: &str| {
        let labels = format!("{{route=\"{route}\",class=\"{class}\"}}");
        value(
            text,
            &format!("posthaste_gateway_route_seconds_count{labels}"),
        )
    };
    let text = metrics(&gateway);
    for (route, class, expected) in [
        ("/a", "2xx", 2.0),
        ("/a", "4xx", 1.0),
        ("/b", "3xx", 1.0),
        ("/b", "5xx", 1.0),
        ("", "4xx", 1.0),
    ] {
        assert_eq!(count(&text, route, class), expected, "{route} {class}");
    }
    let last = "posthaste_gateway_route_seconds_bucket{le=\"+Inf\",route=\"/a\",class=\"2xx\"}";
    assert_eq!(value(&text, last), 2.0);
    assert_eq!(value(&text, "posthaste_gateway_service_seconds_count"), 6.0);
    assert!(
        !text.contains("class=\"1xx\""),
        "a series without observations"
    );

    gateway.reload(routes(&["/b", "/d"])).unwrap();
    wait_until("the new routes are used", || {
        get(&gateway, "/d/200", "").status == 200
    });
    get(&gateway, "/b/503", "");
    let text = metrics(&gateway);
    assert_eq!(count(&text, "/b", "5xx"), 2.0);
    assert!(count(&text, "/d", "2xx") >= 1.0);
    assert!(!text.contains("route=\"/a\""), "{text}");
}

#[test]
fn requests_that_are_given_up_are_beyond_every_bound() {
    let (origin, release) = TestOrigin::holding();
    let quick = "timeouts = { reply = \"200ms\" }";
    let route = |path: &str, keys: &str| {
        let address = origin.address;
        format!("[[route]]\npath = \"{path}\"\nupstream = [\"{address}\"]\n{keys}\n")
    };
    let routes = route("/slow/limited", quick) + &route("/", "");
    let text = format!("listen = \"127.0.0.1:0\"\n{routes}");
    let gateway = start(GatewayConfig::read(&text).unwrap()).unwrap();
    assert_eq!(get(&gateway, "/", "").status, 200);
    assert_eq!(get(&gateway, "/slow/limited", "").status, 504);
    let mut leaves = TestClient::new(&gateway);
    leaves.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in service", || origin.request_count() == 3);
    drop(leaves);
    let at = |name: &str| value(&metrics(&gateway), &format!("posthaste_gateway_{name}"));
    wait_until("it has left", || at("cancelled_total") == 1.0);
    // 2^24 µs, the last finite bound.
    assert_eq!(at("service_seconds_bucket{le=\"16.777216\"}"), 1.0);
    assert_eq!(at("service_seconds_bucket{le=\"+Inf\"}"), 3.0);
    assert!(at("service_seconds_sum") >= 0.2);
    for (route, class) in [("/slow/limited", "5xx"), ("/", "none")] {
        let bucket = |bound: &str| {
            let labels = format!("le=\"{bound}\",route=\"{route}\",class=\"{class}\"");
            at(&format!("route_seconds_bucket{{{labels}}}"))
        };
        assert_eq!((bucket("16.777216"), bucket("+Inf")), (0.0, 1.0), "{route}");
    }
    release.tell();
}
