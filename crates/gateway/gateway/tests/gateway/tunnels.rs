//! Switches of protocol and tunnels over HTTP/1.1.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use posthaste_gateway::{RunningGateway, start};

use crate::support::{
    OK, OriginConnection, SeenSignal, TestClient, TestOrigin, config, field, gateway, wait_until,
};
use crate::watching::{fetch_admin, value};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The handshake of a WebSocket client, and the reply of RFC 6455, section 1.3.
pub(crate) const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
pub(crate) const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Copies back every byte until the end, and then ends.
pub(crate) fn echo(line: &mut OriginConnection) {
    let mut piece = [0; 65536];
    while let Ok(length @ 1..) = line.stream.read(&mut piece) {
        if line.stream.write_all(&piece[..length]).is_err() {
            return;
        }
    }
}

/// An upstream that accepts each handshake and then does `serve`.
fn switching(serve: impl Fn(&mut OriginConnection) + Send + Sync + 'static) -> TestOrigin {
    TestOrigin::start(move |line| {
        if line.request().is_some() {
            line.write(SWITCHED);
            serve(line);
        }
    })
}

/// Opens a tunnel, and checks the reply.
fn open(gateway: &RunningGateway) -> TestClient {
    let mut client = TestClient::new(gateway);
    client.send(HANDSHAKE);
    let head = head(&mut client);
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert_eq!(field(&head, "upgrade"), Some("websocket"));
    assert_eq!(field(&head, "connection"), Some("upgrade"));
    client
}

/// Reads a head, in lower case, and nothing after it.
fn head(client: &mut TestClient) -> String {
    let mut stream = client.clone_stream();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "the gateway has closed");
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

fn exactly(client: &mut TestClient, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    client.clone_stream().read_exact(&mut bytes).unwrap();
    bytes
}

pub(crate) fn metric(gateway: &RunningGateway, name: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{name} "))
}

pub(crate) fn ended(gateway: &RunningGateway, reason: &str) -> bool {
    metric(
        gateway,
        &format!("tunnels_ended_total{{reason=\"{reason}\"}}"),
    ) == 1.0
}

pub(crate) fn switches(gateway: &RunningGateway, outcome: &str) -> f64 {
    let labels = format!("protocol=\"websocket\",outcome=\"{outcome}\"");
    metric(gateway, &format!("switches_total{{{labels}}}"))
}

pub(crate) fn ignored(gateway: &RunningGateway, reason: &str) -> f64 {
    metric(
        gateway,
        &format!("switches_ignored_total{{reason=\"{reason}\"}}"),
    )
}

#[test]
fn bytes_pass_both_ways_after_a_switch_and_are_counted() {
    let origin = switching(echo);
    let gateway = gateway(&origin);
    let mut client = open(&gateway);
    let request = origin.last_request().to_lowercase();
    assert!(request.starts_with("get /chat http/1.1\r\n"), "{request}");
    assert_eq!(field(&request, "connection"), Some("upgrade"));
    assert_eq!(field(&request, "upgrade"), Some("websocket"));
    assert_eq!(
        field(&request, "sec-websocket-key"),
        Some(&*KEY.to_lowercase())
    );
    assert_eq!(field(&request, "x-forwarded-for"), Some("127.0.0.1"));
    for piece in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x81\x85\0\n\n#"] {
        client.send(piece);
        assert_eq!(exactly(&mut client, piece.len()), piece);
    }
    assert_eq!(metric(&gateway, "tunnels_open"), 1.0);
    client.clone_stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"");
    wait_until("the tunnel has ended", || ended(&gateway, "client-closed"));
    assert_eq!(metric(&gateway, "tunnels_open"), 0.0);
    assert_eq!(switches(&gateway, "opened"), 1.0);
    for to in ["upstream", "client"] {
        let bytes = metric(&gateway, &format!("tunnel_bytes_total{{to=\"{to}\"}}"));
        assert_eq!(bytes, 24.0, "{to}");
    }
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    assert!(page.contains("0 of 1 tunnels open."), "{page}");
}

#[test]
fn bytes_right_behind_either_head_are_the_first_of_the_tunnel() {
    let origin = TestOrigin::start(|line| {
        line.request().unwrap();
        line.write(format!("{SWITCHED}hello"));
        echo(line);
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send(format!("{HANDSHAKE}early"));
    assert!(head(&mut client).starts_with("http/1.1 101 "));
    assert_eq!(exactly(&mut client, 10), b"helloearly");
    client.send("later");
    assert_eq!(exactly(&mut client, 5), b"later");
}

#[test]
fn early_bytes_that_are_broken_as_http_close_the_connection() {
    let origin = switching(echo);
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    let broken = "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\nGET /";
    client.send(format!("{HANDSHAKE}{broken}"));
    assert!(head(&mut client).starts_with("http/1.1 101 "));
    assert_eq!(client.rest(), b"");
    wait_until("the tunnel has ended", || ended(&gateway, "client-error"));
}

#[test]
fn a_slow_receiver_stops_its_sender_and_loses_nothing() {
    const LENGTH: u64 = 64 << 20;
    let sent = Arc::<AtomicU64>::default();
    let counter = sent.clone();
    let origin = switching(move |line| {
        let mut reader = line.stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let (mut piece, mut total) = ([0; 65536], 0);
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                total += length as u64;
            }
            total
        });
        for number in 0..LENGTH / 8192 {
            line.stream
                .write_all(&number.to_be_bytes().repeat(1024))
                .unwrap();
            counter.fetch_add(8192, SeqCst);
        }
        let total = reading.join().unwrap();
        line.write(total.to_be_bytes());
    });
    let gateway = gateway(&origin);
    let mut client = open(&gateway);
    // Nothing is read until the sender stands still.
    let mut last = (0, Instant::now());
    wait_until("the sender stands still", || {
        let now = sent.load(SeqCst);
        if now != last.0 || now == 0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_secs(1)
    });
    let waiting = last.0;
    assert!(waiting < LENGTH / 2, "{waiting} bytes are under way");
    let mut writer = client.clone_stream();
    let writing = std::thread::spawn(move || {
        for _ in 0..LENGTH / 65536 {
            writer.write_all(&[7; 65536]).unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    for number in 0..LENGTH / 8192 {
        let piece = exactly(&mut client, 8192);
        assert!(piece == number.to_be_bytes().repeat(1024), "at {number}");
    }
    writing.join().unwrap();
    assert_eq!(client.rest(), LENGTH.to_be_bytes());
}

#[test]
fn the_end_of_one_side_is_passed_on_and_the_other_continues() {
    let origin = switching(|line| {
        let mut all = Vec::new();
        line.stream.read_to_end(&mut all).unwrap();
        line.write(b"got ");
        line.write(&all);
    });
    let first = gateway(&origin);
    let mut client = open(&first);
    client.send("this");
    client.clone_stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"got this");
    wait_until("it has ended", || ended(&first, "client-closed"));
    // The end may come before the reply, with or without data.
    for data in ["", "this"] {
        let mut client = TestClient::new(&first);
        client.send(format!("{HANDSHAKE}{data}"));
        client.clone_stream().shutdown(Shutdown::Write).unwrap();
        let rest = String::from_utf8(client.rest()).unwrap();
        assert!(rest.ends_with(&format!("got {data}")), "{rest}");
    }

    let origin = switching(|line| {
        line.write(b"that");
        line.stream.shutdown(Shutdown::Write).unwrap();
        let mut all = String::new();
        line.stream.read_to_string(&mut all).unwrap();
        line.requests().lock().unwrap().push(all);
    });
    let second = gateway(&origin);
    let mut client = open(&second);
    assert_eq!(client.rest(), b"that");
    client.send("late");
    client.clone_stream().shutdown(Shutdown::Write).unwrap();
    wait_until("the upstream has it", || origin.last_request() == "late");
    wait_until("it has ended", || ended(&second, "upstream-closed"));
}

#[test]
fn a_failure_of_one_side_resets_the_other() {
    let origin = switching(|line| {
        let mut all = Vec::new();
        let outcome = line.stream.read_to_end(&mut all);
        let kind = outcome.map_err(|error| format!("{:?}", error.kind()));
        line.requests().lock().unwrap().push(format!("{kind:?}"));
    });
    let gateway = gateway(&origin);
    let client = open(&gateway);
    let stream = client.clone_stream();
    drop(client);
    reset(&stream);
    drop(stream);
    wait_until("the upstream is reset", || {
        origin.last_request() == "Err(\"ConnectionReset\")"
    });
    wait_until("it is counted", || ended(&gateway, "client-error"));
}

/// Has the socket close by a reset.
fn reset(stream: &std::net::TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_refusal_of_the_upstream_is_an_ordinary_reply() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            line.write(if request.contains("websocket") {
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
            } else {
                OK
            });
        }
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send(HANDSHAKE);
    let reply = client.reply(false).unwrap();
    assert_eq!((reply.status, &*reply.body), (403, &b"no"[..]));
    // The connection continues, with a request that came in between.
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().body, b"ok");
    assert_eq!(switches(&gateway, "refused"), 1.0);
    assert_eq!(metric(&gateway, "tunnels_open"), 0.0);
}

#[test]
fn data_after_a_declined_upgrade_is_the_next_request() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send(format!("{HANDSHAKE}GET /next HTTP/1.1\r\nHost: s\r\n\r\n"));
    for _ in 0..2 {
        assert_eq!(client.reply(false).unwrap().body, b"ok");
    }
    assert!(origin.last_request().starts_with("GET /next HTTP/1.1\r\n"));
    assert_eq!(
        field(&origin.last_request().to_lowercase(), "upgrade"),
        None
    );
}

#[test]
fn data_after_an_accepted_upgrade_is_not_a_request() {
    let origin = switching(echo);
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    let next = "GET /next HTTP/1.1\r\nHost: s\r\n\r\n";
    client.send(format!("{HANDSHAKE}{next}"));
    assert!(head(&mut client).starts_with("http/1.1 101 "));
    assert_eq!(exactly(&mut client, next.len()), next.as_bytes());
    assert_eq!(origin.request_count(), 1);
}

#[test]
fn a_switch_to_something_else_is_a_broken_reply() {
    for wrong in [
        SWITCHED.replace("websocket", "chat"),
        SWITCHED.replace("websocket", "websocket, chat"),
        SWITCHED.replace("Connection: Upgrade\r\n", ""),
        SWITCHED.replace("Upgrade: websocket\r\n", ""),
        SWITCHED.replace("s3pP", "S3pP"),
        SWITCHED.replace("Sec-WebSocket-Accept", "X"),
        SWITCHED.replacen("\r\n", "\r\nContent-Length: 5\r\n", 1),
        SWITCHED.replacen("\r\n", "\r\nTransfer-Encoding: chunked\r\n", 1),
    ] {
        let reply = wrong.clone();
        let origin = TestOrigin::start(move |line| {
            line.request().unwrap();
            line.write(&reply);
            echo(line);
        });
        let gateway = gateway(&origin);
        let mut client = TestClient::new(&gateway);
        client.send(HANDSHAKE);
        assert_eq!(client.reply(false).unwrap().status, 502, "{wrong}");
        assert_eq!(switches(&gateway, "invalid"), 1.0);
        assert_eq!(metric(&gateway, "tunnels_open"), 0.0);
    }
}

#[test]
fn a_switch_that_is_not_beyond_doubt_is_ignored() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    let body = HANDSHAKE.replace("\r\n\r\n", "\r\nContent-Length: 2\r\n\r\nhi");
    let post = body.replace("GET", "POST");
    for (request, reason) in [
        (HANDSHAKE.replace("websocket\r\n", "h2c\r\n"), "protocol"),
        (
            HANDSHAKE.replace("Connection: Upgrade\r\n", ""),
            "connection",
        ),
        (
            HANDSHAKE.replace("websocket\r\n", "web socket\r\n"),
            "malformed",
        ),
        (HANDSHAKE.replace("Version: 13", "Version: 8"), "version"),
        (HANDSHAKE.replace(KEY, "abc"), "key"),
        (body, "body"),
        (post, "method"),
    ] {
        let mut client = TestClient::new(&gateway);
        let reply = client.send(&request).reply(false).unwrap();
        assert_eq!(reply.status, 200, "{request}");
        let forwarded = origin.last_request().to_lowercase();
        assert_eq!(field(&forwarded, "upgrade"), None, "{forwarded}");
        assert_eq!(field(&forwarded, "connection"), None, "{forwarded}");
        assert_eq!(ignored(&gateway, reason), 1.0, "{reason}");
    }
    // HTTP/1.0 knows no Upgrade.
    let old = HANDSHAKE.replace("HTTP/1.1", "HTTP/1.0");
    let reply = TestClient::new(&gateway).send(old).reply(false).unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(
        field(&origin.last_request().to_lowercase(), "upgrade"),
        None
    );
}

#[test]
fn the_first_allowed_of_several_protocols_is_requested() {
    let origin = TestOrigin::start(|line| {
        line.request().unwrap();
        line.write("HTTP/1.1 101 On\r\nConnection: upgrade\r\nUpgrade: Chat\r\n\r\n");
        echo(line);
    });
    let mut config = config(&[origin.address], "");
    config.routes[0].upgrade = vec!["chat".to_owned(), "websocket".to_owned()];
    let gateway = start(config).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: h2c, foo/1\r\n");
    client.send("Upgrade: Chat, websocket\r\n\r\n");
    assert!(head(&mut client).starts_with("http/1.1 101 "));
    let request = origin.last_request().to_lowercase();
    assert_eq!(field(&request, "upgrade"), Some("chat"));
    client.send("x");
    assert_eq!(exactly(&mut client, 1), b"x");
    let name = "switches_total{protocol=\"other\",outcome=\"opened\"}";
    assert_eq!(metric(&gateway, name), 1.0);
}

#[test]
fn an_idle_tunnel_ends_and_a_busy_one_does_not() {
    let origin = switching(echo);
    let mut config = config(&[origin.address], "");
    config.routes[0].timeouts.tunnel = Some("3s".parse().unwrap());
    let gateway = start(config).unwrap();
    let mut client = open(&gateway);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(7) {
        client.send("x");
        assert_eq!(exactly(&mut client, 1), b"x");
        std::thread::sleep(Duration::from_millis(100));
    }
    let silent = Instant::now();
    assert_eq!(client.rest(), b"");
    assert!(silent.elapsed() > Duration::from_millis(2500));
    wait_until("it is counted", || ended(&gateway, "idle"));
}

#[test]
fn a_tunnel_outlives_the_idle_limit_of_connections() {
    let origin = switching(echo);
    let gateway = start(config(&[origin.address], "timeouts.idle = \"1s\"\n")).unwrap();
    let mut client = open(&gateway);
    std::thread::sleep(Duration::from_secs(3));
    client.send("x");
    assert_eq!(exactly(&mut client, 1), b"x");
}

#[test]
fn a_stop_lets_tunnels_live_for_the_grace_time_and_opens_none() {
    let answers = SeenSignal::default();
    let may = answers.clone();
    let origin = TestOrigin::start(move |line| {
        if line.request().unwrap().contains("/late") {
            may.wait();
        }
        line.write(SWITCHED);
        echo(line);
    });
    let gateway = start(config(&[origin.address], "timeouts.grace = \"6s\"\n")).unwrap();
    let mut client = open(&gateway);
    let mut late = TestClient::new(&gateway);
    late.send(HANDSHAKE.replace("/chat", "/late"));
    wait_until("it is forwarded", || origin.request_count() == 2);
    gateway.stop();
    wait_until("it does not listen", || {
        std::net::TcpStream::connect(gateway.addr).is_err()
    });
    answers.tell();
    let reply = late.reply(false).unwrap();
    assert_eq!(reply.status, 503, "{}", reply.head);
    client.send("x");
    assert_eq!(exactly(&mut client, 1), b"x");
    assert_eq!(client.rest(), b"");
    wait_until("it is counted", || ended(&gateway, "stopped"));
    assert_eq!(switches(&gateway, "stopping"), 1.0);
}

#[test]
fn an_upstream_that_has_not_got_everything_is_reset() {
    let may = SeenSignal::default();
    let seen = may.clone();
    let origin = switching(move |line| {
        seen.wait();
        let mut all = Vec::new();
        let outcome = line.stream.read_to_end(&mut all);
        let outcome = format!("{:?}", outcome.map(drop).map_err(|error| error.kind()));
        line.requests().lock().unwrap().push(outcome);
    });
    let gateway = start(config(&[origin.address], "timeouts.grace = \"1s\"\n")).unwrap();
    let client = open(&gateway);
    let mut writer = client.clone_stream();
    let writing = std::thread::spawn(move || while writer.write_all(&[7; 65536]).is_ok() {});
    let mut last = (0.0, Instant::now());
    wait_until("the sender stands still", || {
        let sent = metric(&gateway, "tunnel_bytes_total{to=\"upstream\"}");
        if sent != last.0 || sent == 0.0 {
            last = (sent, Instant::now());
        }
        last.1.elapsed() > Duration::from_secs(1)
    });
    gateway.stop();
    writing.join().unwrap();
    may.tell();
    wait_until("the upstream is reset", || {
        origin.last_request() == "Err(ConnectionReset)"
    });
}

#[test]
fn admission_counts_the_request_and_not_its_tunnel() {
    let origin = switching(echo);
    let more = "[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let _first = open(&gateway);
    wait_until("it has left", || metric(&gateway, "in_service") == 0.0);
    let _second = open(&gateway);
    assert_eq!(metric(&gateway, "tunnels_open"), 2.0);
    let rate = "[protection]\npolicy = \"rate\"\nrate = \"1/min\"\nburst = 1\n";
    let limited = start(config(&[origin.address], rate)).unwrap();
    let _first = open(&limited);
    let mut second = TestClient::new(&limited);
    assert_eq!(second.send(HANDSHAKE).reply(false).unwrap().status, 429);
}
