//! Kept connections that an upstream closes without announcing it.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use posthaste_gateway::start;

use crate::support::{OK, TestClient, TestOrigin, config, get, wait_until};

const POST: &str = "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}";

/// The first request of a client does not share the fate of a connection that was kept for others.
#[test]
fn first_requests_avoid_kept_connections_that_may_close() {
    let ended = Arc::<AtomicUsize>::default();
    let counted = ended.clone();
    // Each connection answers one request and closes at the second without a reply.
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write(OK);
        line.request();
        counted.fetch_add(1, SeqCst);
    });
    let gateway = start(config(&[origin.address], "threads = 1")).unwrap();
    // The second is sent again, and tells that the upstream closes kept connections.
    for _ in 0..2 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    for number in 2..6 {
        let reply = TestClient::new(&gateway).send(POST).reply(false);
        assert_eq!(reply.unwrap().status, 200);
        // The new connection takes the place of the kept one.
        wait_until("the kept one is closed", || ended.load(SeqCst) == number);
    }
    assert_eq!(origin.request_count(), 7);
}

/// Upstreams that keep their connections get no further ones.
#[test]
fn requests_share_connections_that_an_upstream_keeps_open() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "threads = 1")).unwrap();
    for _ in 0..5 {
        let reply = TestClient::new(&gateway).send(POST).reply(false);
        assert_eq!(reply.unwrap().status, 200);
    }
    assert_eq!(origin.connections.load(SeqCst), 1);
}

#[test]
fn a_connection_is_not_kept_after_a_head_without_framing() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            if request.starts_with("HEAD") {
                line.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                return;
            }
            line.write(OK);
        }
    });
    let gateway = start(config(&[origin.address], "threads = 1")).unwrap();
    for _ in 0..50 {
        let mut client = TestClient::new(&gateway);
        client.send(format!("HEAD / HTTP/1.1\r\nHost: s\r\n\r\n{POST}"));
        assert_eq!(client.reply(true).unwrap().status, 200);
        assert_eq!(client.reply(false).unwrap().status, 200);
    }
}

#[test]
fn an_upstream_that_states_its_timeout_is_believed() {
    for (timeout, connections) in [(0, 3), (60, 1)] {
        let reply = OK.replacen("\r\n", &format!("\r\nKeep-Alive: timeout={timeout}\r\n"), 1);
        let origin = TestOrigin::answering(reply);
        let gateway = start(config(&[origin.address], "threads = 1")).unwrap();
        for _ in 0..3 {
            assert_eq!(get(&gateway, "/", "").status, 200);
        }
        assert_eq!(origin.connections.load(SeqCst), connections, "{timeout} s");
    }
}

/// A client takes a reset for the loss of its last reply, or of a request.
#[test]
fn an_unused_connection_of_a_client_ends_without_a_reset() {
    let origin = TestOrigin::answering(OK);
    let more = "[timeouts]\nidle = \"300ms\"";
    let gateway = start(config(&[origin.address], more)).unwrap();
    for requests in [0, 1] {
        let mut client = TestClient::new(&gateway);
        for _ in 0..requests {
            client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
            assert_eq!(client.reply(false).unwrap().status, 200);
        }
        let end = client.clone_stream().read(&mut [0]);
        assert_eq!(end.unwrap(), 0, "after {requests} requests");
    }
}
