//! HTTP/2 to upstreams: connections, bodies and trailers, refusals, timeouts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use posthaste_gateway::{RunningGateway, start};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::http2_support::{
    Http2Client, Http2Origin, OriginSettings, UpstreamAct, complete, fields, http2_config, next,
    receive, run, send_all, until,
};
use crate::support::{TestClient, TestOrigin, field, get, wait_until};
use crate::watching::{fetch_admin, value};

/// A metric of the gateway.
pub(crate) fn metric(gateway: &RunningGateway, name: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{name}"))
}

#[test]
fn trailers_pass_both_ways_and_heads_name_the_authority() {
    let origin = Http2Origin::start(async |mut call| {
        let (body, trailers) = call.receive().await.unwrap();
        assert_eq!(trailers.unwrap().get("x-sum").unwrap(), "7");
        let mut stream = call.reply(&[("x-head", "1")]);
        stream.send_data(body.into(), false).unwrap();
        stream.send_trailers(fields(&[("x-end", "2")])).unwrap();
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/a?b=c", &[("te", "trailers"), ("x-mine", "1")]);
        stream
            .send_data(Bytes::from_static(b"hello"), false)
            .unwrap();
        stream.send_trailers(fields(&[("x-sum", "7")])).unwrap();
        let reply = complete(reply).await.unwrap();
        assert_eq!((reply.status.as_u16(), &*reply.body), (200, &b"hello"[..]));
        assert_eq!((reply.field("x-head"), reply.trailer("x-end")), ("1", "2"));
    });
    let requests = origin.requests.lock().unwrap();
    assert_eq!(requests[0].uri(), "http://shop/a?b=c");
    let at = |name: &str| {
        requests[0]
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    };
    assert_eq!((at("te"), at("x-mine")), (Some("trailers"), Some("1")));
    assert_eq!((at("host"), at("via")), (None, Some("2.0 posthaste")));
}

#[test]
fn a_client_of_http1_reaches_an_upstream_of_http2() {
    let origin = Http2Origin::start(async |mut call| {
        let (body, _) = call.receive().await.unwrap();
        let mut stream = call.reply(&[("content-type", "text/plain")]);
        stream.send_data(body.into(), true).unwrap();
    });
    let gateway = origin.gateway("");
    let mut client = TestClient::new(&gateway);
    client.send("POST /x HTTP/1.1\r\nHost: shop:8080\r\nConnection: keep-alive, X-Ours\r\nX-Ours: 1\r\nKeep-Alive: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
    let reply = client.reply(false).unwrap();
    assert_eq!((reply.status, &*reply.body), (200, &b"abcdef"[..]));
    assert!(reply.head.starts_with("http/1.1 200"), "{}", reply.head);
    client.send("POST /x HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(client.reply(false).unwrap().body, b"body");
    client.send("GET /y HTTP/1.1\r\nHost: shop\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().body, b"");
    let requests = origin.requests.lock().unwrap();
    assert_eq!(requests[0].uri(), "http://shop:8080/x");
    for gone in [
        "connection",
        "x-ours",
        "keep-alive",
        "transfer-encoding",
        "te",
        "host",
    ] {
        assert!(!requests[0].headers().contains_key(gone), "{gone}");
    }
    assert_eq!(requests[1].headers()["content-length"], "4");
    assert_eq!(
        origin.connections.load(SeqCst),
        1,
        "requests share a connection"
    );
}

#[test]
fn without_tls_auto_is_http1_and_te_stays_on_its_hop() {
    let origin = TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let gateway = start(http2_config(&origin.address.to_string(), "auto", "")).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let reply = client
            .call("/", &[("te", "trailers")], "hello")
            .await
            .unwrap();
        assert_eq!(reply.body, b"ok");
    });
    let request = origin.last_request().to_lowercase();
    assert!(request.contains("5\r\nhello\r\n0\r\n"), "{request}");
    assert_eq!(field(&request, "te"), None, "{request}");
}

#[test]
fn requests_beyond_the_upstreams_limit_open_further_connections() {
    let arrived = Arc::<AtomicUsize>::default();
    let counted = arrived.clone();
    let settings = OriginSettings {
        streams: Some(2),
        ..OriginSettings::default()
    };
    let origin = Http2Origin::with(settings, move |mut call| {
        let arrived = counted.clone();
        async move {
            // The first makes the limit known; the others wait for each other.
            if arrived.fetch_add(1, SeqCst) > 0 {
                until("all have arrived", || arrived.load(SeqCst) == 9).await;
            }
            call.answer("ok");
        }
    });
    let gateway = origin.gateway("");
    run(async {
        let client = Http2Client::new(&gateway).await;
        client.clone().get("/").await.unwrap();
        let calls = (0..8).map(|_| {
            let mut client = client.clone();
            tokio::task::spawn_local(async move { client.get("/").await.unwrap().body })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap(), b"ok");
        }
    });
    assert!(origin.connections.load(SeqCst) >= 4);
}

#[test]
fn a_refused_request_goes_to_another_connection_with_its_body() {
    let origin = Http2Origin::start(async |mut call| {
        if call.number == 0 {
            next(&mut call.body).await;
            call.respond.send_reset(Reason::REFUSED_STREAM);
            return;
        }
        let (body, trailers) = call.receive().await.unwrap();
        let mut stream = call.reply(&[]);
        stream.send_data(body.into(), false).unwrap();
        stream.send_trailers(trailers.unwrap()).unwrap();
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        stream
            .send_data(Bytes::from_static(b"first "), false)
            .unwrap();
        until("the upstream has refused", || origin.request_count() == 2).await;
        stream
            .send_data(Bytes::from_static(b"second"), false)
            .unwrap();
        stream.send_trailers(fields(&[("x-sum", "7")])).unwrap();
        let reply = complete(reply).await.unwrap();
        assert_eq!(reply.body, b"first second");
        assert_eq!(reply.trailer("x-sum"), "7");
    });
    assert_eq!(origin.connections.load(SeqCst), 2);
}

#[test]
fn a_body_too_long_to_be_kept_is_not_repeated() {
    let origin = Http2Origin::start(async |mut call| {
        let mut received = 0;
        while received < 65 << 10 {
            received += next(&mut call.body).await.len();
        }
        call.respond.send_reset(Reason::REFUSED_STREAM);
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        send_all(&mut stream, vec![7; 66 << 10].into()).await;
        assert_eq!(complete(reply).await.unwrap().status, 502);
    });
    assert_eq!(origin.request_count(), 1);
}

#[test]
fn a_request_beyond_the_last_of_a_goaway_is_repeated() {
    let settings = OriginSettings {
        first_goes_away: true,
        ..OriginSettings::default()
    };
    let origin = Http2Origin::with(settings, async |mut call| {
        let (body, _) = call.receive().await.unwrap();
        let mut stream = call.reply(&[]);
        stream.send_data(body.into(), true).unwrap();
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        assert_eq!(client.call("/", &[], "again").await.unwrap().body, b"again");
    });
    assert_eq!(origin.connections.load(SeqCst), 2);
}

#[test]
fn after_goaway_a_connection_only_finishes_its_requests() {
    let over = Arc::<AtomicBool>::default();
    let is_over = over.clone();
    let origin = Http2Origin::start(move |mut call| {
        let over = is_over.clone();
        async move {
            if call.number == 0 {
                call.connection.send(UpstreamAct::GoAway).unwrap();
                until("the test goes on", || over.load(SeqCst)).await;
            }
            call.answer("ok");
        }
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let mut other = client.clone();
        let first = tokio::task::spawn_local(async move { other.get("/").await.unwrap().body });
        until("the first is there", || origin.request_count() == 1).await;
        // Until the gateway has received the GOAWAY, requests may still go to the first connection.
        until("a new connection is used", || {
            origin.connections.load(SeqCst) == 2 || {
                let mut client = client.clone();
                tokio::task::spawn_local(async move { client.get("/").await.unwrap() });
                false
            }
        })
        .await;
        over.store(true, SeqCst);
        assert_eq!(first.await.unwrap(), b"ok");
        assert_eq!(client.get("/").await.unwrap().body, b"ok");
    });
}

/// No reply may look complete if its upstream did not complete it.
#[test]
fn a_reply_that_breaks_off_resets_the_stream_of_the_client() {
    let origin = Http2Origin::start(async |mut call| {
        let mut stream = call.reply(&[]);
        stream
            .send_data(Bytes::from_static(b"half"), false)
            .unwrap();
        next(&mut call.body).await;
        match call.head.uri().path() {
            "/close" => drop(call.connection.send(UpstreamAct::Close)),
            "/cancel" => stream.send_reset(Reason::CANCEL),
            "/no-error" => stream.send_reset(Reason::NO_ERROR),
            other => panic!("{other}"),
        }
    });
    let gateway = origin.gateway("");
    run(async {
        for path in ["/cancel", "/no-error", "/close"] {
            let mut client = Http2Client::new(&gateway).await;
            let (reply, mut stream) = client.post(path, &[]);
            let mut body = reply.await.unwrap().into_body();
            assert_eq!(next(&mut body).await, "half");
            stream
                .send_data(Bytes::from_static(b"seen"), false)
                .unwrap();
            let error = receive(&mut body).await.expect_err(path);
            assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{path}");
        }
    });
    wait_until("they are counted", || {
        metric(&gateway, "upstream_failures_total{kind=\"broken\"}") == 3.0
    });
}

#[test]
fn an_early_reply_is_complete_although_its_stream_is_reset() {
    let origin = Http2Origin::start(async |mut call| {
        next(&mut call.body).await;
        let mut stream = call.reply(&[]);
        stream
            .send_data(Bytes::from_static(b"enough"), true)
            .unwrap();
        // Dropping the call resets its stream with NO_ERROR.
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        stream
            .send_data(Bytes::from_static(b"some"), false)
            .unwrap();
        assert_eq!(complete(reply).await.unwrap().body, b"enough");
    });
}

#[test]
fn a_client_that_gives_up_resets_the_stream_of_the_upstream() {
    let resets = Arc::<AtomicUsize>::default();
    let counted = resets.clone();
    let origin = Http2Origin::start(move |mut call| {
        let resets = counted.clone();
        async move {
            let is_streaming = call.head.uri().path() == "/streaming";
            let _stream = is_streaming.then(|| call.reply(&[]));
            let received = call.receive().await;
            assert!(received.is_err(), "the request looks complete");
            if !is_streaming {
                assert_eq!(call.reset().await, Reason::CANCEL);
            }
            resets.fetch_add(1, SeqCst);
        }
    });
    let gateway = origin.gateway("");
    run(async {
        let mut expected = 0;
        for reason in [Reason::CANCEL, Reason::NO_ERROR] {
            for path in ["/waiting", "/streaming"] {
                let mut client = Http2Client::new(&gateway).await;
                let (reply, mut stream) = client.post(path, &[]);
                stream
                    .send_data(Bytes::from_static(b"some"), false)
                    .unwrap();
                let reply = tokio::task::spawn_local(reply);
                let before = expected;
                until("the upstream has it", || {
                    origin.request_count() == before + 1
                })
                .await;
                if path == "/streaming" {
                    let _ = tokio::time::timeout(Duration::from_millis(300), reply).await;
                }
                stream.send_reset(reason);
                expected += 1;
                until("the upstream is reset", || resets.load(SeqCst) == expected).await;
            }
        }
        // The connection serves further requests.
        assert_eq!(origin.connections.load(SeqCst), 1);
    });
}

#[test]
fn stream_directions_can_alternate_and_pause() {
    let origin = Http2Origin::start(async |mut call| {
        let mut stream = call.reply(&[]);
        while let Some(data) = call.body.data().await {
            let data = data.unwrap();
            call.body
                .flow_control()
                .release_capacity(data.len())
                .unwrap();
            stream.send_data(data, false).unwrap();
        }
        stream.send_trailers(fields(&[("x-end", "1")])).unwrap();
    });
    let gateway = origin.gateway("[timeouts]\nreply_body = \"200ms\"\nbody = \"200ms\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        let mut body = reply.await.unwrap().into_body();
        for round in 0..20 {
            let piece = Bytes::from(format!("piece {round}"));
            stream.send_data(piece.clone(), false).unwrap();
            assert_eq!(next(&mut body).await, piece);
            if round == 10 {
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
        }
        stream.send_data(Bytes::new(), true).unwrap();
        let (rest, trailers) = receive(&mut body).await.unwrap();
        assert!(rest.is_empty());
        assert_eq!(trailers.unwrap()["x-end"], "1");
    });
}

#[test]
fn silent_streams_end_after_the_tunnel_limit() {
    let origin = Http2Origin::start(async |mut call| {
        let _stream = call.reply(&[]);
        let _ = call.receive().await;
    });
    let gateway = origin.gateway("[timeouts]\nreply_body = \"100ms\"\ntunnel = \"500ms\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, _stream) = client.post("/", &[]);
        let mut body = reply.await.unwrap().into_body();
        assert!(receive(&mut body).await.is_err());
    });
    assert_eq!(
        metric(&gateway, "upstream_failures_total{kind=\"stalled\"}"),
        1.0
    );
}

#[test]
fn an_upstream_that_falls_silent_is_left_at_its_limit() {
    let origin = Http2Origin::start(async |mut call| {
        if call.head.uri().path() == "/none" {
            call.reset().await;
            return;
        }
        let mut stream = call.reply(&[]);
        stream
            .send_data(Bytes::from_static(b"half"), false)
            .unwrap();
        let _ = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
    });
    let gateway = origin.gateway("[timeouts]\nreply = \"200ms\"\nreply_body = \"200ms\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        assert_eq!(client.get("/none").await.unwrap().status, 504);
        let half = client.get("/half").await;
        assert!(half.is_err(), "{half:?}");
    });
    assert_eq!(
        metric(&gateway, "upstream_failures_total{kind=\"reply-timeout\"}"),
        1.0
    );
    assert_eq!(
        metric(&gateway, "upstream_failures_total{kind=\"stalled\"}"),
        1.0
    );
}

#[test]
fn large_bodies_wait_for_their_reader() {
    const LENGTH: usize = 16 << 20;
    let sent = Arc::<AtomicUsize>::default();
    let counted = sent.clone();
    let origin = Http2Origin::start(move |mut call| {
        let sent = counted.clone();
        async move {
            let (body, _) = call.receive().await.unwrap();
            assert_eq!(body.len(), LENGTH);
            let mut stream = call.reply(&[]);
            for piece in body.chunks(64 << 10) {
                send_all(&mut stream, Bytes::copy_from_slice(piece)).await;
                sent.fetch_add(piece.len(), SeqCst);
            }
            stream.send_data(Bytes::new(), true).unwrap();
        }
    });
    let gateway = origin.gateway("[limits]\nbody = \"32 MiB\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        let body: Bytes = (0..LENGTH)
            .map(|at| (at % 251) as u8)
            .collect::<Vec<_>>()
            .into();
        send_all(&mut stream, body.clone()).await;
        stream.send_data(Bytes::new(), true).unwrap();
        let mut reply = reply.await.unwrap().into_body();
        // Nothing is read until nothing more arrives.
        let mut before = usize::MAX;
        while std::mem::replace(&mut before, sent.load(SeqCst)) != sent.load(SeqCst) {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert!(before < LENGTH / 2, "{before} bytes are stored somewhere");
        let (received, _) = receive(&mut reply).await.unwrap();
        assert!(received == body, "{} bytes", received.len());
    });
}

#[test]
fn unused_connections_are_closed() {
    let origin = Http2Origin::start(async |mut call| call.answer("ok"));
    let gateway = origin.gateway("[timeouts]\nupstream_idle = \"100ms\"");
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    wait_until("it is closed", || origin.open.load(SeqCst) == 0);
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    assert_eq!(origin.connections.load(SeqCst), 2);
}

#[test]
fn a_lost_connection_repeats_only_safe_requests() {
    let origin = Http2Origin::start(async |mut call| {
        if matches!(call.number, 1 | 3) {
            call.connection.send(UpstreamAct::Close).unwrap();
            std::future::pending::<()>().await;
        }
        call.answer("ok");
    });
    let gateway = origin.gateway("");
    assert_eq!(get(&gateway, "/", "").body, b"ok");
    assert_eq!(get(&gateway, "/", "").body, b"ok", "it is sent again");
    assert_eq!(origin.request_count(), 3);
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.reply(false).unwrap().status, 502);
    assert_eq!(origin.request_count(), 4);
}

/// Writes a certificate for localhost and returns its TLS configuration for a server of these protocols.
pub(crate) fn tls(folder: &Path, protocols: &[&str]) -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

fn tls_gateway(origin: &Http2Origin, folder: &Path, protocol: &str) -> RunningGateway {
    let upstream = format!("https://localhost:{}", origin.address.port());
    let mut config = http2_config(&upstream, protocol, "");
    config.routes[0].authority = Some(folder.join("cert.pem"));
    start(config).unwrap()
}

#[test]
fn over_tls_the_upstream_selects_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let settings = OriginSettings {
        tls: Some(tls(folder.path(), &["h2", "http/1.1"])),
        ..OriginSettings::default()
    };
    let origin = Http2Origin::with(settings, async |mut call| call.answer("ok"));
    for protocol in ["http2", "auto"] {
        let gateway = tls_gateway(&origin, folder.path(), protocol);
        let reply = get(&gateway, "/", "");
        assert_eq!(
            (reply.status, &*reply.body),
            (200, &b"ok"[..]),
            "{protocol}"
        );
    }
    assert_eq!(origin.requests.lock().unwrap()[0].uri(), "https://shop/");
}

/// Serves HTTP/1.1 over TLS, one request for each connection.
fn http1_over_tls(tls: Arc<ServerConfig>) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut session = rustls::ServerConnection::new(tls.clone()).unwrap();
            let mut stream = rustls::Stream::new(&mut session, &mut stream);
            if matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
                let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none";
                let _ = stream.write_all(reply);
            }
        }
    });
    address
}

#[test]
fn upstreams_without_http2_are_refused_or_served_by_auto() {
    for protocols in [&["http/1.1"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let address = http1_over_tls(tls(folder.path(), protocols));
        let with = |protocol: &str| {
            let upstream = format!("https://localhost:{}", address.port());
            let mut config = http2_config(&upstream, protocol, "");
            config.routes[0].authority = Some(folder.path().join("cert.pem"));
            start(config).unwrap()
        };
        let gateway = with("http2");
        let reply = get(&gateway, "/", "");
        let reason = String::from_utf8_lossy(&reply.body).into_owned();
        assert_eq!(reply.status, 502, "{reason}");
        assert!(reason.contains("set protocol = \"auto\""), "{reason}");
        assert_eq!(
            metric(&gateway, "upstream_failures_total{kind=\"not-http2\"}"),
            1.0
        );
        let gateway = with("auto");
        for _ in 0..3 {
            assert_eq!(get(&gateway, "/", "").body, b"one", "{protocols:?}");
        }
    }
}
