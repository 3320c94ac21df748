//! Ambiguous requests, and unread bodies.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use posthaste_serve::{HttpServer, Timeouts};

use crate::{connect, eventually, exchange, start, start_with};

const NEXT: &str = "GET /bytes/4 HTTP/1.1\r\nHost: x\r\n\r\n";

/// The statuses of the replies in `text`.
fn statuses(text: &str) -> Vec<&str> {
    let lines = text.split("HTTP/1.1 ").skip(1);
    lines.filter_map(|line| line.get(..3)).collect()
}

/// Sends two requests and expects one reply with this status, the last.
fn is_last(request: &str, status: &str) {
    let running = start(HttpServer::default(), 64);
    let reply = exchange(running.addr, &format!("{request}{NEXT}"));
    assert_eq!(statuses(&reply), [status], "{request:?}: {reply}");
    let reply = reply.to_lowercase();
    assert!(
        reply.contains("\r\nconnection: close\r\n"),
        "{request:?}: {reply}"
    );
}

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n{body}")
}

#[test]
fn a_length_in_doubt_is_refused_and_ends_the_connection() {
    for (status, fields) in [
        ("400", "Content-Length: 5\r\nContent-Length: 5"),
        ("400", "Content-Length: 5\r\nContent-Length: 6"),
        ("400", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        (
            "400",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6",
        ),
        ("501", "Transfer-Encoding: x, chunked"),
        ("501", "Transfer-Encoding: chunked, chunked"),
        (
            "501",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        ),
    ] {
        is_last(&post(fields, "0\r\n\r\n"), status);
    }
}

#[test]
fn a_host_in_doubt_and_what_nobody_meets_are_refused() {
    for (status, head) in [
        ("400", "GET /#x HTTP/1.1\r\nHost: a"),
        ("400", "GET / HTTP/1.1\r\nHost: a..b"),
        ("400", "GET / HTTP/1.1\r\nHost:"),
        ("400", "GET / HTTP/1.1\r\nHost: a\r\nHost: a"),
        ("400", "GET / HTTP/1.1"),
        ("400", "GET http://a/ HTTP/1.1"),
        ("400", "GET http://a/ HTTP/1.1\r\nHost: b"),
        ("400", "GET http://a..b/ HTTP/1.1\r\nHost: a..b"),
        ("417", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok"),
    ] {
        is_last(&format!("{head}\r\n\r\n"), status);
    }
    let running = start(HttpServer::default(), 64);
    let head = "GET http://a/bytes/4 HTTP/1.1\r\nHost: A:80\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(&exchange(running.addr, head)), ["200"]);
}

/// A lenient parser would swallow the next request in each case.
#[test]
fn chunks_are_framed_by_crlf_alone() {
    for body in [
        "0\r\n\n",
        "0\r\nA: b\n\r\n",
        "0\r\nA: b\n\n",
        "0\n\n",
        "4\nbody\r\n0\r\n\r\n",
        "4\r\nbody\n0\r\n\r\n",
        "4;a\nb\r\nbody\r\n0\r\n\r\n",
        "00000000000000004\r\nbody\r\n0\r\n\r\n",
    ] {
        is_last(&post("Transfer-Encoding: chunked", body), "400");
    }
    let long = format!("4;{}\r\nbody\r\n0\r\n\r\n", "x".repeat(1100));
    is_last(&post("Transfer-Encoding: chunked", &long), "400");
}

/// Endless zeros and extensions: the reply comes before their end.
#[test]
fn the_line_of_a_chunk_has_an_end() {
    let running = start(HttpServer::default(), 64);
    for field in ["", "4;"] {
        let mut client = connect(running.addr);
        let mut writer = client.try_clone().unwrap();
        let answered = Arc::<AtomicBool>::default();
        let over = answered.clone();
        let zeros = std::thread::spawn(move || {
            let head = post("Transfer-Encoding: chunked", field);
            let zeros = vec![b'0'; 1 << 16];
            let mut sent = writer.write_all(head.as_bytes());
            while sent.is_ok() && !over.load(SeqCst) {
                sent = writer.write_all(&zeros);
            }
        });
        let mut reply = String::new();
        let read = client.read_to_string(&mut reply);
        answered.store(true, SeqCst);
        zeros.join().unwrap();
        read.unwrap();
        assert_eq!(statuses(&reply), ["400"], "{reply}");
    }
}

/// The connection continues only if the body was read, and the reply says so.
#[test]
fn an_early_reply_announces_the_end_of_the_connection() {
    let running = start(HttpServer::default(), 64);
    let unread = |fields: &str, body: &str| {
        format!("POST /bytes/4 HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n{body}")
    };
    for request in [
        unread("Content-Length: 100000", ""),
        unread("Content-Length: 4", "body"),
        unread(
            "Transfer-Encoding: chunked",
            "4\r\nbody\r\n4\r\nmore\r\n0\r\n\r\n",
        ),
        unread("Content-Length: 4\r\nExpect: 100-continue", ""),
        post("Content-Length: 100000", ""),
    ] {
        let mut client = connect(running.addr);
        client.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        let announces_end = reply.to_lowercase().contains("\r\nconnection: close\r\n");
        assert!(
            announces_end && statuses(&reply).len() == 1,
            "{request:?}: {reply}"
        );
    }
    let read = [
        post("Content-Length: 4", "body"),
        post(
            "Transfer-Encoding: chunked",
            "4\r\nbody\r\n0\r\nA: b\r\n\r\n",
        ),
        NEXT.to_owned(),
    ];
    let closing = NEXT.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let reply = exchange(running.addr, &(read.concat() + &closing));
    assert_eq!(statuses(&reply), ["200"; 4], "{reply}");
    assert_eq!(reply.to_lowercase().matches("connection: close").count(), 1);
}

/// A rejected head after a request in service: both get replies, in order.
#[test]
fn a_refusal_waits_for_the_replies_before_it() {
    let running = start_with(Timeouts::default());
    let mut client = connect(running.addr);
    let slow = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(slow.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let refused = post("Content-Length: 5\r\nContent-Length: 6", "hello");
    client
        .write_all(format!("{refused}{NEXT}").as_bytes())
        .unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert_eq!(statuses(&reply), ["200", "400"], "{reply}");
    drop(client);
    eventually("counting", || {
        running.counters.snapshot().protocol_errors == 1
    });
}
