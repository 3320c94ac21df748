//! HTTP/2 streams and the connection's time limits.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, body::Incoming};
use hyper_util::rt::TokioIo;
use posthaste_serve::{RunningServer, Timeouts};
use posthaste_units::Span;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use crate::echo::Whole;
use crate::{PATIENCE, connect, quick, start_with};

/// Flow-control window of the client, smaller than any reply, so that the client sets the pace.
const WINDOW: u32 = 65_535;

/// Longer than the enforcement of a limit of one second takes.
const BEYOND: Duration = Duration::from_millis(1600);

#[derive(Clone)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

/// Runs a client.
fn run(client: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, client);
}

/// Opens a client connection. The handle ends with the connection.
async fn open(address: SocketAddr) -> (SendRequest<Whole>, JoinHandle<hyper::Result<()>>) {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http2::Builder::new(OnThisThread)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    (sender, spawn_local(connection))
}

async fn ask(sender: &mut SendRequest<Whole>, path: &str) -> Incoming {
    let request = Request::get(format!("http://s{path}")).body(Whole(None));
    let reply = sender.send_request(request.unwrap()).await;
    reply.unwrap().into_body()
}

/// Reads a reply of `pieces` MiB at 16 KiB per 30 ms.
fn read_slowly(running: &RunningServer, pieces: usize) {
    run(async {
        let (mut sender, _connection) = open(running.addr).await;
        let begin = Instant::now();
        let mut body = ask(&mut sender, &format!("/pieces/{pieces}")).await;
        let mut total = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.unwrap_or_else(|error| panic!("after {total} bytes: {error}"));
            total += frame.into_data().map_or(0, |data| data.len());
            sleep(Duration::from_millis(30)).await;
        }
        assert_eq!(total, pieces << 20);
        assert!(begin.elapsed() > BEYOND, "it was quick");
    });
}

fn idle_for_a_second() -> Timeouts {
    Timeouts {
        idle: Span::from_secs(1),
        ..Timeouts::default()
    }
}

fn write_for_a_second() -> Timeouts {
    Timeouts {
        write: Span::from_secs(1),
        ..Timeouts::default()
    }
}

#[test]
fn a_slow_reader_is_not_idle_once_its_reply_was_handed_over() {
    read_slowly(&start_with(idle_for_a_second()), 1);
}

#[test]
fn a_slow_reader_is_not_stalled_during_a_long_reply() {
    read_slowly(&start_with(write_for_a_second()), 2);
}

#[test]
fn a_reader_that_stalls_is_cut_off() {
    let cut = |timeouts, path: &str| {
        let running = start_with(timeouts);
        run(async {
            let (mut sender, connection) = open(running.addr).await;
            let mut body = ask(&mut sender, path).await;
            assert!(body.frame().await.unwrap().is_ok());
            let over = timeout(PATIENCE, connection).await;
            assert!(over.is_ok(), "{path}: the connection stays open");
        });
        running.counters.snapshot()
    };
    let stalled = cut(write_for_a_second(), "/pieces/2");
    assert_eq!(stalled.timed_out_writing, 1);
    let idle = cut(idle_for_a_second(), "/pieces/1");
    assert_eq!(idle.timed_out_idle, 1);
}

#[test]
fn a_stream_that_stalls_is_not_hidden_by_one_that_gets_on() {
    let running = start_with(write_for_a_second());
    run(async {
        let (mut sender, connection) = open(running.addr).await;
        let mut body = ask(&mut sender, "/pieces/2").await;
        assert!(body.frame().await.unwrap().is_ok());
        // One after another, until the connection closes.
        let others = async {
            loop {
                let request = Request::get("http://s/drops").body(Whole(None)).unwrap();
                let Ok(reply) = sender.send_request(request).await else {
                    return;
                };
                let mut body = reply.into_body();
                while let Some(Ok(_)) = body.frame().await {}
            }
        };
        let over = timeout(PATIENCE, others).await;
        assert!(over.is_ok(), "the connection stays open");
        drop(connection);
    });
    assert_eq!(running.counters.snapshot().timed_out_writing, 1);
}

#[test]
fn a_connection_with_nothing_but_pings_is_idle() {
    let running = start_with(idle_for_a_second());
    let mut stream = connect(running.addr);
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let begin = Instant::now();
    let mut answers = [0; 1024];
    while stream.write_all(b"\0\0\x08\x06\0\0\0\0\0posthast").is_ok()
        && stream.read(&mut answers).is_ok_and(|length| length > 0)
    {
        assert!(begin.elapsed() < PATIENCE, "it stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(running.counters.snapshot().timed_out_idle, 1);
}

#[test]
fn a_stream_that_is_given_up_leaves_its_connection_idle() {
    let running = start_with(quick());
    run(async {
        let (mut sender, connection) = open(running.addr).await;
        let reset = timeout(Duration::from_millis(200), ask(&mut sender, "/never")).await;
        assert!(reset.is_err(), "it is never answered");
        // The connection is idle, and its idle timeout runs.
        let over = timeout(PATIENCE, connection).await;
        assert!(over.is_ok(), "the connection stays open");
    });
    assert_eq!(running.counters.snapshot().timed_out_idle, 1);
}

#[test]
fn a_connection_keeps_the_mark_of_its_first_reply() {
    let running = start_with(Timeouts::default());
    run(async {
        let (mut sender, _connection) = open(running.addr).await;
        for mark in ["af11", "ef", "af11"] {
            let request = Request::get("http://s/").header("mark", mark);
            let reply = sender.send_request(request.body(Whole(None)).unwrap());
            reply.await.unwrap().into_body().collect().await.unwrap();
        }
    });
    let counted = running.counters.snapshot();
    assert_eq!((counted.marks_set, counted.marks_shared), (1, 1));
}

/// The status of a request with these additional fields. `None` if its stream was reset.
async fn status_of(address: SocketAddr, fields: &[(&str, &str)]) -> Option<u16> {
    let (mut sender, _connection) = open(address).await;
    let mut request = Request::get("http://s/bytes/4").body(Whole(None)).unwrap();
    for (name, value) in fields {
        let name = hyper::header::HeaderName::from_lowercase(name.as_bytes()).unwrap();
        let value = hyper::header::HeaderValue::from_bytes(value.as_bytes()).unwrap();
        request.headers_mut().append(name, value);
    }
    let reply = sender.send_request(request).await;
    reply.ok().map(|reply| reply.status().as_u16())
}

#[test]
fn fields_that_http_1_cannot_carry_are_refused() {
    let running = start_with(Timeouts::default());
    let many: Vec<_> = (0..101).map(|n| (format!("x{n}"), "y")).collect();
    let many: Vec<_> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    let cases: [(&[(&str, &str)], u16); 9] = [
        (&[("host", "s"), ("x", "a b")], 200),
        (&many[1..], 200),
        (&many, 431),
        (&[("host", "other")], 400),
        (&[("x\"", "y")], 400),
        (&[("x", " y")], 400),
        (&[("x", "y\t")], 400),
        (&[("content-length", "0"), ("content-length", "0")], 400),
        (&[("expect", "x")], 417),
    ];
    run(async {
        for (fields, status) in cases {
            assert_eq!(
                status_of(running.addr, fields).await,
                Some(status),
                "{fields:?}"
            );
        }
    });
}

/// A frame of this kind with these flags and payload on stream 1.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
}

/// Encodes fields in HPACK without a table (RFC 7541, section 6.2.2).
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.iter().flat_map(field).collect()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The end of stream 1: `None` for a reply, else the error code of its reset.
fn outcome(address: SocketAddr, frames: &[Vec<u8>]) -> Option<u32> {
    let mut stream = connect(address);
    let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(start).unwrap();
    for frame in frames {
        stream.write_all(frame).unwrap();
        // Time for a premature reply.
        std::thread::sleep(Duration::from_millis(100));
    }
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        match (head[3], head[8]) {
            (RST_STREAM, 1) => return Some(u32::from_be_bytes(payload.try_into().unwrap())),
            (HEADERS, 1) => return None,
            _ => {}
        }
    }
}

const PROTOCOL_ERROR: u32 = 1;

fn get(more: &[(&str, &str)]) -> Vec<u8> {
    let own = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "s"),
        (":path", "/bytes/4"),
    ];
    fields(&[&own, more].concat())
}

#[test]
fn content_that_contradicts_its_length_resets_the_stream() {
    let running = start_with(Timeouts::default());
    let head = |length: &str| frame(HEADERS, END_HEADERS, &get(&[("content-length", length)]));
    let empty = frame(DATA, END_STREAM, b"");
    assert_eq!(outcome(running.addr, &[head("0"), empty]), None);
    let content = frame(DATA, END_STREAM, b"content");
    let reset = outcome(running.addr, &[head("0"), content.clone()]);
    assert_eq!(reset, Some(PROTOCOL_ERROR));
    let part = frame(DATA, 0, b"content");
    assert_eq!(
        outcome(running.addr, &[head("0"), part]),
        Some(PROTOCOL_ERROR)
    );
}

#[test]
fn pseudo_fields_in_trailers_reset_the_stream() {
    let running = start_with(Timeouts::default());
    let head = frame(HEADERS, END_HEADERS, &get(&[]));
    let data = frame(DATA, 0, b"content");
    let trailers =
        |pairs: &[(&str, &str)]| frame(HEADERS, END_HEADERS | END_STREAM, &fields(pairs));
    let slow = String::from_utf8(head.clone())
        .unwrap()
        .replace("/bytes/4", "/readall");
    let head = slow.into_bytes();
    let plain = trailers(&[("a", "b")]);
    assert_eq!(
        outcome(running.addr, &[head.clone(), data.clone(), plain]),
        None
    );
    let pseudo = trailers(&[(":path", "/"), ("a", "b")]);
    let reset = outcome(running.addr, &[head, data, pseudo]);
    assert_eq!(reset, Some(PROTOCOL_ERROR));
}
