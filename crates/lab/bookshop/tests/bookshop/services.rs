//! Services that misbehave, from outside: refusals, errors, hangs, several servers, and their documentation.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use posthaste_bookshop::{BookshopConfig, BookshopError, Running, start};
use posthaste_services::{LAWS, MISBEHAVIOURS};

use crate::http2::{Http2Client, method, run};
use crate::{connect, get, open, parse};

fn shop(service: &str) -> Running {
    open(BookshopConfig {
        service: Some(service.parse().unwrap()),
        books: 10,
        ..BookshopConfig::default()
    })
}

/// Sends a request on a new connection.
fn begin(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn status(mut stream: TcpStream) -> u16 {
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    parse(&reply).status
}

#[test]
fn a_limiter_refuses_requests_beyond_its_burst() {
    let running = shop("md1:1ms,limit=1/h:2");
    let statuses = [(); 4].map(|()| get(running.addr, "/isbns.csv").status);
    assert_eq!(statuses, [200, 200, 429, 429]);
    let refused = get(running.addr, "/orders");
    assert_eq!(refused.status, 429);
    assert!(refused.field("x-busy").is_some());
    assert!(refused.text().contains("429"), "{}", refused.text());
    assert_eq!(get(running.addr, "/healthz").status, 200);
}

#[test]
fn an_error_replaces_every_form_of_reply() {
    let running = shop("md1:1ms,error=100%:502");
    for path in ["/", "/page/1", "/json/1", "/orders", "/nowhere"] {
        assert_eq!(get(running.addr, path).status, 502, "{path}");
    }
    let metrics = get(running.addr, "/metrics");
    let failed = "bookshop_requests_total{form=\"orders\",answer=\"failed\"} 1";
    assert!(metrics.text().contains(failed), "{}", metrics.text());
}

#[test]
fn a_call_gets_the_status_of_its_refusal() {
    for (service, code) in [
        ("md1:1ms,limit=1/h:1", "8"),
        ("md1:1ms,error=100%:503", "14"),
    ] {
        let running = shop(service);
        get(running.addr, "/");
        run(async {
            let client = Http2Client::new(running.addr).await;
            let end = client.call(&method("GetBook"), "{\"isbn\": \"0\"}").await;
            assert_eq!(end.status().0, code, "{service}");
        });
    }
}

#[test]
fn a_full_queue_refuses_while_another_is_served() {
    let running = shop("md1:2s,queue=1");
    let first = begin(running.addr, "/");
    // The first request may be read after the second: one of them is refused at once, the other one is served.
    let second = begin(running.addr, "/");
    let mut statuses = [status(first), status(second)];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503]);
}

#[test]
fn a_hang_keeps_its_connection_and_blocks_no_other() {
    let running = shop("md1:1ms,hang=100%");
    let mut stream = begin(running.addr, "/");
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let error = stream.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(get(running.addr, "/healthz").status, 200);
    assert_eq!(running.counters.snapshot().in_service, 1);
    drop(stream);
    // The shop forgets the request when its client has closed the connection.
    let end = Instant::now() + Duration::from_secs(60);
    while running.counters.snapshot().open > 0 {
        assert!(Instant::now() < end, "{:?}", running.counters.snapshot());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn unlimited_servers_serve_at_once() {
    let running = shop("inf:500ms");
    let begun = Instant::now();
    let streams: Vec<_> = (0..20).map(|_| begin(running.addr, "/")).collect();
    for stream in streams {
        assert_eq!(status(stream), 200);
    }
    let time = begun.elapsed();
    // One server would take 10 s.
    assert!(
        (Duration::from_millis(500)..Duration::from_secs(5)).contains(&time),
        "{time:?}"
    );
}

#[test]
fn the_queue_of_the_kernel_has_no_misbehaviours() {
    let config = BookshopConfig {
        service: Some("mm1k:5ms:10,hang=1%".parse().unwrap()),
        ..BookshopConfig::default()
    };
    let error = start(config).unwrap_err();
    assert!(matches!(error, BookshopError::Law { .. }));
    assert!(
        error.to_string().contains("write mm1 with queue=K"),
        "{error}"
    );
}

#[test]
fn the_reference_has_every_element() {
    let read = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/");
        std::fs::read_to_string(format!("{folder}{name}")).expect("a page of the reference")
    };
    let (page, options) = (read("bookshop.md"), read("cli.md"));
    let laws = LAWS.iter().map(|form| (form.example, form.effect));
    for (example, effect) in laws.chain(MISBEHAVIOURS.iter().map(|m| (m.example, m.effect))) {
        let row = format!("| `{example}` | {effect} |");
        assert!(options.contains(example), "the help lacks {example}");
        assert!(
            page.contains(&row),
            "docs/reference/bookshop.md lacks {row}"
        );
    }
}
