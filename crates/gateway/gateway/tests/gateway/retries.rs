//! Further attempts of requests that failed, within their budget.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use posthaste_gateway::{RunningGateway, start};

use crate::support::{OK, ReceivedReply, TestClient, TestOrigin, config, get};
use crate::watching::{fetch_admin, value};

const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";

fn gateway(upstreams: &[SocketAddr], more: &str, retry: &str) -> RunningGateway {
    let mut config = config(upstreams, more);
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\n[route.retry]\n{retry}"
    );
    let with_rules = posthaste_gateway::GatewayConfig::read(&text).unwrap();
    config.routes[0].retry = with_rules.routes[0].retry.clone();
    start(config).unwrap()
}

fn counted(gateway: &RunningGateway, name: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{name}"))
}

fn retries(gateway: &RunningGateway, reason: &str) -> f64 {
    counted(gateway, &format!("retries_total{{reason=\"{reason}\"}}"))
}

fn send(gateway: &RunningGateway, request: &str) -> ReceivedReply {
    let is_head = request.starts_with("HEAD");
    let reply = TestClient::new(gateway).send(request).reply(is_head);
    reply.unwrap()
}

#[test]
fn idempotent_requests_are_retried_after_listed_statuses() {
    let (busy, well) = (TestOrigin::answering(BUSY), TestOrigin::answering(OK));
    let gateway = gateway(
        &[busy.address, well.address],
        "",
        "attempts = 1\nbudget = \"100%\"",
    );
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        for _ in 0..4 {
            let request = format!("{method} / HTTP/1.1\r\nHost: s\r\n\r\n");
            assert_eq!(send(&gateway, &request).status, 200, "{method}");
        }
    }
    let again = busy.request_count() as f64;
    assert!(again >= 5.0, "{again}");
    assert_eq!(retries(&gateway, "status"), again);
    // Others get the reply that there is, from either address.
    let body = "Content-Length: 1\r\n\r\nx";
    for method in ["POST", "PATCH", "PUT"] {
        let (before, well_before) = (busy.request_count(), well.request_count());
        let mut statuses = [0, 1].map(|_| {
            let request = format!("{method} / HTTP/1.1\r\nHost: s\r\n{body}");
            send(&gateway, &request).status
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 503], "{method}");
        assert_eq!(
            busy.request_count() + well.request_count() - before - well_before,
            2
        );
    }
    assert_eq!(retries(&gateway, "status"), again);
}

#[test]
fn without_the_setting_nothing_is_sent_again() {
    let busy = TestOrigin::answering(BUSY);
    let gateway = crate::support::gateway(&busy);
    assert_eq!(get(&gateway, "/", "").body, b"busy");
    assert_eq!(busy.request_count(), 1);
}

#[test]
fn a_single_address_is_retried_up_to_the_configured_attempts() {
    let count = AtomicUsize::new(0);
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            let is_third = count.fetch_add(1, SeqCst) % 3 == 2;
            line.write(if is_third { OK } else { BUSY });
        }
    });
    let thrice = gateway(&[origin.address], "", "attempts = 2");
    assert_eq!(get(&thrice, "/", "").status, 200);
    assert_eq!(origin.request_count(), 3);
    let twice = gateway(&[origin.address], "", "attempts = 1");
    assert_eq!(get(&twice, "/", "").body, b"busy");
    assert_eq!(origin.request_count(), 5);
    assert_eq!(retries(&twice, "status"), 1.0);
}

#[test]
fn unlisted_statuses_and_those_with_retry_after_are_forwarded() {
    for (status, field, expected) in [
        ("500", "", 1),
        ("503", "Retry-After: 7\r\n", 1),
        ("503", "", 3),
    ] {
        let origin = TestOrigin::answering(format!(
            "HTTP/1.1 {status} No\r\n{field}Content-Length: 0\r\n\r\n"
        ));
        let gateway = gateway(&[origin.address], "", "attempts = 2");
        assert_eq!(get(&gateway, "/", "").status.to_string(), status);
        assert_eq!(origin.request_count(), expected, "{status} {field}");
    }
}

#[test]
fn failed_attempts_do_not_reach_the_client() {
    // The first is closed without a reply, the second has a body that never ends.
    let half = "HTTP/1.1 502 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    for (first, reason) in [
        ("", "broken"),
        ("nonsense\r\n\r\n", "broken"),
        (half, "status"),
    ] {
        let broken = TestOrigin::start(move |line| {
            line.request();
            line.write(first);
            if !first.is_empty() {
                // The gateway closes.
                line.request();
            }
        });
        let well = TestOrigin::answering(OK);
        let gateway = gateway(&[broken.address, well.address], "", "attempts = 1");
        for _ in 0..4 {
            let reply = get(&gateway, "/", "");
            assert_eq!((reply.status, &*reply.body), (200, &b"ok"[..]), "{first:?}");
        }
        assert!(broken.request_count() > 0, "{first:?}");
        assert_eq!(retries(&gateway, reason), broken.request_count() as f64);
    }
}

#[test]
fn a_silent_upstream_is_left_for_another_only_if_timeouts_count() {
    let limits = "[timeouts]\nreply = \"300ms\"";
    let silent = TestOrigin::start(|line| {
        line.request();
        line.request();
    });
    let well = TestOrigin::answering(OK);
    let both = [silent.address, well.address];
    let again = gateway(&both, limits, "attempts = 1\ntimeouts = true");
    let once = gateway(&both, limits, "attempts = 1");
    for _ in 0..2 {
        assert_eq!(get(&again, "/", "").status, 200);
    }
    assert_eq!(retries(&again, "timeout"), 1.0);
    let mut statuses = [0, 1].map(|_| get(&once, "/", "").status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
    assert_eq!(retries(&once, "timeout"), 0.0);
}

#[test]
fn retries_beyond_the_budget_are_refused_and_counted() {
    let busy = TestOrigin::answering(BUSY);
    let gateway = gateway(&[busy.address], "", "attempts = 10\nbudget = \"0%\"");
    let begin = Instant::now();
    for _ in 0..30 {
        assert_eq!(get(&gateway, "/", "").body, b"busy");
    }
    // Ten in ten seconds.
    let most = 10 * (1 + begin.elapsed().as_secs() as usize / 9);
    let again = busy.request_count() - 30;
    assert!((10..=most).contains(&again), "{again}");
    assert_eq!(retries(&gateway, "status"), again as f64);
    assert!(counted(&gateway, "retries_refused_total") >= 20.0);
}

#[test]
fn the_budget_outlives_a_change_of_the_configuration() {
    let busy = TestOrigin::answering(BUSY);
    let mut rules = config(&[busy.address], "");
    rules.routes[0].retry.attempts = 1;
    let gateway = start(rules.clone()).unwrap();
    let begin = Instant::now();
    for _ in 0..30 {
        get(&gateway, "/", "");
        gateway.reload(rules.clone()).unwrap();
    }
    let most = 10 * (1 + begin.elapsed().as_secs() as usize / 9);
    assert!(
        busy.request_count() <= 30 + most,
        "{}",
        busy.request_count()
    );
}
