//! Slow, silent, numerous or malformed clients: each connection ends, and the shop keeps serving.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use posthaste_bookshop::BookshopConfig;
use posthaste_serve::Timeouts;
use posthaste_units::Span;

use crate::{connect, get, isbns, open};

/// Short limits, but longer than a client on a busy machine needs to send after connecting.
fn impatient() -> BookshopConfig {
    let short = Span::from_secs(1);
    let timeouts = Timeouts {
        idle: short,
        head: short,
        body: short,
        write: short,
        ..Timeouts::default()
    };
    BookshopConfig {
        timeouts,
        ..BookshopConfig::default()
    }
}

/// Sends `bytes` and reads until the shop closes. Returns the status of the reply, if there was one.
fn provoke(address: SocketAddr, bytes: &[u8]) -> Option<u16> {
    let mut stream = connect(address);
    // The shop may close during the write.
    let _ = stream.write_all(bytes);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply)
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
}

#[test]
fn garbage_endless_headers_and_chunked_nonsense_end() {
    let running = open(impatient());
    let post = "POST /soap HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nSOAPAction: \"\"\r\n";
    let endless = format!(
        "GET / HTTP/1.1\r\nHost: x\r\n{}",
        "X-More: and more\r\n".repeat(20_000)
    );
    let one_line = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(1 << 20));
    let target = format!("GET /{} HTTP/1.1\r\n\r\n", "z".repeat(100_000));
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    let cases: &[(&str, Vec<u8>)] = &[
        ("zeros", vec![0; 4096]),
        ("a TLS hello", vec![22, 3, 1, 0, 200, 1, 0, 0, 196]),
        ("endless fields", endless.into_bytes()),
        ("an endless field", one_line.into_bytes()),
        ("a long target", target.into_bytes()),
        ("no such version", b"GET / HTTP/9.9\r\n\r\n".to_vec()),
        (
            "a chunk size that is none",
            format!("{chunked}zz\r\n").into_bytes(),
        ),
        (
            "a chunk size too large",
            format!("{chunked}ffffffffffffffffff\r\n").into_bytes(),
        ),
        (
            "a chunk that never ends",
            format!("{chunked}ffff\r\nabc").into_bytes(),
        ),
        (
            "two lengths",
            format!("{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab").into_bytes(),
        ),
        (
            "a negative length",
            format!("{post}Content-Length: -1\r\n\r\n").into_bytes(),
        ),
        (
            "a length that lies",
            format!("{post}Content-Length: 900\r\n\r\nabc").into_bytes(),
        ),
        (
            "a huge length",
            format!("{post}Content-Length: 99999999999\r\n\r\n").into_bytes(),
        ),
        ("half a request", b"GET /page".to_vec()),
    ];
    for (case, bytes) in cases {
        let status = provoke(running.addr, bytes);
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{case}: {status:?}"
        );
        assert_eq!(get(running.addr, "/healthz").status, 200, "after {case}");
    }
}

/// Requests that two HTTP parsers could read differently.
#[test]
fn ambiguous_requests_are_rejected() {
    let running = open(BookshopConfig::default());
    let post = |fields: &str| format!("POST /soap HTTP/1.1\r\n{fields}\r\n\r\n0\r\n\r\n");
    for (status, request) in [
        (501, post("Host: x\r\nTransfer-Encoding: x, chunked")),
        (501, post("Host: x\r\nTransfer-Encoding: chunked, chunked")),
        (
            400,
            post("Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6"),
        ),
        (400, post("Host: a..b\r\nContent-Length: 5")),
        (417, post("Host: x\r\nExpect: 200-ok\r\nContent-Length: 5")),
        (400, "GET http://x/page/1 HTTP/1.1\r\n\r\n".to_owned()),
    ] {
        assert_eq!(
            provoke(running.addr, request.as_bytes()),
            Some(status),
            "{request}"
        );
    }
}

#[test]
fn slow_writers_and_slow_readers_end() {
    let running = open(impatient());
    let isbn = isbns(running.addr).remove(0);
    let begin = Instant::now();
    // Sends a request byte by byte until the shop closes.
    let mut writer = connect(running.addr);
    let request = format!(
        "GET /page/{isbn} HTTP/1.1\r\nHost: x\r\n{}",
        "A: b\r\n".repeat(1000)
    );
    let sent = request.bytes().take_while(|byte| {
        std::thread::sleep(Duration::from_millis(20));
        writer.write_all(&[*byte]).is_ok()
    });
    assert!(sent.count() < request.len());
    // Requests the largest page repeatedly without reading any reply.
    let mut reader = connect(running.addr);
    let request = format!("GET /page/{isbn}?size=heavy5 HTTP/1.1\r\nHost: x\r\n\r\n");
    reader
        .set_write_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    while reader.write_all(request.as_bytes()).is_ok() {}
    let metrics = get(running.addr, "/metrics");
    for event in ["timed-out-reading", "timed-out-writing"] {
        let line = format!("bookshop_connections_total{{event=\"{event}\"}} 1");
        assert!(metrics.text().contains(&line), "{}", metrics.text());
    }
    // Each ended at its limit of one second, not at the test's time limit.
    assert!(begin.elapsed() < Duration::from_secs(60));
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

/// The clients run in another process: both ends in one would need twice the descriptors.
#[test]
fn ten_thousand_idle_connections_cost_little() {
    const CHILD: &str = "POSTHASTE_IDLE_CLIENTS";
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let allowed = limit
        .maximum
        .unwrap_or(u64::MAX)
        .saturating_sub(500)
        .min(10_000) as usize;
    if let Ok(address) = std::env::var(CHILD) {
        let address: SocketAddr = address.parse().unwrap();
        let held: Vec<TcpStream> = (0..allowed)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        println!("\nheld {}", held.len());
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let running = open(BookshopConfig {
        backlog: 4096,
        ..BookshopConfig::default()
    });
    let before = resident();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "hostile::ten_thousand_idle_connections_cost_little",
            "--nocapture",
        ])
        .env(CHILD, running.addr.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept until the child has ended, because it prints a summary.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let held = output
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("held "));
    assert_eq!(held.unwrap(), format!("held {allowed}"));
    let reply = get(running.addr, "/metrics");
    let open = format!("bookshop_connections_open {}\n", allowed + 1);
    assert!(reply.text().contains(&open), "{}", reply.text());
    let each = resident().saturating_sub(before) / allowed;
    println!("{allowed} idle connections: {each} bytes each");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    // Other tests of this process allocate meanwhile: the bound is four times the value measured alone.
    assert!(each < 6 << 10, "{each} bytes for each idle connection");
}
