//! Log lines about the end of a gateway.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};

use ::tracing::field::{Field, Visit};
use ::tracing::span::{Attributes, Id, Record};
use ::tracing::{Event, Metadata, Subscriber};
use posthaste_gateway::start;
use posthaste_units::Span;

use crate::support::{SeenSignal, TestClient, TestOrigin, config, get, wait_until};

thread_local! {
    /// Lines that this thread has logged.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines of each thread. Global, because a subscriber of one thread misses events that another thread has
/// met first.
struct Lines;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn draining_and_its_end_are_logged_with_their_counts() {
    let signal = SeenSignal::default();
    let wait = signal.clone();
    let origin = TestOrigin::start(move |line| {
        while let Some(request) = line.request() {
            if request.starts_with("GET /slow") {
                wait.wait();
            }
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    ::tracing::subscriber::set_global_default(Lines).unwrap();
    let gateway = start(config(&[origin.address], "")).unwrap();
    get(&gateway, "/", "");
    let (mut busy, idle) = (TestClient::new(&gateway), TestClient::new(&gateway));
    busy.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the upstream is asked", || origin.request_count() == 2);
    wait_until("two connections are open", || {
        let page = crate::watching::fetch_admin(&gateway, "/status").body;
        String::from_utf8(page)
            .unwrap()
            .contains("2 connections open, 1 requests in service")
    });
    gateway.stop();
    gateway.stop();
    signal.tell();
    gateway.join();
    assert_eq!(busy.reply(false).unwrap().status, 200);
    drop(idle);
    let lines = LINES.take();
    let draining: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("draining"))
        .collect();
    assert_eq!(draining.len(), 1, "{lines:?}");
    assert!(
        draining[0].contains("connections=2 requests=1"),
        "{}",
        draining[0]
    );
    let ended = lines.last().unwrap();
    assert!(
        ended.contains("ended") && ended.contains("served=2 cut_off=0"),
        "{ended}"
    );
}

#[test]
fn readiness_fails_before_the_port_closes() {
    let origin = TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let gateway = start(config(&[origin.address], "drain.delay = \"7s\"")).unwrap();
    let ready = || {
        let reply = crate::watching::fetch_admin(&gateway, "/healthz");
        (reply.status, String::from_utf8(reply.body).unwrap())
    };
    assert_eq!(ready(), (200, "ok\n".to_owned()));
    let mut kept = TestClient::new(&gateway);
    for delay in [7, 7] {
        assert_eq!(gateway.announce_stop(), Span::from_secs(delay));
        assert_eq!(ready(), (503, "stopping\n".to_owned()));
        assert_eq!(get(&gateway, "/", "").status, 200, "a new connection");
        kept.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        assert_eq!(kept.reply(false).unwrap().status, 200, "a kept connection");
    }
    gateway.stop();
    assert_eq!(ready(), (503, "stopping\n".to_owned()));
}
