//! A shop over HTTP/3.

mod client;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Request;
use posthaste_bookshop::{BookshopConfig, BookshopError, Running, start};
use posthaste_http::streams::http3::ErrorCode;
use posthaste_soap::Version;
use quinn::ConnectionError;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use crate::{HttpReply, connect, envelope, parse};
use client::{Http3Client, Http3Reply, connect_quic, tls};

const PATIENCE: Duration = Duration::from_secs(60);

/// A shop with HTTPS and its certificate.
struct SecureShop {
    running: Running,
    certificate: Vec<u8>,
}

fn open(config: BookshopConfig) -> SecureShop {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let running = crate::open(BookshopConfig {
        tls: Some((certificate, key)),
        ..config
    });
    SecureShop {
        running,
        certificate: made.cert.der().to_vec(),
    }
}

fn with_http3(config: BookshopConfig) -> SecureShop {
    open(BookshopConfig {
        http3: true,
        ..config
    })
}

/// Runs a client.
fn run(work: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        timeout(PATIENCE, work)
            .await
            .expect("the test ends in time");
    });
}

/// Waits until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Sends a request over HTTP/1.1 with TLS.
fn over_http1(
    shop: &SecureShop,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> HttpReply {
    let config = Arc::new(tls(&shop.certificate, &["http/1.1"]));
    let session = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, connect(shop.running.addr));
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: shop.example:8080\r\n");
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    parse(&reply)
}

/// The announcement of HTTP/3 in a reply over HTTP/2.
async fn announced_over_http2(shop: &SecureShop) -> Option<String> {
    let tls = tokio_rustls::TlsConnector::from(Arc::new(tls(&shop.certificate, &["h2"])));
    let stream = tokio::net::TcpStream::connect(shop.running.addr)
        .await
        .unwrap();
    let stream = tls
        .connect("localhost".try_into().unwrap(), stream)
        .await
        .unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    spawn_local(async move {
        let _ = connection.await;
    });
    let mut sender: h2::client::SendRequest<Bytes> = sender.ready().await.unwrap();
    let request = Request::get("https://localhost/healthz").body(()).unwrap();
    let reply = sender.send_request(request, true).unwrap().0.await.unwrap();
    let value = reply.headers().get("alt-svc");
    value.map(|value| value.to_str().unwrap().to_owned())
}

fn isbn(list: &Http3Reply) -> String {
    list.text().lines().nth(1).unwrap().to_owned()
}

#[test]
fn replies_are_those_over_http_1() {
    let shop = with_http3(BookshopConfig::default());
    run(async {
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let isbn = isbn(&client.get("/isbns.csv").await);
        for path in [
            &format!("/json/{isbn}?size=heavy1")[..],
            "/json/0000000000",
            "/nothing",
            "/",
        ] {
            let (over3, over1) = (
                client.get(path).await,
                over_http1(&shop, "GET", path, &[], b""),
            );
            assert_eq!(
                (over3.status, &over3.body),
                (over1.status, &over1.body),
                "{path}"
            );
            for name in ["content-type", "content-length"] {
                assert_eq!(over3.field(name), over1.field(name), "{path}");
            }
            assert!(
                over3
                    .field("date")
                    .is_some_and(|date| date.ends_with(" GMT"))
            );
            assert_eq!(over3.field("alt-svc"), None);
        }
        assert_eq!(client.get("/nothing").await.status, 404);

        let whole = client.get("/isbns.csv").await;
        let head = client.send(("HEAD", "/isbns.csv"), &[], b"").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), whole.field("content-length"));

        let kind = [
            ("content-type", "text/xml; charset=utf-8"),
            ("soapaction", "\"\""),
        ];
        let body = envelope(Version::Soap11, "BookLite", &isbn);
        let soap = client.send(("POST", "/soap"), &kind, body.as_bytes()).await;
        let over1 = over_http1(&shop, "POST", "/soap", &kind, body.as_bytes());
        assert_eq!((soap.status, &soap.body), (200, &over1.body));
        let long = vec![b' '; 300 << 10];
        let refused = client.send(("POST", "/soap"), &kind, &long).await;
        assert_eq!(refused.status, 413);
        let wrong = client.send(("POST", "/json/1"), &[], b"x").await;
        assert_eq!(wrong.status, 405);
        let call = [("content-type", "application/grpc")];
        let path = "/bookshop.v1.Bookshop/GetBook";
        assert_eq!(client.send(("POST", path), &call, b"x").await.status, 505);
        client.close().await;
    });
}

#[test]
fn http_3_is_announced_where_it_is_served() {
    for http3 in [true, false] {
        let shop = open(BookshopConfig {
            http3,
            ..BookshopConfig::default()
        });
        let port = shop.running.addr.port();
        let expected = http3.then(|| format!("h3=\":{port}\"; ma=86400"));
        let over1 = over_http1(&shop, "GET", "/healthz", &[], b"");
        assert_eq!(over1.field("alt-svc"), expected.as_deref());
        run(async {
            assert_eq!(announced_over_http2(&shop).await, expected);
        });
    }
}

#[test]
fn many_requests_share_a_connection() {
    let shop = with_http3(BookshopConfig {
        threads: 2,
        ..BookshopConfig::default()
    });
    run(async {
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let isbn = isbn(&client.get("/isbns.csv").await);
        let path = format!("/json/{isbn}?size=heavy1");
        let expected = client.get(&path).await.body;
        let mut streams = JoinSet::new();
        for _ in 0..10 {
            let (client, path, expected) = (client.clone(), path.clone(), expected.clone());
            streams.spawn_local(async move {
                for _ in 0..20 {
                    let reply = client.get(&path).await;
                    assert_eq!((reply.status, &reply.body), (200, &expected));
                }
            });
        }
        streams.join_all().await;
        let counts = shop.running.counters.snapshot();
        assert_eq!(
            (counts.accepted, counts.open, counts.protocol_errors),
            (1, 1, 0)
        );
        until(|| shop.running.counters.snapshot().in_service == 0).await;
        client.close().await;
    });
}

#[test]
fn events_stream_and_a_client_may_stop_them() {
    let shop = with_http3(BookshopConfig::default());
    let counts = || shop.running.counters.snapshot();
    run(async {
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let all = client.get("/orders?events=20&gap=5ms").await;
        assert_eq!(all.text().matches("event: order").count(), 20);
        assert!(all.text().ends_with("data: [DONE]\n\n"));
        // The second event is due much later.
        let mut slow = client
            .open("GET", "/orders?events=2&gap=600s", &[], b"")
            .await;
        while !slow.reply().text().ends_with("\n\n") {
            assert!(slow.read().await);
        }
        assert_eq!(slow.reply().text().matches("event: order").count(), 1);
        assert_eq!(counts().in_service, 1);
        let cancelled = ErrorCode::H3_REQUEST_CANCELLED.0.try_into().unwrap();
        slow.receive.stop(cancelled).unwrap();
        until(|| counts().in_service == 0).await;
        assert_eq!(client.get("/healthz").await.status, 200);

        // A request that its client resets before the end.
        let (mut send, _receive) = client.connection.open_bi().await.unwrap();
        send.write_all(b"\x01\x40").await.unwrap();
        send.reset(cancelled).unwrap();
        let other = Http3Client::new(shop.running.addr, &shop.certificate).await;
        assert_eq!(other.get("/healthz").await.status, 200);
        assert_eq!(counts().protocol_errors, 0);
    });
}

#[test]
fn a_client_that_stops_reading_is_closed() {
    let mut config = BookshopConfig {
        books: 10_000,
        ..BookshopConfig::default()
    };
    config.timeouts.write = "1s".parse().unwrap();
    let shop = with_http3(config);
    run(async {
        let connection = connect_quic(shop.running.addr, &shop.certificate, 16 << 10).await;
        let client = Http3Client::on(connection).await;
        let _unread = client.open("GET", "/isbns.csv", &[], b"").await;
        client.connection.closed().await;
        let counts = shop.running.counters.snapshot();
        assert_eq!((counts.timed_out_writing, counts.protocol_errors), (1, 0));
        until(|| shop.running.counters.snapshot().open == 0).await;
        // One that reads slowly gets all of it.
        let connection = connect_quic(shop.running.addr, &shop.certificate, 16 << 10).await;
        let client = Http3Client::on(connection).await;
        let whole = client.get("/isbns.csv").await;
        assert_eq!(whole.text().lines().count(), 10_001);
    });
}

#[test]
fn large_heads_and_malformed_requests_end_their_streams() {
    let shop = with_http3(BookshopConfig::default());
    run(async {
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let long = "a".repeat(100_000);
        let large = client.send(("GET", "/"), &[("x-long", &long)], b"").await;
        assert_eq!(large.status, 431);
        for (bytes, code) in [
            // GET without :scheme, :authority and :path.
            (&b"\x01\x03\0\0\xd1"[..], ErrorCode::H3_MESSAGE_ERROR),
            (b"", ErrorCode::H3_REQUEST_INCOMPLETE),
        ] {
            let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
            send.write_all(bytes).await.unwrap();
            send.finish().unwrap();
            let error = receive.read_to_end(1_000).await.unwrap_err();
            let expected = quinn::ReadError::Reset(code.0.try_into().unwrap());
            assert_eq!(error, quinn::ReadToEndError::Read(expected));
        }
        let other = Http3Client::new(shop.running.addr, &shop.certificate).await;
        assert_eq!(other.get("/healthz").await.status, 200);
        assert_eq!(shop.running.counters.snapshot().protocol_errors, 3);
    });
}

#[test]
fn violations_end_the_connection_with_their_code() {
    let shop = with_http3(BookshopConfig::default());
    run(async {
        for (is_request, bytes, code) in [
            (true, &b"\0\x01a"[..], ErrorCode::H3_FRAME_UNEXPECTED),
            (
                true,
                b"\x01\x03\0\0\x80",
                ErrorCode::QPACK_DECOMPRESSION_FAILED,
            ),
            (true, b"\x01\x05\0", ErrorCode::H3_FRAME_ERROR),
            (false, b"\0\x07\x01\0", ErrorCode::H3_MISSING_SETTINGS),
            (false, b"\0\x04\x02\x02\0", ErrorCode::H3_SETTINGS_ERROR),
            (false, b"\0\x04\0", ErrorCode::H3_CLOSED_CRITICAL_STREAM),
            (false, b"\x01\0", ErrorCode::H3_STREAM_CREATION_ERROR),
        ] {
            let connection = connect_quic(shop.running.addr, &shop.certificate, 1 << 20).await;
            let mut send = if is_request {
                connection.open_bi().await.unwrap().0
            } else {
                connection.open_uni().await.unwrap()
            };
            send.write_all(bytes).await.unwrap();
            send.finish().unwrap();
            match connection.closed().await {
                ConnectionError::ApplicationClosed(close) => {
                    assert_eq!(u64::from(close.error_code), code.0, "{bytes:?}");
                }
                other => panic!("{bytes:?}: {other}"),
            }
        }
        assert_eq!(shop.running.counters.snapshot().protocol_errors, 7);
    });
}

#[test]
fn a_stop_finishes_replies_under_way() {
    let shop = with_http3(BookshopConfig::default());
    run(async {
        let idle = Http3Client::new(shop.running.addr, &shop.certificate).await;
        assert_eq!(idle.get("/healthz").await.status, 200);
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let mut events = client
            .open("GET", "/orders?events=20&gap=25ms", &[], b"")
            .await;
        while events.reply().status == 0 {
            assert!(events.read().await);
        }
        shop.running.stop();
        let reply = events.finish().await;
        assert_eq!(reply.text().matches("event: order").count(), 20);
        assert!(client.has_goaway());
        for client in [idle, client] {
            match client.connection.closed().await {
                ConnectionError::ApplicationClosed(close) => {
                    assert_eq!(u64::from(close.error_code), ErrorCode::H3_NO_ERROR.0);
                }
                other => panic!("{other}"),
            }
        }
        until(|| shop.running.counters.snapshot().open == 0).await;
        assert_eq!(shop.running.counters.snapshot().cut_off, 0);
    });
}

/// Sends ten requests at once. Returns the response times in ascending order.
async fn times_of_ten(client: &Http3Client, path: &str) -> Vec<Duration> {
    let begin = Instant::now();
    let mut streams = JoinSet::new();
    for _ in 0..10 {
        let (client, path) = (client.clone(), path.to_owned());
        streams.spawn_local(async move {
            let reply = client.get(&path).await;
            assert!(reply.field("x-busy").is_some());
            begin.elapsed()
        });
    }
    let mut times = streams.join_all().await;
    times.sort();
    for (position, time) in (1..).zip(&times) {
        // A busy thread does not see when exactly the first one arrived.
        let least = Duration::from_millis(10) * position - Duration::from_millis(5);
        assert!(*time >= least, "{position}: {times:?}");
    }
    times
}

#[test]
fn a_law_serves_streams_one_after_the_other() {
    let shop = with_http3(BookshopConfig {
        service: Some("md1:10ms".parse().unwrap()),
        ..BookshopConfig::default()
    });
    run(async {
        let client = Http3Client::new(shop.running.addr, &shop.certificate).await;
        let path = format!("/page/{}", isbn(&client.get("/isbns.csv").await));
        // Each reply leaves before the next service: the first does not wait for the last. A stalled client gets several
        // at once.
        for _ in 0..20 {
            let times = times_of_ten(&client, &path).await;
            if times[9] - times[0] >= Duration::from_millis(60) {
                return;
            }
        }
        panic!("the replies come together");
    });
}

#[test]
fn contradictions_are_refused_with_a_remedy() {
    let refused = |config: BookshopConfig| {
        let config = BookshopConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            http3: true,
            ..config
        };
        start(config).unwrap_err()
    };
    let error = refused(BookshopConfig::default());
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = refused(BookshopConfig {
        service: Some("mm1k:5ms:10".parse().unwrap()),
        ..BookshopConfig::default()
    });
    assert!(matches!(error, BookshopError::Law { .. }), "{error}");
}

#[test]
fn both_protocols_have_the_same_port() {
    let shop = with_http3(BookshopConfig::default());
    let address: SocketAddr = shop.running.addr;
    let taken = std::net::UdpSocket::bind(address).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
}
