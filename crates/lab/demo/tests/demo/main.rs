//! Tests of the demo over HTTP, in this process, with a complete system.

mod visitor;

use std::time::{Duration, Instant};

use posthaste_demo::{AdmissionPolicy, Controls, DemoConfig, start};
use serde_json::Value;

use crate::visitor::Visitor;

/// Timeout, longer than any step on a busy machine: a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(120);

fn config() -> DemoConfig {
    DemoConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..DemoConfig::default()
    }
}

/// Waits for the first sample for which `holds` is true.
fn wait_for(
    visitor: &mut Visitor,
    condition: &str,
    mut holds: impl FnMut(&Value) -> bool,
) -> Value {
    let begun = Instant::now();
    let mut last = Value::Null;
    while begun.elapsed() < PATIENCE {
        let (name, data) = visitor.event();
        if name == "sample" {
            if holds(&data) {
                return data;
            }
            last = data;
        }
    }
    panic!("not {condition}: {last}");
}

fn served(sample: &Value, kind: usize) -> f64 {
    sample["kinds"][kind]["served"].as_f64().unwrap()
}

#[test]
fn cheap_clients_leave_at_high_demand_and_return() {
    let demo = start(config()).unwrap();
    let mut visitor = Visitor::open(demo.addr);
    wait_for(&mut visitor, "calm", |now| {
        (0..4).all(|kind| served(now, kind) > 0.0) && now["price"].as_f64() < Some(0.1)
    });
    let mut wanted = Controls {
        demand: 240,
        ..Controls::default()
    };
    assert_eq!(visitor.want(&wanted), 202);
    // Clients without a budget are served, more of them than before, and the broker's offer shows the price.
    let dear = wait_for(
        &mut visitor,
        "above what phones pay, and others served",
        |now| {
            let phones = &now["kinds"][0];
            now["price"].as_f64() > Some(0.1)
                && phones["dear"].as_f64() > Some(10.0)
                && served(now, 0) == 0.0
                && served(now, 3) > 15.0
        },
    );
    assert!(
        dear["offers"][0]["price"]
            .as_str()
            .unwrap()
            .ends_with(" EUR"),
        "{dear}"
    );
    wanted.demand = 20;
    assert_eq!(visitor.want(&wanted), 202);
    wait_for(&mut visitor, "cheap again", |now| {
        served(now, 0) > 0.0 && now["kinds"][0]["dear"] == 0.0
    });
    assert!(
        visitor
            .news()
            .iter()
            .any(|news| news.contains("Phones stay away"))
    );
}

#[test]
fn another_policy_takes_over_and_packets_are_marked() {
    let demo = start(config()).unwrap();
    let mut visitor = Visitor::open(demo.addr);
    let marked = wait_for(&mut visitor, "marked", |now| {
        now["marks"]["le"].as_f64() > Some(0.0)
    });
    assert!(marked["price"].is_number(), "{marked}");
    let wanted = Controls {
        protection: AdmissionPolicy::Limit,
        ..Controls::default()
    };
    assert_eq!(visitor.want(&wanted), 202);
    let limited = wait_for(&mut visitor, "without a price, and serving", |now| {
        now["price"].is_null()
            && now["offers"].as_array().unwrap().is_empty()
            && served(now, 3) > 0.0
    });
    assert!(limited["limit"].as_f64() > Some(0.0), "{limited}");
}

#[test]
fn whoever_comes_late_gets_what_happened_and_the_controls() {
    let demo = start(config()).unwrap();
    let mut early = Visitor::open(demo.addr);
    let first = wait_for(&mut early, "begun", |_| true);
    wait_for(&mut early, "going on", |now| now["at"].as_f64() > Some(3.0));
    let mut late = Visitor::open(demo.addr);
    assert_eq!(late.event().0, "controls");
    let past = wait_for(&mut late, "told", |_| true);
    assert_eq!(past, first, "from the beginning");
}

#[test]
fn invalid_and_cross_origin_controls_are_refused() {
    let demo = start(config()).unwrap();
    let addr = demo.addr.to_string();
    let good = serde_json::to_string(&Controls::default()).unwrap();
    let post = |fields: &[(&str, &str)], body: &str| {
        let mut all = vec![("Host", &*addr), ("Content-Type", "application/json")];
        for field in fields {
            all.retain(|(name, _)| name != &field.0);
            all.push(*field);
        }
        visitor::ask(demo.addr, "POST /controls", &all, body)
    };
    assert_eq!(post(&[], &good).0, 202);
    let own = format!("http://{addr}");
    assert_eq!(post(&[("Origin", &own)], &good).0, 202);
    assert_eq!(post(&[("Origin", "http://evil.example")], &good).0, 403);
    assert_eq!(post(&[("Host", "evil.example")], &good).0, 403);
    assert_eq!(post(&[("Content-Type", "text/plain")], &good).0, 415);
    assert_eq!(post(&[], &good.replace("60", "6000")).0, 400);
    assert_eq!(post(&[], "{}").0, 400);
    assert_eq!(post(&[], &"x".repeat(5000)).0, 400);
    let host = [("Host", &*addr)];
    for (request, allowed) in [
        ("GET /controls", "post"),
        ("HEAD /controls", "post"),
        ("POST /", "get, head"),
    ] {
        let (status, reply) = visitor::ask(demo.addr, request, &host, "");
        assert_eq!(status, 405, "{request}");
        let field = format!("\r\nallow: {allowed}\r\n");
        assert!(reply.to_ascii_lowercase().contains(&field), "{reply}");
    }
    for path in ["/", "/demo.js", "/events"] {
        let (status, head) = visitor::ask(demo.addr, &format!("HEAD {path}"), &host, "");
        assert_eq!(status, 200, "{path}");
        assert!(head.ends_with("\r\n\r\n"), "nothing behind it: {head}");
    }
    assert_eq!(
        visitor::ask(demo.addr, "GET /favicon.ico", &host, "").0,
        404
    );
    let (status, page) = visitor::ask(demo.addr, "GET /", &host, "");
    assert_eq!(status, 200);
    assert!(page.contains("default-src 'none'"), "its policy");
    for elsewhere in ["http://", "https://", " style=", "<script>", " onclick="] {
        assert!(!page.contains(elsewhere), "{elsewhere} in the page");
    }
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let error = start(DemoConfig { listen, ..config() }).err().unwrap();
    let error = error.to_string();
    assert!(
        error.contains(&listen.to_string()) && error.contains("another port"),
        "{error}"
    );
}
