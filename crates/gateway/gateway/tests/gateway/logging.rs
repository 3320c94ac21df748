//! The access log: facts of each reply, both formats, redaction, replies that are cut off, and rotation.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_gateway::{GatewayError, RunningGateway, start};
use serde_json::Value;

use crate::support::{PATIENCE, SeenSignal, TestClient, TestOrigin, config, get, wait_until};

const SHORT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A gateway with an access log.
struct Logged {
    gateway: RunningGateway,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Logged {
    /// `more` are keys and tables of the configuration.
    fn start(origin: &TestOrigin, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("access.log");
        let more = format!("access_log = {file:?}\n{more}");
        Self {
            gateway: start(config(&[origin.address], &more)).unwrap(),
            file,
            _folder: folder,
        }
    }

    /// Waits for a number of lines.
    fn wait_for(&self, count: usize) -> Vec<String> {
        wait_until("the lines are written", || lines(&self.file).len() >= count);
        lines(&self.file)
    }

    /// Waits for a number of lines of JSON.
    fn values(&self, count: usize) -> Vec<Value> {
        let lines = self.wait_for(count);
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Whole lines of a file.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole.map(|line| line.trim_end().to_owned()).collect()
}

fn book(length: usize) -> String {
    let body: String = (0..length / 16)
        .map(|n| format!("<book id='{n:05}'/>"))
        .collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_line_has_the_facts_of_its_request_and_reply() {
    let origin = TestOrigin::answering(SHORT);
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    client.send(
        "POST /a/b?name=secret&flag HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test/1\r\n\
         Referer: https://a.example/x?token=secret\r\nContent-Length: 11\r\n\r\nhello world",
    );
    assert_eq!(client.reply(false).unwrap().status, 200);
    let line = &logged.values(1)[0];
    let expected = [
        ("client", Value::from("127.0.0.1")),
        ("method", "POST".into()),
        ("path", "/a/b".into()),
        ("query", "name=*&*".into()),
        ("version", "HTTP/1.1".into()),
        ("host", "shop.example".into()),
        ("user_agent", "test/1".into()),
        ("referer", "https://a.example/x?token=*".into()),
        ("status", 200.into()),
        ("request_bytes", 11.into()),
        ("bytes", 5.into()),
        ("complete", true.into()),
        ("route", "/".into()),
        ("upstream", origin.address.to_string().into()),
        ("traceparent", Value::Null),
    ];
    for (key, value) in expected {
        assert_eq!(line[key], value, "{key}");
    }
    let phases = line["phases"].as_object().unwrap();
    let time = |phase: &str| {
        phases[phase]
            .as_f64()
            .unwrap_or_else(|| panic!("no {phase}"))
    };
    let parts: f64 = ["receive", "queue", "upstream", "compress", "body"]
        .map(time)
        .iter()
        .sum();
    assert!(time("upstream") > 0.0);
    // Only rounding is between them.
    assert!((parts - time("total")).abs() < 0.001, "{phases:?}");
    let head = line["milliseconds"].as_f64().unwrap();
    assert!(
        (head + time("body") - time("total")).abs() < 0.001,
        "{line}"
    );
}

#[test]
fn the_query_is_logged_as_configured() {
    let origin = TestOrigin::answering(SHORT);
    for (query, expected) in [
        ("redact", Value::from("a=*")),
        ("keep", "a=1".into()),
        ("omit", Value::Null),
    ] {
        let logged = Logged::start(&origin, &format!("[log]\nquery = \"{query}\""));
        get(&logged.gateway, "/?a=1", "");
        assert_eq!(logged.values(1)[0]["query"], expected);
    }
}

#[test]
fn the_combined_format_is_written_as_apache_does() {
    let origin = TestOrigin::answering(SHORT);
    let logged = Logged::start(&origin, "[log]\nformat = \"combined\"");
    get(
        &logged.gateway,
        "/a?b=1",
        "User-Agent: a \"quoted\" \\ agent\r\nReferer: https://a.example/\r\n",
    );
    get(&logged.gateway, "/", "");
    let lines = logged.wait_for(2);
    let (start, rest) = lines[0].split_once('[').unwrap();
    assert_eq!(start, "127.0.0.1 - - ");
    let (time, rest) = rest.split_once("] ").unwrap();
    assert!(
        time.len() == "26/Nov/2026:00:00:00 +0000".len() && time.ends_with(" +0000"),
        "{time}"
    );
    assert_eq!(
        rest,
        r#""GET /a?b=* HTTP/1.1" 200 5 "https://a.example/" "a \"quoted\" \\ agent""#
    );
    assert!(
        lines[1].ends_with(r#""GET / HTTP/1.1" 200 5 "-" "-""#),
        "{}",
        lines[1]
    );
}

#[test]
fn bytes_are_those_that_the_client_got() {
    // One reply is compressed whole, the other as a stream.
    for length in [20_000, 400_000] {
        let origin = TestOrigin::answering(book(length));
        let logged = Logged::start(&origin, "");
        let fields = "Accept-Encoding: gzip\r\nPrefer: compression=always\r\n";
        let reply = get(&logged.gateway, "/", fields);
        assert!(
            reply.whole && reply.head.contains("content-encoding: gzip"),
            "{}",
            reply.head
        );
        let plain = get(&logged.gateway, "/", "Accept-Encoding: identity\r\n");
        let lines = logged.values(2);
        assert_eq!(lines[0]["bytes"], reply.body.len());
        assert!(reply.body.len() < length / 2);
        assert_eq!(lines[1]["bytes"], plain.body.len());
        assert!(
            lines.iter().all(|line| line["complete"] == true),
            "{lines:?}"
        );
    }
}

#[test]
fn replies_without_a_body_are_complete() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            if request.starts_with("HEAD /gone") {
                return;
            }
            line.write(if request.starts_with("HEAD") {
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            } else {
                "HTTP/1.1 304 Not Modified\r\n\r\n"
            });
        }
    });
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    // The last one is the gateway's own reply.
    for request in ["HEAD / HTTP/1.1", "GET / HTTP/1.1", "HEAD /gone HTTP/1.1"] {
        client.send(format!("{request}\r\nHost: s\r\n\r\n"));
        client.reply(true).unwrap();
    }
    let lines = logged.values(3);
    let statuses: Vec<&Value> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [200, 304, 502]);
    for line in lines {
        assert_eq!(
            (&line["bytes"], &line["complete"]),
            (&0.into(), &true.into()),
            "{line}"
        );
    }
}

#[test]
fn a_reply_that_the_upstream_cuts_off_is_logged_as_incomplete() {
    let seen = SeenSignal::default();
    let wait = seen.clone();
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this");
        wait.wait();
    });
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    client
        .send("GET / HTTP/1.1\r\nHost: s\r\n\r\n")
        .wait_for_some();
    seen.tell();
    assert!(!client.reply(false).unwrap().whole);
    let line = &logged.values(1)[0];
    assert_eq!(
        (&line["status"], &line["complete"]),
        (&200.into(), &false.into())
    );
    assert_eq!(line["bytes"], "only this".len());
}

#[test]
fn a_reply_whose_client_leaves_is_logged_as_incomplete() {
    const LENGTH: usize = 32 << 20;
    let origin = TestOrigin::start(|line| {
        line.request();
        line.write(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"
        ));
        line.write(vec![b'x'; LENGTH]);
    });
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    client
        .send("GET / HTTP/1.1\r\nHost: s\r\n\r\n")
        .wait_for_some();
    assert!(lines(&logged.file).is_empty(), "a line before the end");
    drop(client);
    let line = &logged.values(1)[0];
    assert_eq!(
        (&line["status"], &line["complete"]),
        (&200.into(), &false.into())
    );
    assert!(line["bytes"].as_u64().unwrap() < LENGTH as u64, "{line}");
}

#[test]
fn the_line_of_a_slow_client_is_written_when_it_has_everything() {
    // More than the buffers of two sockets.
    const LENGTH: usize = 32 << 20;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
    let origin = TestOrigin::answering([head.into_bytes(), vec![b'x'; LENGTH]].concat());
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n");
    client.wait_for_some();
    std::thread::sleep(Duration::from_millis(300));
    assert!(lines(&logged.file).is_empty(), "a line before the end");
    let reply = client.reply(false).unwrap();
    let line = &logged.values(1)[0];
    assert_eq!(line["bytes"], reply.body.len());
    assert_eq!(line["complete"], true);
    assert!(line["phases"]["body"].as_f64().unwrap() >= 300.0, "{line}");
}

#[test]
fn a_request_whose_client_leaves_before_the_reply_has_a_line() {
    let signal = SeenSignal::default();
    let wait = signal.clone();
    let origin = TestOrigin::start(move |line| {
        line.request();
        wait.wait();
    });
    let logged = Logged::start(&origin, "");
    let mut client = TestClient::new(&logged.gateway);
    client.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the upstream is asked", || origin.request_count() == 1);
    drop(client);
    let line = &logged.values(1)[0];
    signal.tell();
    assert_eq!(
        (&line["status"], &line["path"]),
        (&499.into(), &"/slow".into())
    );
    assert_eq!(
        (&line["complete"], &line["bytes"]),
        (&false.into(), &0.into())
    );
    assert!(line["phases"]["upstream"].is_number() && line["phases"]["compress"].is_null());
}

#[test]
fn log_lines_of_rejected_requests_omit_skipped_phases() {
    let origin = TestOrigin::answering(SHORT);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let text = format!(
        "listen = \"127.0.0.1:0\"\naccess_log = {file:?}\n[protection]\npolicy = \"rate\"\n\
         rate = \"1/min\"\nburst = 1\n[[route]]\npath = \"/shop\"\nupstream = [\"{}\"]\n",
        origin.address
    );
    let gateway = start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    get(&gateway, "/elsewhere", "");
    for _ in 0..2 {
        get(&gateway, "/shop", "");
    }
    // Rejected below the gateway, for its framing.
    get(
        &gateway,
        "http://me:secret@s/shop",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
    );
    drop(gateway);
    let lines: Vec<Value> = lines(&file)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statuses: Vec<u64> = lines
        .iter()
        .map(|line| line["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [404, 200, 429, 400]);
    let routes: Vec<&Value> = lines.iter().map(|line| &line["route"]).collect();
    assert_eq!(
        routes,
        [&Value::Null, &"/shop".into(), &"/shop".into(), &Value::Null]
    );
    for line in [&lines[0], &lines[2]] {
        assert!(line["phases"]["receive"].is_number(), "{line}");
        for phase in ["queue", "upstream", "compress"] {
            assert!(line["phases"][phase].is_null(), "{phase}: {line}");
        }
        assert!(
            line["upstream"].is_null() && line["complete"] == true,
            "{line}"
        );
        assert!(line["bytes"].as_u64().unwrap() > 0, "{line}");
    }
    assert!(lines[3]["bytes"].is_null() && lines[3]["complete"].is_null());
    assert_eq!(lines[3]["host"], "s");
}

#[test]
fn hostile_texts_neither_break_a_line_nor_fill_the_disk() {
    let origin = TestOrigin::answering(SHORT);
    for format in ["json", "combined"] {
        let logged = Logged::start(&origin, &format!("[log]\nformat = \"{format}\""));
        let long = "u".repeat(20_000);
        let mut request =
            b"GET / HTTP/1.1\r\nHost: s\r\nReferer: \xff\x80 \xc2\x9b2J\t\r\n".to_vec();
        request.extend(format!("User-Agent: {long}\r\n\r\n").into_bytes());
        TestClient::new(&logged.gateway)
            .send(request)
            .reply(false)
            .unwrap();
        let lines = logged.wait_for(1);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < 3000, "{} bytes", lines[0].len());
        assert!(!lines[0].contains(char::is_control), "{}", lines[0]);
        assert!(!lines[0].contains(&"u".repeat(1025)));
    }
}

/// A client of HTTP/2 that has sent a GET for `/a?b=1` with the authority `s`.
fn http2(gateway: &RunningGateway) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let block = b"\x82\x86\x04\x06/a?b=1\x01\x01s";
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS, then HEADERS with END_STREAM and END_HEADERS.
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    stream.write_all(&bytes).unwrap();
    stream
}

#[test]
fn http2_requests_are_logged_and_reset_ones_are_incomplete() {
    let origin = TestOrigin::answering(SHORT);
    let logged = Logged::start(&origin, "");
    let _client = http2(&logged.gateway);
    let line = &logged.values(1)[0];
    for (key, value) in [("version", "HTTP/2"), ("host", "s"), ("query", "b=*")] {
        assert_eq!(line[key], value);
    }
    assert_eq!(
        (&line["bytes"], &line["complete"]),
        (&5.into(), &true.into())
    );

    // More than the window of a stream.
    let origin = TestOrigin::answering(book(400_000));
    let logged = Logged::start(&origin, "");
    let mut client = http2(&logged.gateway);
    let mut received = 0;
    while received < 65_535 {
        received += client.read(&mut [0; 4096]).unwrap();
    }
    // RST_STREAM with CANCEL.
    client
        .write_all(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8])
        .unwrap();
    let line = &logged.values(1)[0];
    assert_eq!(
        (&line["status"], &line["complete"]),
        (&200.into(), &false.into())
    );
    assert!(line["bytes"].as_u64().unwrap() < 400_000, "{line}");
}

#[test]
fn a_reload_reopens_the_rotated_log_and_changes_its_format() {
    let origin = TestOrigin::answering(SHORT);
    let logged = Logged::start(&origin, "");
    get(&logged.gateway, "/before", "");
    logged.wait_for(1);
    let rotated = logged.file.with_extension("1");
    std::fs::rename(&logged.file, &rotated).unwrap();
    get(&logged.gateway, "/between", "");
    wait_until("the line is in the old file", || lines(&rotated).len() == 2);
    let more = format!(
        "access_log = {:?}\n[log]\nformat = \"combined\"",
        logged.file
    );
    logged
        .gateway
        .reload(config(&[origin.address], &more))
        .unwrap();
    // A thread applies the new format a little later.
    wait_until("the new format is written", || {
        get(&logged.gateway, "/after", "");
        let text = std::fs::read_to_string(&logged.file).unwrap();
        text.contains("\"GET /after HTTP/1.1\"")
    });
    assert_eq!(lines(&rotated).len(), 2);

    // Only a restart starts or ends the log.
    let error = logged
        .gateway
        .reload(config(&[origin.address], ""))
        .unwrap_err();
    assert!(
        matches!(error, GatewayError::Fixed("access_log")),
        "{error}"
    );

    // A file that cannot be opened changes nothing.
    let more = "access_log = \"/nowhere/log\"";
    let error = logged
        .gateway
        .reload(config(&[origin.address], more))
        .unwrap_err();
    assert!(error.to_string().contains("/nowhere/log"), "{error}");
    let before = lines(&logged.file).len();
    get(&logged.gateway, "/still", "");
    wait_until("the line is written", || lines(&logged.file).len() > before);
}

#[test]
fn a_new_log_belongs_to_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let origin = TestOrigin::answering(SHORT);
    let logged = Logged::start(&origin, "");
    let mode = std::fs::metadata(&logged.file)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
