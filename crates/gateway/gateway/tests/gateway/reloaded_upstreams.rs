//! Connections and health checks of upstreams over changes of the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use posthaste_gateway::{GatewayConfig, start};
use posthaste_units::Span;

use crate::http2_support::{Http2Origin, http2_config};
use crate::support::{OK, TestClient, TestOrigin, config, get, wait_until};

/// The same configuration with other settings.
fn changed(config: &GatewayConfig, round: u64) -> GatewayConfig {
    let mut config = config.clone();
    config.timeouts.reply = Span::from_secs(20 + round);
    config
}

#[test]
fn connections_to_upstreams_that_stay_outlive_changes() {
    let origin = TestOrigin::answering(OK);
    let first = config(&[origin.address], "threads = 1");
    let gateway = start(first.clone()).unwrap();
    let http2 = Http2Origin::start(async |mut call| call.answer("ok"));
    let http2_first = http2_config(&http2.address.to_string(), "http2", "");
    let http2_gateway = start(http2_first.clone()).unwrap();
    for round in 0..20 {
        assert_eq!(get(&gateway, "/", "").body, b"ok");
        assert_eq!(get(&http2_gateway, "/", "").body, b"ok");
        gateway.reload(changed(&first, round)).unwrap();
        http2_gateway.reload(changed(&http2_first, round)).unwrap();
    }
    assert_eq!(origin.connections.load(SeqCst), 1);
    assert_eq!(http2.connections.load(SeqCst), 1);
}

#[test]
fn idle_connections_close_at_a_reload_despite_open_requests() {
    let closed = Arc::<AtomicUsize>::default();
    let count = closed.clone();
    let old = TestOrigin::start(move |line| {
        while let Some(request) = line.request() {
            if request.contains("/slow") {
                // Until the gateway closes.
                line.request();
                return;
            }
            line.write(OK);
        }
        count.fetch_add(1, SeqCst);
    });
    let new = TestOrigin::answering(OK);
    let gateway = start(config(&[old.address], "threads = 1")).unwrap();
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    let mut slow = TestClient::new(&gateway);
    // Two in flight need two connections; one of them becomes unused.
    slow.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in flight", || old.request_count() == 2);
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    assert_eq!(closed.load(SeqCst), 0);
    gateway
        .reload(config(&[new.address], "threads = 1"))
        .unwrap();
    let begin = std::time::Instant::now();
    wait_until("it is closed", || closed.load(SeqCst) == 1);
    // The reply's time limit would end the slow request, and all that its configuration holds.
    assert!(begin.elapsed() < Duration::from_secs(25));
    drop(slow);
}

#[test]
fn health_checks_end_at_a_reload_despite_open_requests() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            if request.contains("/slow") {
                line.request();
                return;
            }
            line.write(OK);
        }
    });
    let more = "threads = 1\n[timeouts]\nreply = \"1h\"";
    let mut rules = config(&[origin.address], more);
    rules.routes[0].health.path = Some("/old-check".to_owned());
    rules.routes[0].health.every = Span::from_millis(50);
    let gateway = start(rules.clone()).unwrap();
    let requests = |path: &str| {
        let requests = origin.requests.lock().unwrap();
        requests.iter().filter(|one| one.contains(path)).count()
    };
    let mut slow = TestClient::new(&gateway);
    slow.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in flight", || requests("/slow") == 1);
    wait_until("it is checked", || requests("/old-check") > 1);
    rules.routes[0].health.path = Some("/new-check".to_owned());
    gateway.reload(rules).unwrap();
    wait_until("the new check runs", || requests("/new-check") > 2);
    let before = requests("/old-check");
    wait_until("it continues", || requests("/new-check") > 12);
    assert_eq!(requests("/old-check"), before);
    drop(slow);
}
