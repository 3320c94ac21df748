//! gRPC: refusals as statuses, deadlines, counters, messages left as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use h2::Reason;
use posthaste_gateway::{RunningGateway, start};

use crate::http2_support::{
    Call, GRPC, Http2Client, Http2Origin, Http2Reply, complete, echo, fields, http2_config, next,
    receive, run, silent, until,
};
use crate::http2_upstreams::metric;
use crate::priced::DEAR;
use crate::support::{OK, TestClient, TestOrigin, closed_port, wait_until};

/// A message with its prefix.
const MESSAGE: &[u8] = b"\0\0\0\0\x05hello";

/// True for a status without a body in the head.
fn is_refusal(reply: &Http2Reply, status: &str) -> bool {
    reply.status == 200
        && reply.field("content-type") == "application/grpc"
        && reply.field("grpc-status") == status
        && !reply.field("grpc-message").is_empty()
        && reply.body.is_empty()
        && reply.trailers.is_none()
}

#[test]
fn a_call_passes_and_its_status_is_counted() {
    let origin = Http2Origin::start(echo);
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let reply = client
            .call("/shop.Books/Get", &[GRPC], MESSAGE)
            .await
            .unwrap();
        assert_eq!(reply.body, MESSAGE);
        assert_eq!(reply.trailer("grpc-status"), "0");
    });
    assert_eq!(metric(&gateway, "grpc_replies_total{status=\"0\"}"), 1.0);
}

#[test]
fn a_rejected_call_gets_a_status_and_counts_as_it_was() {
    let origin = Http2Origin::start(echo);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let log = log.to_str().unwrap();
    let more = format!(
        "access_log = {log:?}\n[protection]\npolicy = \"rate\"\nrate = \"1/min\"\nburst = 1"
    );
    let gateway = start(http2_config(&origin.address.to_string(), "http2", &more)).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let first = client.call("/a/b", &[GRPC], MESSAGE).await.unwrap();
        assert_eq!(first.trailer("grpc-status"), "0");
        let reply = client.call("/a/b", &[GRPC], MESSAGE).await.unwrap();
        assert!(is_refusal(&reply, "8"), "{reply:?}");
        let seconds: u64 = reply.field("retry-after").parse().unwrap();
        let pushback = reply.field("grpc-retry-pushback-ms");
        assert_eq!(pushback, (seconds * 1000).to_string());
    });
    assert_eq!(metric(&gateway, "replies_total{status=\"429\"}"), 1.0);
    assert_eq!(metric(&gateway, "grpc_replies_total{status=\"8\"}"), 1.0);
    wait_until("the log has the refusal", || {
        std::fs::read_to_string(log).unwrap().contains("429")
    });
}

#[test]
fn refusals_of_every_stage_are_statuses() {
    let origin = Http2Origin::start(silent);
    let more = "[limits]\nbody = \"10B\"\n[timeouts]\nreply = \"200ms\"\ntunnel = \"200ms\"";
    let mut config = http2_config(&origin.address.to_string(), "http2", more);
    config.routes[0].path = "/served".to_owned();
    let mut closed = config.routes[0].clone();
    closed.path = "/closed".to_owned();
    closed.upstream = vec![closed_port().to_string()];
    config.routes.push(closed);
    let gateway = start(config).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for (path, body, status, http) in [
            ("/nowhere", "", "12", "404"),
            ("/served/%2e%2e/closed", "", "13", "400"),
            ("/served", "more than ten bytes", "8", "413"),
            ("/closed", "", "14", "502"),
            ("/served", "", "14", "504"),
        ] {
            let length = body.len().to_string();
            let with = [GRPC, ("content-length", &*length)];
            let reply = client.call(path, &with, body).await.unwrap();
            assert!(is_refusal(&reply, status), "{path}: {reply:?}");
            let counter = format!("replies_total{{status=\"{http}\"}}");
            assert_eq!(metric(&gateway, &counter), 1.0, "{path}");
        }
        // Others get HTTP.
        assert_eq!(client.get("/nowhere").await.unwrap().status, 404);
        let web = ("content-type", "application/grpc-web");
        let reply = client.call("/nowhere", &[web], "").await.unwrap();
        assert_eq!(reply.status, 404);
    });
    let mut client = TestClient::new(&gateway);
    client.send("POST /nowhere HTTP/1.1\r\nHost: s\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 404);
}

/// Sends calls until one is refused with `status`.
async fn refused(gateway: &RunningGateway, status: &'static str) {
    let client = Http2Client::new(gateway).await;
    let refused = Arc::<AtomicUsize>::default();
    until("a call is refused", || {
        let (mut client, refused) = (client.clone(), refused.clone());
        tokio::task::spawn_local({
            let refused = refused.clone();
            async move {
                if let Ok(reply) = client.call("/a/b", &[GRPC], MESSAGE).await
                    && is_refusal(&reply, status)
                {
                    refused.fetch_add(1, SeqCst);
                }
            }
        });
        refused.load(SeqCst) > 0
    })
    .await;
}

#[test]
fn too_many_calls_and_calls_that_do_not_pay_get_statuses() {
    let origin = Http2Origin::start(silent);
    let gateway = origin.gateway("[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1");
    run(refused(&gateway, "14"));
    assert!(metric(&gateway, "replies_total{status=\"503\"}") >= 1.0);

    let origin = Http2Origin::start(async |mut call: Call| {
        let mut stream = call.reply(&[GRPC, ("x-busy", "1.0")]);
        stream
            .send_trailers(fields(&[("grpc-status", "0")]))
            .unwrap();
    });
    let gateway = origin.gateway(&format!(
        "[demand]\nwatch = {{ upstream = \"X-Busy\" }}\n[protection]\npolicy = \"prices\"\n[prices]\nevery = \"20ms\"\ncapacity = \"100/s\"\n{DEAR}"
    ));
    run(refused(&gateway, "8"));
    assert!(metric(&gateway, "replies_total{status=\"402\"}") >= 1.0);
}

#[test]
fn a_deadline_ends_a_call_in_every_phase() {
    let origin = Http2Origin::start(async |mut call: Call| {
        if call.head.uri().path() == "/streaming" {
            let mut stream = call.reply(&[GRPC]);
            stream
                .send_data(Bytes::from_static(MESSAGE), false)
                .unwrap();
            let reset = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
            assert_eq!(reset.unwrap(), Reason::CANCEL);
            return;
        }
        silent(call).await;
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let timeout = |value: &'static str| [GRPC, ("grpc-timeout", value)];
        let refused = client.call("/", &timeout("0m"), MESSAGE).await.unwrap();
        assert!(is_refusal(&refused, "4"), "{refused:?}");
        assert_eq!(origin.request_count(), 0, "it is refused on arrival");

        let reply = client.call("/", &timeout("100m"), MESSAGE).await.unwrap();
        assert!(is_refusal(&reply, "4"), "{reply:?}");

        // The client never ends its request.
        let (reply, mut stream) = client.post("/", &timeout("100m"));
        stream
            .send_data(Bytes::from_static(MESSAGE), false)
            .unwrap();
        let reply = complete(reply).await.unwrap();
        assert!(is_refusal(&reply, "4"), "{reply:?}");

        let (reply, _stream) = client.post("/streaming", &timeout("1S"));
        let mut body = reply.await.unwrap().into_body();
        assert_eq!(next(&mut body).await, MESSAGE);
        let (rest, trailers) = receive(&mut body).await.unwrap();
        assert!(rest.is_empty());
        assert_eq!(trailers.unwrap()["grpc-status"], "4");
    });
    for (phase, count) in [("arrival", 1.0), ("reply", 2.0), ("body", 1.0)] {
        let counter = format!("grpc_deadlines_total{{phase=\"{phase}\"}}");
        assert_eq!(metric(&gateway, &counter), count, "{phase}");
    }
    assert_eq!(metric(&gateway, "grpc_replies_total{status=\"4\"}"), 4.0);
    assert_eq!(metric(&gateway, "replies_total{status=\"504\"}"), 3.0);
}

#[test]
fn valid_deadlines_are_forwarded_and_malformed_ones_refused() {
    let origin = Http2Origin::start(echo);
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for good in ["30S", "99999999H"] {
            let with = [GRPC, ("grpc-timeout", good)];
            let reply = client.call("/", &with, MESSAGE).await.unwrap();
            assert_eq!((reply.trailer("grpc-status"), &*reply.body), ("0", MESSAGE));
            let requests = origin.requests.lock().unwrap();
            assert_eq!(requests.last().unwrap().headers()["grpc-timeout"], good);
        }
        for bad in ["", "5", "123456789S", "-1S", "1s"] {
            let with = [GRPC, ("grpc-timeout", bad)];
            let reply = client.call("/", &with, MESSAGE).await.unwrap();
            assert!(is_refusal(&reply, "13"), "{bad}: {reply:?}");
        }
    });
    assert_eq!(origin.request_count(), 2);
}

#[test]
fn messages_are_neither_compressed_nor_decoded() {
    let origin = Http2Origin::start(async |mut call: Call| {
        let (body, _) = call.receive().await.unwrap();
        assert_eq!(call.head.headers()["content-encoding"], "gzip");
        assert_eq!(body, MESSAGE);
        let media = call.head.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let mut stream = call.reply(&[("content-type", &media)]);
        stream.send_data(vec![b'x'; 20_000].into(), false).unwrap();
        stream
            .send_trailers(fields(&[("grpc-status", "0")]))
            .unwrap();
    });
    let gateway = origin.gateway("[compression]\npolicy = \"always\"");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for media in ["application/grpc", "application/grpc+json"] {
            let with = [
                ("content-type", media),
                ("accept-encoding", "gzip"),
                ("prefer", "compression=always"),
                ("content-encoding", "gzip"),
            ];
            let reply = client.call("/", &with, MESSAGE).await.unwrap();
            assert_eq!(reply.field("content-encoding"), "");
            assert_eq!(reply.body.len(), 20_000);
            assert_eq!(reply.trailer("grpc-status"), "0");
        }
    });
}

/// Of two messages, the first arrives although the second does not exist yet.
#[test]
fn a_message_is_forwarded_as_soon_as_it_arrives() {
    let heard = Arc::<AtomicUsize>::default();
    let seen = heard.clone();
    let origin = Http2Origin::start(move |mut call: Call| {
        let seen = seen.clone();
        async move {
            let mut stream = call.reply(&[GRPC]);
            for round in 1..=3 {
                stream
                    .send_data(Bytes::from_static(MESSAGE), false)
                    .unwrap();
                until("the client has it", || seen.load(SeqCst) == round).await;
            }
            stream
                .send_trailers(fields(&[("grpc-status", "0")]))
                .unwrap();
        }
    });
    let gateway = origin.gateway("");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[GRPC]);
        stream.send_data(Bytes::from_static(MESSAGE), true).unwrap();
        let mut body = reply.await.unwrap().into_body();
        for _ in 0..3 {
            assert_eq!(next(&mut body).await, MESSAGE);
            heard.fetch_add(1, SeqCst);
        }
        let (_, trailers) = receive(&mut body).await.unwrap();
        assert_eq!(trailers.unwrap()["grpc-status"], "0");
    });
}

#[test]
fn a_route_without_http2_names_the_key() {
    let origin = TestOrigin::answering(OK);
    let config = http2_config(&origin.address.to_string(), "http1", "");
    let gateway = start(config).unwrap();
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let reply = client.call("/shop.Books/Get", &[GRPC], MESSAGE).await;
        let reply = reply.unwrap();
        assert!(is_refusal(&reply, "12"), "{reply:?}");
        let message = reply.field("grpc-message");
        assert!(message.contains("protocol = \"http2\""), "{message}");
    });
    assert_eq!(origin.request_count(), 0);
}
