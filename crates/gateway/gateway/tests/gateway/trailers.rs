//! Trailers over HTTP/2, in both directions: the rules of heads hold for them.

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::http2_support::{Call, Http2Client, Http2Origin, complete, fields, run};

/// A gateway to an upstream of HTTP/2, with these keys of its route.
fn gateway(origin: &Http2Origin, route: &str) -> RunningGateway {
    let text = format!(
        "listen = \"127.0.0.1:0\"\nthreads = 1\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\n\
         protocol = \"http2\"\n{route}\n",
        origin.address
    );
    start(GatewayConfig::read(&text).unwrap()).unwrap()
}

fn names(trailers: Option<HeaderMap>) -> String {
    let trailers = trailers.unwrap_or_default();
    let mut names: Vec<_> = trailers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    names.join(",")
}

/// Answers with the names of the trailers that have come.
async fn names_received(mut call: Call) {
    if let Ok((_, trailers)) = call.receive().await {
        call.reply(&[("x-seen", &names(trailers))])
            .send_data(Bytes::new(), true)
            .unwrap();
    }
}

#[test]
fn trailers_follow_the_route_and_cannot_carry_head_fields() {
    let origin = Http2Origin::start(names_received);
    let changes = "request_headers = { remove = [\"X-Role\"], set = { X-Tenant = \"a\" } }";
    let gateway = gateway(&origin, changes);
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        for (trailers, seen) in [
            (
                fields(&[("x-role", "admin"), ("x-tenant", "b"), ("x-sum", "7")]),
                "x-sum",
            ),
            (
                fields(&[
                    ("authorization", "Basic x"),
                    ("content-length", "5"),
                    ("cookie", "a=b"),
                    ("host", "other"),
                    ("if-match", "*"),
                    ("x-forwarded-for", "192.0.2.1"),
                ]),
                "",
            ),
        ] {
            let (reply, mut stream) = client.post("/", &[]);
            stream.send_data(Bytes::from_static(b"a"), false).unwrap();
            stream.send_trailers(trailers).unwrap();
            assert_eq!(complete(reply).await.unwrap().field("x-seen"), seen);
        }
    });
    let requests = origin.requests.lock().unwrap();
    assert_eq!(requests[0].headers()["x-tenant"], "a");
}

#[test]
fn a_trailer_with_a_blank_before_its_value_is_refused() {
    let origin = Http2Origin::start(names_received);
    let gateway = gateway(&origin, "");
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let (reply, mut stream) = client.post("/", &[]);
        stream.send_data(Bytes::from_static(b"a"), false).unwrap();
        stream.send_trailers(padded()).unwrap();
        let reply = complete(reply).await.unwrap();
        assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    });
}

/// A field that is invalid in HTTP/2.
fn padded() -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert("x-sum", hyper::header::HeaderValue::from_static(" 7"));
    fields
}

#[test]
fn invalid_http2_replies_fail_and_trailers_lose_head_fields() {
    let origin = Http2Origin::start(async |mut call: Call| {
        let path = call.head.uri().path().to_owned();
        if path == "/head" {
            let mut reply = hyper::Response::new(());
            *reply.headers_mut() = padded();
            call.respond.send_response(reply, true).unwrap();
            return;
        }
        let mut stream = call.reply(&[]);
        stream.send_data(Bytes::from_static(b"ok"), false).unwrap();
        let trailers = match path.as_str() {
            "/trailers" => padded(),
            _ => fields(&[
                ("content-length", "9"),
                ("grpc-status", "0"),
                ("set-cookie", "a=b"),
                ("x-node", "7"),
                ("x-version", "2"),
            ]),
        };
        stream.send_trailers(trailers).unwrap();
    });
    let changes = "reply_headers = { remove = [\"X-Node\"], set = { X-Version = \"1\" } }";
    let gateway = gateway(&origin, changes);
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let reply = client.get("/").await.unwrap();
        assert_eq!(reply.field("x-version"), "1");
        assert_eq!(names(reply.trailers), "grpc-status");
        let reply = client.get("/head").await.unwrap();
        assert_eq!(reply.status, StatusCode::BAD_GATEWAY);
        assert!(client.get("/trailers").await.is_err());
    });
}
