//! gRPC calls as admission and ejection see them: deadlines, failures in the head, pauses of the client.

use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use posthaste_gateway::{GatewayConfig, RunningGateway, start};
use tokio::time::sleep;

use crate::http2_support::{
    Call, GRPC, Http2Client, Http2Origin, complete, echo, fields, http2_config, run, silent, until,
};
use crate::http2_upstreams::metric;

/// A gateway with these upstreams that ejects after three failures.
fn ejecting(upstreams: &[&Http2Origin]) -> RunningGateway {
    let mut config = http2_config(&upstreams[0].address.to_string(), "http2", "");
    let more = upstreams[1..].iter().map(|one| one.address.to_string());
    config.routes[0].upstream.extend(more);
    let rules = "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\n[route.ejection]\nfailures = 3\ntime = \"1h\"";
    let rules = GatewayConfig::read(rules).unwrap();
    config.routes[0].ejection = rules.routes[0].ejection.clone();
    start(config).unwrap()
}

#[test]
fn deadlines_count_and_lower_the_limit_if_longer_than_replies() {
    let origin = Http2Origin::start(async |call: Call| {
        if call.head.uri().path() == "/silent" {
            return silent(call).await;
        }
        sleep(Duration::from_millis(100)).await;
        echo(call).await;
    });
    let more = "[protection]\npolicy = \"limit\"\nstart = 1\nleast = 1\nlimiter = { policy = \"aimd\", timeout = \"10s\" }\n";
    let gateway = origin.gateway(more);
    let limit = || metric(&gateway, "service_limit{");
    let passed = || metric(&gateway, "upstream_failures_total{kind=\"deadline\"}");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for _ in 0..20 {
            let reply = client.call("/", &[GRPC], "hello").await.unwrap();
            assert_eq!(reply.trailer("grpc-status"), "0");
        }
        assert_eq!(limit(), 2.0);
        for (timeout, times, count) in [("10m", 20, 20.0), ("400m", 20, 40.0)] {
            assert_eq!(limit(), 2.0, "{timeout}");
            for _ in 0..times {
                let with = [GRPC, ("grpc-timeout", timeout)];
                let reply = client.call("/silent", &with, "").await.unwrap();
                assert_eq!(reply.field("grpc-status"), "4");
            }
            assert_eq!(passed(), count);
        }
    });
    assert!(limit() < 2.0, "{}", limit());
    assert_eq!(metric(&gateway, "upstream_seconds_count"), 60.0);
    let counter = "grpc_deadlines_total{phase=\"reply\"}";
    assert_eq!(metric(&gateway, counter), 40.0);
}

#[test]
fn a_deadline_does_not_eject() {
    let (silent, well) = (Http2Origin::start(silent), Http2Origin::start(echo));
    let gateway = ejecting(&[&silent, &well]);
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for _ in 0..10 {
            let with = [GRPC, ("grpc-timeout", "20m")];
            client.call("/", &with, "").await.unwrap();
        }
    });
    assert!(silent.request_count() >= 4, "{}", silent.request_count());
    let counter = "ejections_total{outcome=\"failures\"}";
    assert_eq!(metric(&gateway, counter), 0.0);
}

#[test]
fn grpc_failure_statuses_eject_and_request_errors_do_not() {
    for (status, count) in [("14", 1.0), ("5", 0.0)] {
        let failing = Http2Origin::start(move |mut call: Call| async move {
            let reply = Response::builder()
                .header(GRPC.0, GRPC.1)
                .header("grpc-status", status);
            let reply = reply.body(()).unwrap();
            call.respond.send_response(reply, true).unwrap();
        });
        let well = Http2Origin::start(echo);
        let gateway = ejecting(&[&failing, &well]);
        run(async {
            let mut client = Http2Client::new(&gateway).await;
            for _ in 0..12 {
                client.call("/", &[GRPC], "").await.unwrap();
            }
        });
        let counter = "ejections_total{outcome=\"failures\"}";
        assert_eq!(metric(&gateway, counter), count, "{status}");
        let expected = if count > 0.0 { 3 } else { 6 };
        assert_eq!(failing.request_count(), expected, "{status}");
    }
}

#[test]
fn a_client_that_pauses_keeps_its_connection_and_its_call() {
    let origin = Http2Origin::start(echo);
    let gateway = origin.gateway("[timeouts]\nbody = \"1s\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[GRPC]);
        stream.send_data(Bytes::from_static(b"one"), false).unwrap();
        sleep(Duration::from_millis(4500)).await;
        stream.send_data(Bytes::from_static(b"two"), true).unwrap();
        let reply = complete(reply).await.unwrap();
        assert_eq!(
            (reply.trailer("grpc-status"), &*reply.body),
            ("0", &b"onetwo"[..])
        );
    });
}

#[test]
fn a_pause_longer_than_the_limit_of_tunnels_ends_the_call_only() {
    let origin = Http2Origin::start(async |mut call: Call| {
        if call.head.uri().path() == "/paused" {
            assert!(call.receive().await.is_err());
            return;
        }
        echo(call).await;
    });
    let gateway = origin.gateway("[timeouts]\ntunnel = \"500ms\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/paused", &[GRPC]);
        stream.send_data(Bytes::from_static(b"one"), false).unwrap();
        let reply = complete(reply).await.unwrap();
        assert_eq!(reply.field("grpc-status"), "1", "{reply:?}");
        let reply = client.call("/", &[GRPC], "hello").await.unwrap();
        assert_eq!(reply.trailer("grpc-status"), "0");
        until("it is counted", || {
            metric(&gateway, "replies_total{status=\"408\"}") == 1.0
        })
        .await;
    });
    let counter = "upstream_failures_total{kind=\"broken\"}";
    assert_eq!(metric(&gateway, counter), 0.0);
}

#[test]
fn quiet_streams_end_as_unavailable_after_the_tunnel_limit() {
    let origin = Http2Origin::start(async |mut call: Call| {
        if call.head.uri().path() == "/late" {
            sleep(Duration::from_millis(500)).await;
        }
        let mut stream = call.reply(&[GRPC]);
        stream.send_data(Bytes::from_static(b"one"), false).unwrap();
        if call.head.uri().path() == "/silent" {
            let reset = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
            assert!(reset.is_ok(), "{reset:?}");
            return;
        }
        sleep(Duration::from_millis(500)).await;
        stream.send_data(Bytes::from_static(b"two"), false).unwrap();
        stream
            .send_trailers(fields(&[("grpc-status", "0")]))
            .unwrap();
    });
    let gateway =
        origin.gateway("[timeouts]\nreply = \"100ms\"\nreply_body = \"100ms\"\ntunnel = \"2s\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for (path, status, body) in [
            ("/late", "0", "onetwo"),
            ("/quiet", "0", "onetwo"),
            ("/silent", "14", "one"),
        ] {
            let reply = client.call(path, &[GRPC], "").await.unwrap();
            assert_eq!(reply.trailer("grpc-status"), status, "{path}");
            assert_eq!(reply.body, body.as_bytes(), "{path}");
        }
    });
    let counter = "upstream_failures_total{kind=\"stalled\"}";
    assert_eq!(metric(&gateway, counter), 1.0);
}
