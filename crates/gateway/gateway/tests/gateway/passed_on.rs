//! Requests that go to another upstream or are sent again after a failure.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use h2::Reason;
use posthaste_gateway::{GatewayConfig, start};
use rustls::ServerConfig;

use crate::http2_support::{Call, Http2Client, Http2Origin, OriginSettings, http2_config, run};
use crate::http2_upstreams::{metric, tls};
use crate::support::{OK, TestOrigin, config, get, wait_until};

/// Serves one connection, and accepts no other.
fn only_connection(serve: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        serve(stream);
    });
    address
}

#[test]
fn a_retried_safe_request_moves_on_if_its_upstream_is_gone() {
    let leaving = only_connection(|mut stream| {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(OK.as_bytes()).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    });
    let staying = TestOrigin::answering(OK);
    let gateway = start(config(&[leaving, staying.address], "threads = 1")).unwrap();
    for _ in 0..4 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    assert_eq!(staying.request_count(), 3);
}

#[test]
fn a_broken_stream_of_http2_is_a_reason_for_a_retry() {
    let origin = Http2Origin::start(async |mut call: Call| match call.number {
        0 => call.respond.send_reset(Reason::INTERNAL_ERROR),
        _ => call.answer("ok"),
    });
    let mut config = http2_config(&origin.address.to_string(), "http2", "");
    config.routes[0].retry.attempts = 1;
    let gateway = start(config).unwrap();
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    assert_eq!(metric(&gateway, "retries_total{reason=\"broken\"}"), 1.0);
}

/// Serves HTTP/1.1 over TLS on its only connection, with one reply.
fn http1_once(tls: Arc<ServerConfig>) -> SocketAddr {
    only_connection(move |mut stream| {
        let mut session = rustls::ServerConnection::new(tls).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut stream);
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let reply = OK.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        stream.write_all(reply.as_bytes()).unwrap();
    })
}

#[test]
fn a_request_passed_from_http1_to_http2_keeps_its_te() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cert.pem");
    let leaving = http1_once(tls(folder.path(), &["http/1.1"]));
    let first = std::fs::read_to_string(&path).unwrap();
    let settings = OriginSettings {
        tls: Some(tls(folder.path(), &["h2"])),
        ..OriginSettings::default()
    };
    let second = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, first + &second).unwrap();
    let staying = Http2Origin::with(settings, async |mut call| call.answer("ok"));
    let url = |address: SocketAddr| format!("https://localhost:{}", address.port());
    let mut config: GatewayConfig = http2_config(&url(leaving), "auto", "");
    config.routes[0].upstream.push(url(staying.address));
    config.routes[0].authority = Some(path);
    let gateway = start(config).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for _ in 0..4 {
            let reply = client.call("/", &[("te", "trailers")], "").await;
            assert_eq!(reply.unwrap().body, b"ok");
        }
    });
    wait_until("three have arrived", || staying.request_count() == 3);
    for request in &*staying.requests.lock().unwrap() {
        assert_eq!(request.headers()["te"], "trailers");
    }
}
