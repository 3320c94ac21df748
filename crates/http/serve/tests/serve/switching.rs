//! Switches of protocol and stops, ends of switched connections, and handlers that panic.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode};
use posthaste_serve::{
    Certificate, Handler, HttpServer, Incoming, Peer, RunningServer, ServerTls, SwitchedStream,
    listen,
};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

use crate::echo::Whole;
use crate::{connect, eventually, exchange, quick, secured};

/// Switches to a protocol by path, or panics.
struct Switching {
    /// Requests that have arrived.
    begun: Arc<AtomicUsize>,
}

impl Handler for Switching {
    type Body = Whole;

    async fn handle(self: Rc<Self>, request: Request<Incoming>, peer: Rc<Peer>) -> Response<Whole> {
        let path = request.uri().path().to_owned();
        if path == "/panic" {
            panic!("as the test wants");
        }
        let offer = || match &*path {
            "/stuck" => peer.switch(Box::new(|client| Box::pin(fill(client)))),
            _ => peer.switch(Box::new(|client| Box::pin(echo(client)))),
        };
        if path != "/late" {
            offer();
        }
        self.begun.fetch_add(1, SeqCst);
        while path != "/stuck" && !peer.is_draining() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if path == "/late" {
            offer();
        }
        let mut reply = Response::new(Whole(None));
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = reply.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("x"));
        reply
    }
}

async fn echo(mut client: SwitchedStream) -> Option<SwitchedStream> {
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = client.read(&mut piece).await {
        client.write_all(&piece[..length]).await.ok()?;
        client.flush().await.ok()?;
    }
    Some(client)
}

/// Writes until the client takes no more: the rest waits in the buffer of TLS, where more has space.
async fn fill(mut client: SwitchedStream) -> Option<SwitchedStream> {
    // Also pending at the end of a turn of the event loop.
    let mut pending = 0;
    while pending < 3 {
        let is_flushed =
            poll_fn(|cx| Poll::Ready(Pin::new(&mut client).poll_flush(cx).is_ready())).await;
        if is_flushed {
            client.write_all(&[0; 1024]).await.ok()?;
            pending = 0;
        } else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            pending += 1;
        }
    }
    Some(client)
}

fn start(server: HttpServer) -> (RunningServer, Arc<AtomicUsize>) {
    let begun = Arc::<AtomicUsize>::default();
    let count = begun.clone();
    let listener = listen(([127, 0, 0, 1], 0).into(), 64).unwrap();
    let make = move |_| Switching {
        begun: count.clone(),
    };
    (server.start(listener, make).unwrap(), begun)
}

fn handshake(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
}

/// Reads a head and nothing after it.
fn head(stream: &mut impl Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

#[test]
fn a_stop_refuses_later_switches_and_no_earlier_one() {
    let (running, begun) = start(HttpServer::default());
    let mut early = connect(running.addr);
    early.write_all(handshake("/early").as_bytes()).unwrap();
    let mut late = connect(running.addr);
    late.write_all(handshake("/late").as_bytes()).unwrap();
    eventually("the requests", || begun.load(SeqCst) == 2);
    running.stop();
    let reply = head(&mut early);
    assert!(reply.starts_with("http/1.1 101 "), "{reply}");
    assert!(reply.contains("connection: upgrade\r\n"), "{reply}");
    early.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    early.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    let reply = head(&mut late);
    assert!(reply.starts_with("http/1.1 503 "), "{reply}");
}

#[test]
fn a_tunnel_ends_although_its_client_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ServerTls::new(Certificate::read(&certificate, &key).unwrap()).unwrap();
    let (running, _) = start(HttpServer {
        tls: Some(Arc::new(tls)),
        timeouts: quick(),
        ..HttpServer::default()
    });
    let mut client = secured(made.cert.der(), connect(running.addr));
    client.write_all(handshake("/stuck").as_bytes()).unwrap();
    assert!(head(&mut client).starts_with("http/1.1 101 "));
    let counters = || running.counters.snapshot();
    eventually("the end", || counters().open == 0);
    assert_eq!(counters().timed_out_writing, 1);
}

#[test]
fn a_connection_whose_handler_panics_is_over() {
    let (running, _) = start(HttpServer {
        concurrency: Some(1),
        ..HttpServer::default()
    });
    for number in 1..=3 {
        let request = "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(exchange(running.addr, request), "");
        let counters = || running.counters.snapshot();
        eventually("the end", || counters().open == 0);
        assert_eq!((counters().accepted, counters().in_service), (number, 0));
    }
}
