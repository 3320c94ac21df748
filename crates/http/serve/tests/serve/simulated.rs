//! A server in virtual time, over streams in memory.

use std::cell::Cell;
use std::net::SocketAddr;

use posthaste_serve::environment::now;
use posthaste_serve::{Environment as _, HttpServer, Listener};
use posthaste_units::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::echo::Echo;
use crate::memory_network::simulate;

/// Sends a request to a server with default limits, and waits until it closes the idle connection. Returns the reply and
/// the time that this took.
fn run(request: &str) -> (String, Span) {
    simulate(1, &[], |network| async move {
        let address = SocketAddr::from(([192, 0, 2, 2], 80));
        let listener = Listener::open(address, 64, false).unwrap();
        let make = |_| Echo {
            served: Cell::new(0),
        };
        let server = HttpServer {
            threads: 2,
            ..HttpServer::default()
        };
        let mut running = server.start_on(vec![listener], make).unwrap();
        assert_eq!(running.addr, address);
        let mut client = network.connect(address).await.unwrap();
        let begun = now();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).await.unwrap();
        let took = now().since(begun);
        running.stop();
        running.ended().await;
        assert_eq!(running.counters.snapshot().open, 0);
        (String::from_utf8_lossy(&reply).into_owned(), took)
    })
}

#[test]
fn an_idle_connection_ends_after_a_virtual_minute() {
    let request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    let (reply, took) = run(request);
    let head =
        "HTTP/1.1 200 OK\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(reply, format!("{head}hello"));
    let limit = Span::from_secs(60);
    assert!(took >= limit && took < limit + Span::from_secs(1), "{took}");
    assert_eq!(run(request), (reply, took));
}

#[test]
fn a_rejected_head_is_answered_and_the_rest_dropped() {
    let (reply, took) = run("GET / HTTP/1.1\r\nbad header\r\n\r\nmore");
    assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    assert!(took < Span::from_secs(60), "{took}");
}

#[test]
fn http2_is_recognized_by_its_first_bytes() {
    let (reply, _) = run("PRI * HTTP/2.0\r\n\r\nXX");
    assert!(!reply.contains("HTTP/1.1"), "{reply}");
}
