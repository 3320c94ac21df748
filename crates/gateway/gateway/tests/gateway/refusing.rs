//! Ambiguous requests, and requests beyond limits.

use std::time::Instant;

use crate::support::{OK, PATIENCE, TestClient, TestOrigin, config, field, gateway, get};
use posthaste_gateway::start;

/// Sends each request and a second one on the same connection. Checks the status, and that neither reaches the
/// upstream.
#[test]
fn ambiguous_requests_are_not_forwarded() {
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n";
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    for (status, fields, body) in [
        (400, "Content-Length: 5\r\nContent-Length: 6", "hello"),
        (400, "Content-Length: 5, 5", "hello"),
        (400, "Content-Length: +5", "hello"),
        (400, "Content-Length: -5", "hello"),
        (400, "Content-Length: 0x5", "hello"),
        (400, "Content-Length: 5 5", "hello"),
        (400, "Content-Length: 99999999999999999999", "hello"),
        (400, "Content-Length : 5", "hello"),
        (400, "Content-Length\t: 5", "hello"),
        (400, " Content-Length: 5", "hello"),
        (400, "X: 1\r\n Content-Length: 5", "hello"),
        (400, "X: a\rContent-Length: 5", "hello"),
        (400, "X: a\0b", ""),
        (501, "Transfer-Encoding: chunked, identity", "0\r\n\r\n"),
        (501, "Transfer-Encoding: xchunked", "0\r\n\r\n"),
        (501, "Transfer-Encoding: identity", "0\r\n\r\n"),
        (501, "Transfer-Encoding: gzip, chunked", "0\r\n\r\n"),
        (
            501,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "0\r\n\r\n",
        ),
        (400, "Transfer-Encoding:\x0bchunked", "0\r\n\r\n"),
        (400, "Host: other", ""),
    ] {
        let before = origin.request_count();
        let request = format!("POST / HTTP/1.1\r\nHost: s\r\n{fields}\r\n\r\n{body}{smuggled}");
        let reply = TestClient::new(&gateway).send(&request).rest();
        let reply = String::from_utf8_lossy(&reply);
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {status}")),
            "{fields:?}: {reply}"
        );
        assert_eq!(reply.matches("HTTP/1.1 ").count(), 1, "{fields:?}: {reply}");
        assert_eq!(origin.request_count(), before, "{fields:?}");
    }
}

/// RFC 9112, section 6.3, allows chunks to override a length. A reader that does otherwise finds another request in the
/// body.
#[test]
fn a_request_with_two_lengths_reaches_nobody() {
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4\r\nContent-Length: 4",
    ] {
        let origin = TestOrigin::answering(OK);
        let gateway = gateway(&origin);
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\n{fields}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n"
        );
        let reply = TestClient::new(&gateway).send(request).rest();
        let reply = String::from_utf8_lossy(&reply).to_lowercase();
        assert!(reply.starts_with("http/1.1 400 "), "{fields:?}: {reply}");
        assert_eq!(reply.matches("http/1.1 ").count(), 1, "{reply}");
        assert!(reply.contains("\r\nconnection: close\r\n"), "{reply}");
        assert_eq!(origin.request_count(), 0);
    }
}

/// A lenient reader would take the bytes up to the next empty line for trailers and lose the request in them.
#[test]
fn no_request_is_swallowed_by_the_chunks_before_it() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    for end in ["0\r\n\n", "0\r\nA: b\n", "0\r\nA: b\n\r\n"] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n{end}GET /a HTTP/1.1\r\nHost: s\r\n\r\nGET /b HTTP/1.1\r\nHost: s\r\n\r\n"
        );
        let reply = TestClient::new(&gateway).send(request).rest();
        let reply = String::from_utf8_lossy(&reply).to_lowercase();
        assert!(reply.starts_with("http/1.1 400 "), "{end:?}: {reply}");
        assert_eq!(reply.matches("http/1.1 ").count(), 1, "{end:?}: {reply}");
    }
}

#[test]
fn request_lines_and_hosts_are_checked() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    for (status, head) in [
        (400, "GET / HTTP/1.1"),
        (400, "GET  / HTTP/1.1\r\nHost: s"),
        (400, "GET / HTTP/1.1 \r\nHost: s"),
        (400, "GET / HTTP/9.9\r\nHost: s"),
        (400, "GET http://user@s/ HTTP/1.1\r\nHost: s"),
        (400, "GET / HTTP/1.1\r\nHost: user@s"),
        (400, "GET / HTTP/1.1\r\nHost: s/x"),
        (400, "GET / HTTP/1.1\r\nHost: s, evil"),
        (400, "GET / HTTP/1.1\r\nHost: a..b"),
        (400, "GET / HTTP/1.1\r\nHost:"),
        (400, "GET http://s/ HTTP/1.1"),
        (400, "GET http://s/ HTTP/1.1\r\nHost: other"),
        (417, "GET / HTTP/1.1\r\nHost: s\r\nExpect: magic"),
        (400, "GET foo HTTP/1.1\r\nHost: s"),
        (400, "G\u{e9}T / HTTP/1.1\r\nHost: s"),
        (400, "\0\u{1}\u{2}"),
        (400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked"),
        (501, "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: gzip"),
        (
            501,
            "POST / HTTP/1.1\r\nHost: s\r\nTRANSFER-ENCODING: identity",
        ),
        (
            501,
            "GET / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: x, chunked",
        ),
        (501, "CONNECT s:80 HTTP/1.1\r\nHost: s"),
        (501, "TRACE / HTTP/1.1\r\nHost: s"),
    ] {
        let reply = TestClient::new(&gateway)
            .send(format!("{head}\r\nConnection: close\r\n\r\n"))
            .rest();
        let reply = String::from_utf8_lossy(&reply);
        let status = format!(" {status} ");
        assert!(
            reply.starts_with("HTTP/1.") && reply[8..].starts_with(&status),
            "{head:?}: {reply}"
        );
    }
    assert_eq!(origin.request_count(), 0);
}

#[test]
fn nothing_behind_malformed_chunks_is_forwarded() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    for chunks in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3 3\r\nabc\r\n0\r\n\r\n",
        "ffffffffffffffff0\r\nabc\r\n0\r\n\r\n",
        "3\nabc\n0\n\n",
    ] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n"
        );
        let reply = TestClient::new(&gateway).send(request).rest();
        let reply = String::from_utf8_lossy(&reply);
        assert!(!reply.contains(" 200 "), "{chunks:?}: {reply}");
        assert!(
            reply.matches("HTTP/1.1 ").count() <= 1,
            "{chunks:?}: {reply}"
        );
    }
    let requests = origin.requests.lock().unwrap();
    assert!(
        requests.iter().all(|request| !request.contains("smuggled")),
        "{requests:?}"
    );
}

#[test]
fn too_much_is_refused() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "[limits]\nbody = \"1000B\"")).unwrap();
    let status = |request: String| {
        let reply = TestClient::new(&gateway).send(request).rest();
        String::from_utf8_lossy(&reply)
            .split(' ')
            .nth(1)
            .map(str::to_owned)
    };
    let close = "Host: s\r\nConnection: close\r\n";
    let long = "a".repeat(70_000);
    let many: String = (0..200).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let chunk = format!("400\r\n{}\r\n0\r\n\r\n", "b".repeat(1024));
    for (code, request) in [
        ("431", format!("GET / HTTP/1.1\r\n{close}X: {long}\r\n\r\n")),
        ("431", format!("GET / HTTP/1.1\r\n{close}{many}\r\n")),
        ("431", format!("GET /{long} HTTP/1.1\r\n{close}\r\n")),
        (
            "413",
            format!("POST / HTTP/1.1\r\n{close}Content-Length: 1001\r\n\r\n"),
        ),
        (
            "413",
            format!("POST / HTTP/1.1\r\n{close}Transfer-Encoding: chunked\r\n\r\n{chunk}"),
        ),
        (
            "200",
            format!(
                "POST / HTTP/1.1\r\n{close}Content-Length: 1000\r\n\r\n{}",
                "c".repeat(1000)
            ),
        ),
    ] {
        assert_eq!(
            status(request.clone()).as_deref(),
            Some(code),
            "{:.60}",
            request
        );
    }
}

#[test]
fn an_endless_header_and_a_slow_one_end() {
    let origin = TestOrigin::answering(OK);
    let limits = "[timeouts]\nhead = \"500ms\"\nbody = \"500ms\"";
    let gateway = start(config(&[origin.address], limits)).unwrap();
    let mut endless = TestClient::new(&gateway);
    endless.send("GET / HTTP/1.1\r\nHost: s\r\n");
    for _ in 0..100 {
        endless.send(format!("X: {}\r\n", "y".repeat(1000)));
    }
    assert!(endless.rest().starts_with(b"HTTP/1.1 431"));

    for start in [
        "GET / HTTP/1.1\r\nHo",
        "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 10\r\n\r\nhal",
    ] {
        let mut slow = TestClient::new(&gateway);
        let begin = Instant::now();
        slow.send(start);
        slow.rest();
        assert!(begin.elapsed() < PATIENCE, "{start:?}");
    }
    assert_eq!(origin.request_count(), 0);
}

#[test]
fn paths_without_a_route_are_not_found() {
    let origin = TestOrigin::answering(OK);
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/shop\"\nupstream = [\"{}\"]",
        origin.address
    );
    let gateway = start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    assert_eq!(crate::support::get(&gateway, "/", "").status, 404);
}

#[test]
fn the_number_of_fields_has_a_key() {
    let many = |count: usize| -> String { (0..count).map(|n| format!("X-{n}: {n}\r\n")).collect() };
    let long_reply = OK.replacen("\r\n", &format!("\r\n{}", many(190)), 1);
    let origin = TestOrigin::answering(long_reply);
    let limits = "[limits]\nfields = 200";
    let gateway = start(config(&[origin.address], limits)).unwrap();
    let reply = get(&gateway, "/", &many(190));
    assert_eq!(reply.status, 200);
    assert_eq!(field(&reply.head, "x-189"), Some("189"));
    let request = format!("GET / HTTP/1.1\r\nHost: s\r\n{}\r\n", many(200));
    let reply = TestClient::new(&gateway).send(request).reply(false);
    assert_eq!(reply.unwrap().status, 431);
    let by_default = crate::support::gateway(&origin);
    assert_eq!(get(&by_default, "/", "").status, 502);
}
