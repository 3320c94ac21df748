//! Requests that the server refuses before they have a route: their replies, log lines and counters.

use std::path::Path;

use bytes::Bytes;
use posthaste_gateway::{RunningGateway, start};
use serde_json::Value;

use crate::http2_support::run;
use crate::support::{TestClient, TestOrigin, config, get, wait_until};
use crate::watching::{fetch_admin, value};

const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn metric(gateway: &RunningGateway, name: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{name}"))
}

/// Status of the line, and its method if the request could be read.
fn facts(line: &Value) -> (u64, Option<&str>) {
    assert_eq!(line["client"], "127.0.0.1", "{line}");
    assert!(
        line["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty())
    );
    (line["status"].as_u64().unwrap(), line["method"].as_str())
}

#[test]
fn refused_requests_are_logged_with_client_status_and_reason() {
    let origin = TestOrigin::answering(REPLY);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let gateway = start(config(&[origin.address], &format!("access_log = {file:?}"))).unwrap();
    let fields: String = (0..150).map(|n| format!("X-F{n}: 1\r\n")).collect();
    let long = "a".repeat(70_000);
    let start = "GET / HTTP/1.1\r\nHost: h\r\n";
    let post = "POST / HTTP/1.1\r\nHost: h\r\n";
    let cases = [
        (format!("{start}{fields}\r\n"), 431, None),
        (format!("{start}X: {long}\r\n\r\n"), 431, None),
        (format!("{start}bad header\r\n\r\n"), 400, None),
        (format!("{start}X: a\r\n b\r\n\r\n"), 400, None),
        ("GET / HTTP/3.0\r\nHost: h\r\n\r\n".to_owned(), 400, None),
        ("\u{16}\u{3}\u{1}\u{2}\u{1}\r\n\r\n".to_owned(), 400, None),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, Some("GET")),
        (
            format!("{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            400,
            None,
        ),
        (
            format!("{post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400,
            Some("POST"),
        ),
        (
            format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            501,
            Some("POST"),
        ),
        (
            format!("{post}Expect: x\r\nContent-Length: 0\r\n\r\n"),
            417,
            Some("POST"),
        ),
    ];
    for (index, (request, status, method)) in cases.iter().enumerate() {
        let reply = TestClient::new(&gateway).send(request).reply(false);
        assert_eq!(reply.unwrap().status, *status, "{request:.80}");
        wait_until("a line is written", || lines(&file).len() > index);
        let lines = lines(&file);
        assert_eq!(lines.len(), index + 1, "{request:.80}");
        let expected = (u64::from(*status), *method);
        assert_eq!(facts(&lines[index]), expected, "{request:.80}");
    }
    assert_eq!(
        metric(&gateway, "unreadable_total{version=\"HTTP/1.1\"}"),
        7.0
    );
    assert_eq!(metric(&gateway, "replies_total{status=\"431\"}"), 2.0);
    assert_eq!(metric(&gateway, "replies_total{status=\"400\"}"), 7.0);
    let errors = "connections_total{event=\"protocol-error\"}";
    wait_until("connections have ended", || {
        metric(&gateway, errors) == 11.0
    });
    assert_eq!(origin.request_count(), 0);
    get(&gateway, "/", "");
    wait_until("a line is written", || lines(&file).len() == 12);
    assert!(lines(&file)[11]["error"].is_null());
}

/// The start of a connection of HTTP/2, and one HEADERS frame of stream 1 with this block.
fn http2_head(block: &[u8]) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let mut rest = block;
    let mut kind = 1;
    loop {
        let length = rest.len().min(16_000);
        let is_last = length == rest.len();
        // END_STREAM in HEADERS, END_HEADERS in the last frame.
        let flags = u8::from(kind == 1) | if is_last { 4 } else { 0 };
        bytes.extend(&u32::try_from(length).unwrap().to_be_bytes()[1..]);
        bytes.extend([kind, flags, 0, 0, 0, 1]);
        bytes.extend(&rest[..length]);
        rest = &rest[length..];
        kind = 9;
        if is_last {
            return bytes;
        }
    }
}

/// `:method GET`, `:scheme http`, `:path /`, `:authority h`.
const HEAD: &[u8] = b"\x82\x86\x84\x41\x01h";

#[test]
fn malformed_requests_over_http2_have_a_line() {
    let origin = TestOrigin::answering(REPLY);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let gateway = start(config(&[origin.address], &format!("access_log = {file:?}"))).unwrap();
    let upper = [HEAD, b"\x00\x01X\x01y"].concat();
    let connection = [HEAD, b"\x00\x0aconnection\x05close"].concat();
    // A literal of 70,000 bytes: the length is 127 + 69,873 in 7-bit groups.
    let long = [HEAD, b"\x00\x01x\x7f\xf1\xa1\x04", &[b'a'; 70_000]].concat();
    // An index beyond the table.
    let broken = [HEAD, b"\xff\xff\xff\x7f"].concat();
    let cases = [
        (upper, 400),
        (connection, 400),
        (b"\x82".to_vec(), 400),
        (long, 431),
        (broken, 400),
    ];
    let mut clients = Vec::new();
    for (index, (block, status)) in cases.iter().enumerate() {
        let mut client = TestClient::new(&gateway);
        client.send(http2_head(block));
        clients.push(client);
        wait_until(&format!("line {index} is written"), || {
            lines(&file).len() > index
        });
        let lines = lines(&file);
        assert_eq!(lines.len(), index + 1, "{lines:?}");
        assert_eq!(facts(&lines[index]), (*status, None), "{index}");
        assert_eq!(lines[index]["version"], "HTTP/2");
    }
    assert_eq!(
        metric(&gateway, "unreadable_total{version=\"HTTP/2\"}"),
        5.0
    );
    assert_eq!(metric(&gateway, "replies_total{status=\"431\"}"), 1.0);
    assert_eq!(origin.request_count(), 0);
}

/// A malformed body ends a request that has a line of its own.
#[test]
fn a_served_request_over_http2_has_one_line() {
    let origin = TestOrigin::answering(REPLY);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let gateway = start(config(&[origin.address], &format!("access_log = {file:?}"))).unwrap();
    run(async {
        let stream = tokio::net::TcpStream::connect(gateway.addr).await.unwrap();
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::task::spawn_local(async move { drop(connection.await) });
        for length in ["3", "5"] {
            let request = hyper::Request::post("http://h/").header("content-length", length);
            send = send.ready().await.unwrap();
            let request = request.body(()).unwrap();
            let (reply, mut body) = send.send_request(request, false).unwrap();
            let _ = body.send_data(Bytes::from_static(b"hello"), true);
            let _ = reply.await;
        }
    });
    wait_until("lines are written", || lines(&file).len() >= 2);
    drop(gateway);
    assert_eq!(lines(&file).len(), 2, "{:?}", lines(&file));
    assert_eq!(
        lines(&file)
            .iter()
            .filter(|line| line["status"] == 200)
            .count(),
        1
    );
}

#[test]
fn clients_that_leave_are_no_protocol_errors() {
    let origin = TestOrigin::start(|line| {
        line.request();
        // Until the gateway closes.
        line.request();
    });
    let gateway = start(config(&[origin.address], "")).unwrap();
    for request in ["GET /", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"] {
        TestClient::new(&gateway).send(request);
    }
    let left = "connections_total{event=\"client-left\"}";
    wait_until("both have left", || metric(&gateway, left) == 2.0);
    let errors = "connections_total{event=\"protocol-error\"}";
    assert_eq!(metric(&gateway, errors), 0.0);
    assert_eq!(
        metric(&gateway, "unreadable_total{version=\"HTTP/1.1\"}"),
        0.0
    );
}
