//! Health checks: statuses that pass, and results in a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst};

use hyper::Response;
use posthaste_gateway::{RunningGateway, start};

use crate::http2_support::{Http2Origin, http2_config};
use crate::support::{TestOrigin, config, wait_until};
use crate::watching::fetch_admin;

/// The state of the only upstream.
fn state(gateway: &RunningGateway) -> String {
    let document = fetch_admin(gateway, "/status.json").body;
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let state = &document["upstreams"][0]["state"];
    state.as_str().unwrap().to_owned()
}

/// Starts a gateway to an HTTP/1.1 upstream that answers with the status. One result changes the state.
fn checked(status: &Arc<AtomicU16>, keys: &str) -> (TestOrigin, RunningGateway) {
    let status = status.clone();
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            let status = status.load(SeqCst);
            line.write(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\n[route.health]\npath = \"/health\"\nevery = \"300ms\"\nfailures = 1\n{keys}",
        origin.address
    );
    let config = posthaste_gateway::GatewayConfig::read(&text).unwrap();
    (origin, start(config).unwrap())
}

/// Waits for each state after its status.
fn follows(gateway: &RunningGateway, status: &AtomicU16, expected: &[(u16, &str)]) {
    for (reply, expected) in expected {
        status.store(*reply, SeqCst);
        wait_until(&format!("{reply}: {expected}"), || {
            state(gateway) == *expected
        });
    }
}

#[test]
fn by_default_success_and_redirection_pass() {
    let status = Arc::new(AtomicU16::new(200));
    let (_origin, gateway) = checked(&status, "");
    let expected = [
        (404, "out"),
        (204, "up"),
        (401, "out"),
        (302, "up"),
        (429, "out"),
        (200, "up"),
        (503, "out"),
    ];
    follows(&gateway, &status, &expected);
}

#[test]
fn configured_statuses_pass() {
    let status = Arc::new(AtomicU16::new(200));
    let (_origin, gateway) = checked(&status, "statuses = [\"200-299\", \"401\"]");
    let expected = [(302, "out"), (401, "up"), (404, "out"), (299, "up")];
    follows(&gateway, &status, &expected);
}

#[test]
fn statuses_decide_over_http2_too() {
    let status = Arc::new(AtomicU16::new(200));
    let replied = status.clone();
    let origin = Http2Origin::start(move |mut call| {
        let status = replied.load(SeqCst);
        async move {
            let mut reply = Response::new(());
            *reply.status_mut() = status.try_into().unwrap();
            call.respond.send_response(reply, true).unwrap();
        }
    });
    let mut config = http2_config(&origin.address.to_string(), "http2", "");
    let health = &mut config.routes[0].health;
    health.path = Some("/health".to_owned());
    health.every = "300ms".parse().unwrap();
    health.failures = 1;
    let gateway = start(config).unwrap();
    let expected = [(404, "out"), (204, "up"), (429, "out"), (302, "up")];
    follows(&gateway, &status, &expected);
}

#[test]
fn successes_in_a_row_return_an_address_to_use() {
    let steady_from = Arc::new(AtomicUsize::new(usize::MAX));
    let (from, checks) = (steady_from.clone(), AtomicUsize::new(0));
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            let check = checks.fetch_add(1, SeqCst);
            let status = if check >= from.load(SeqCst) || check % 2 == 1 {
                200
            } else {
                503
            };
            line.write(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let mut config = config(&[origin.address], "");
    let health = &mut config.routes[0].health;
    health.path = Some("/health".to_owned());
    health.every = "100ms".parse().unwrap();
    health.failures = 1;
    health.successes = 2;
    let gateway = start(config).unwrap();
    wait_until("it is excluded", || state(&gateway) == "out");
    wait_until("checks pass and fail in turn", || {
        assert_ne!(state(&gateway), "up");
        origin.request_count() > 10
    });
    steady_from.store(0, SeqCst);
    wait_until("it is in use again", || state(&gateway) == "up");
}
