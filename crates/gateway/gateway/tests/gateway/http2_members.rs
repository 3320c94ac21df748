//! Several upstreams of HTTP/2: health checks, failures of connections, shared connections, deadlines while connecting.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::Reason;
use hyper::Response;
use posthaste_gateway::start;

use crate::http2_support::{Http2Client, Http2Origin, http2_config, run, until};
use crate::http2_upstreams::metric;
use crate::support::{TestOrigin, closed_port, config, get, wait_until};

#[test]
fn health_checks_speak_http2() {
    let is_well = Arc::new(AtomicBool::new(true));
    let state = is_well.clone();
    let origin = Http2Origin::start(move |mut call| {
        let is_check = call.head.uri().path() == "/health";
        let status = if is_check && !state.load(SeqCst) {
            500
        } else {
            200
        };
        async move {
            let mut reply = Response::new(());
            *reply.status_mut() = status.try_into().unwrap();
            call.respond.send_response(reply, true).unwrap();
        }
    });
    let mut config = http2_config(&origin.address.to_string(), "http2", "");
    config.routes[0].health.path = Some("/health".to_owned());
    config.routes[0].health.every = "300ms".parse().unwrap();
    config.routes[0].health.failures = 1;
    let gateway = start(config).unwrap();
    wait_until("checks arrive", || origin.request_count() > 2);
    wait_until("it is used", || get(&gateway, "/", "").status == 200);
    is_well.store(false, SeqCst);
    wait_until("it is excluded", || get(&gateway, "/", "").status == 503);
    is_well.store(true, SeqCst);
    wait_until("it is used again", || get(&gateway, "/", "").status == 200);
}

#[test]
fn a_request_that_finds_no_connection_goes_to_the_next_upstream() {
    let origin = Http2Origin::start(async |mut call| {
        let (body, _) = call.receive().await.unwrap();
        let mut stream = call.reply(&[]);
        stream.send_data(body.into(), true).unwrap();
    });
    let mut config = http2_config(&closed_port().to_string(), "http2", "");
    config.routes[0].upstream.push(origin.address.to_string());
    let gateway = start(config).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for _ in 0..10 {
            let reply = client.call("/", &[], "hello").await.unwrap();
            assert_eq!(reply.body, b"hello");
        }
    });
}

#[test]
fn requests_wait_for_the_connection_that_another_one_opens() {
    let origin = Http2Origin::start(async |mut call| {
        // Long enough for all of them to be in flight at once.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        call.answer("ok");
    });
    let gateway = origin.gateway("");
    run(async {
        let client = Http2Client::new(&gateway).await;
        let calls = (0..30).map(|_| {
            let mut client = client.clone();
            tokio::task::spawn_local(async move { client.get("/").await.unwrap().body })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap(), b"ok");
        }
    });
    assert_eq!(origin.connections.load(SeqCst), 1);
}

#[test]
fn requests_that_wait_for_a_connection_share_its_failure() {
    let mut config = http2_config(&closed_port().to_string(), "http2", "");
    config.routes[0].health.failures = 1_000_000;
    let gateway = start(config).unwrap();
    run(async {
        let client = Http2Client::new(&gateway).await;
        let calls = (0..30).map(|_| {
            let mut client = client.clone();
            tokio::task::spawn_local(async move { client.get("/").await.unwrap().status })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap(), 502);
        }
    });
    let counter = "upstream_failures_total{kind=\"connect\"}";
    assert_eq!(metric(&gateway, counter), 30.0);
}

/// The upstream accepts connections and never answers the TLS handshake.
#[test]
fn a_deadline_passes_while_the_gateway_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("https://{}", listener.local_addr().unwrap());
    let gateway = start(http2_config(
        &upstream,
        "http2",
        "[timeouts]\nconnect = \"1min\"",
    ))
    .unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let with = [
            ("content-type", "application/grpc"),
            ("grpc-timeout", "200m"),
        ];
        let reply = client.call("/", &with, "").await.unwrap();
        assert_eq!(reply.field("grpc-status"), "4");
        until("it is counted", || {
            metric(&gateway, "grpc_deadlines_total{phase=\"reply\"}") == 1.0
        })
        .await;
    });
}

/// hyper reports a stream that its client has reset with NO_ERROR as if it had ended.
#[test]
fn a_reset_request_does_not_look_complete_over_http1() {
    let received = Arc::<Mutex<Vec<u8>>>::default();
    let (all, ended) = (received.clone(), Arc::<AtomicUsize>::default());
    let count = ended.clone();
    let origin = TestOrigin::start(move |line| {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = line.stream.read(&mut piece) {
            all.lock().unwrap().extend_from_slice(&piece[..length]);
        }
        count.fetch_add(1, SeqCst);
    });
    let gateway = start(config(&[origin.address], "")).unwrap();
    run(async {
        for (number, reason) in [Reason::NO_ERROR, Reason::CANCEL].into_iter().enumerate() {
            let mut client = Http2Client::new(&gateway).await;
            let (_reply, mut stream) = client.post("/", &[]);
            stream
                .send_data(Bytes::from_static(b"some"), false)
                .unwrap();
            until("the upstream has it", || {
                received.lock().unwrap().ends_with(b"some\r\n")
            })
            .await;
            stream.send_reset(reason);
            until("the connection is closed", || {
                ended.load(SeqCst) == number + 1
            })
            .await;
            let received = std::mem::take(&mut *received.lock().unwrap());
            let text = String::from_utf8_lossy(&received);
            assert!(!text.ends_with("0\r\n\r\n"), "{reason:?}: {text}");
        }
    });
}
