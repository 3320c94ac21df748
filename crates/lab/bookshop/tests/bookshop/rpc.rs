//! gRPC: a method of each kind, statuses, deadlines, limits, health, reflection.

use std::time::{Duration, Instant};

use bytes::Bytes;
use posthaste_bookshop::{BookshopConfig, Running};
use posthaste_grpc_schema::reflection::{REFLECTION_SERVICES, ReflectionClient, ReflectionStep};
use posthaste_http::grpc::write_frame;
use posthaste_serve::Timeouts;
use posthaste_units::Span;

use crate::http2::{GRPC, Http2Client, end, method, next_message, requests, run, schema, until};
use crate::{get, isbns, open, send};

/// Valid, and in no catalogue of these tests.
const UNKNOWN: &str = "0306406152";
const WRONG: &str = "0306406153";

pub(crate) fn shop() -> Running {
    open(BookshopConfig {
        books: 20,
        ..BookshopConfig::default()
    })
}

/// Value of a line of the metrics.
pub(crate) fn metric(running: &Running, name: &str) -> u64 {
    let text = get(running.addr, "/metrics").text().to_owned();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

pub(crate) fn calls(running: &Running, status: &str) -> u64 {
    metric(
        running,
        &format!("bookshop_grpc_calls_total{{status=\"{status}\"}}"),
    )
}

#[test]
fn a_book_is_the_same_in_json_and_in_a_message_of_every_size() {
    let running = shop();
    let isbn = isbns(running.addr).remove(3);
    let get_book = method("GetBook");
    run(async {
        let client = Http2Client::new(running.addr).await;
        for size in ["hello", "lite", "heavy1", "heavy2", "heavy3", "heavy5"] {
            let request = format!(
                r#"{{"isbn": "{isbn}", "size": "SIZE_{}"}}"#,
                size.to_uppercase()
            );
            let end = client.call(&get_book, &request).await;
            assert_eq!(end.status(), ("0", String::new()), "{size}");
            assert_eq!(end.head["content-type"], "application/grpc");
            assert_eq!(end.head["grpc-accept-encoding"], "identity");
            assert!(end.trailers.is_some(), "the status follows the message");
            let [message] = &end.json(&get_book)[..] else {
                panic!("{end:?}");
            };
            let target = format!("/json/{isbn}?size={size}");
            let json: serde_json::Value =
                serde_json::from_slice(&get(running.addr, &target).body).unwrap();
            match size {
                "hello" => assert_eq!(message["greeting"], json["text"]),
                _ => assert_eq!(message["books"], json["books"], "{size}"),
            }
        }
        let default = client
            .call(&get_book, &format!(r#"{{"isbn": "{isbn}"}}"#))
            .await;
        assert_eq!(
            default.json(&get_book)[0]["books"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    });
    assert_eq!(calls(&running, "OK"), 7);
    let name = "bookshop_requests_total{form=\"grpc\",answer=\"ok\"}";
    assert_eq!(metric(&running, name), 7);
}

#[test]
fn a_list_of_books_follows_its_law() {
    let running = shop();
    let isbns = isbns(running.addr);
    let list = method("ListBooks");
    run(async {
        let client = Http2Client::new(running.addr).await;
        let isbn = &isbns[18];
        let request = format!(r#"{{"isbn": "{isbn}", "count": 5, "gap": "3ms", "first": "20ms"}}"#);
        let end = client.call(&list, &request).await;
        assert_eq!(end.status().0, "0");
        let replies = end.json(&list);
        let field = |reply: &serde_json::Value, name: &str| -> u64 {
            reply[name].as_str().unwrap().parse().unwrap()
        };
        assert_eq!(replies.len(), 5);
        for (at, reply) in replies.iter().enumerate() {
            assert_eq!(reply["number"], at + 1);
            // The catalogue begins again after its last book.
            let isbn = &isbns[(18 + at) % 20];
            assert_eq!(reply["content"]["books"][0]["isbn"], **isbn);
            assert!(field(reply, "sent_ns") >= field(reply, "due_ns"));
        }
        for two in replies.windows(2) {
            assert_eq!(
                field(&two[1], "due_ns") - field(&two[0], "due_ns"),
                3_000_000
            );
        }
        let ten = client
            .call(&list, &format!(r#"{{"isbn": "{isbn}"}}"#))
            .await;
        assert_eq!(ten.messages.len(), 10, "without a count");
        for (wrong, message) in [
            (r#""gap": "soon""#, "gap="),
            (r#""count": 100001"#, "1 to 100000"),
            (r#""count": 100000, "gap": "1s""#, "fewer"),
            (r#""size": 99"#, "0 to 6"),
        ] {
            let end = client
                .call(&list, &format!(r#"{{"isbn": "{isbn}", {wrong}}}"#))
                .await;
            assert!(end.is_trailers_only(), "{end:?}");
            let (status, text) = end.status();
            assert!(status == "3" && text.contains(message), "{status} {text}");
        }
    });
    assert_eq!(metric(&running, "bookshop_events_total{form=\"grpc\"}"), 15);
    let name = "bookshop_streams_total{form=\"grpc\",end=\"complete\"}";
    assert_eq!(metric(&running, name), 2);
}

#[test]
fn an_order_of_several_lines_has_a_total() {
    let running = shop();
    let isbns = isbns(running.addr);
    let method = method("PlaceOrder");
    let book = |isbn: &str| -> serde_json::Value {
        let reply = get(running.addr, &format!("/json/{isbn}"));
        let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        json["books"][0].clone()
    };
    let cents = |isbn: &str| -> u64 {
        let price = book(isbn)["price"].as_str().unwrap().replace('.', "");
        price.parse().unwrap()
    };
    let stock = book(&isbns[0])["stock"].as_u64().unwrap();
    run(async {
        let client = Http2Client::new(running.addr).await;
        let (a, b) = (&isbns[0], &isbns[1]);
        let lines = format!(r#"[{{"isbn":"{a}","copies":{stock}}},{{"isbn":"{b}","copies":1}}]"#);
        let end = client.call(&method, &lines).await;
        let total = &end.json(&method)[0];
        assert_eq!(total["lines"], 2);
        assert_eq!(total["copies"], (stock + 1).to_string());
        let wanted = cents(a) * stock + cents(b);
        assert_eq!(total["total_cents"], wanted.to_string());
        for (lines, status, message) in [
            ("[]".to_owned(), "3", "at least one"),
            (format!(r#"{{"isbn":"{a}"}}"#), "3", "at least 1"),
            (
                format!(r#"{{"isbn":"{a}","copies":{}}}"#, stock + 1),
                "9",
                "there are only",
            ),
            (
                format!(r#"{{"isbn":"{UNKNOWN}","copies":1}}"#),
                "5",
                "/isbns.csv",
            ),
            (
                format!(r#"{{"isbn":"{WRONG}","copies":1}}"#),
                "3",
                "not an ISBN",
            ),
        ] {
            let end = client.call(&method, &lines).await;
            assert!(end.is_trailers_only(), "{lines}: {end:?}");
            let (code, text) = end.status();
            assert!(
                code == status && text.contains(message),
                "{lines}: {code} {text}"
            );
        }
        let line = format!(r#"{{"isbn":"{b}","copies":1}}"#);
        let mut body = Vec::new();
        for _ in 0..10_001 {
            body.extend_from_slice(&requests(&method, &line));
        }
        let (reply, mut stream) = client.begin(&method.path(), &[]).await;
        send_all(&mut stream, body.into()).await;
        let _ = stream.send_data(Bytes::new(), true);
        let (status, text) = (end_of(reply).await, "10000 lines");
        assert!(status.0 == "8" && status.1.contains(text), "{status:?}");
    });
}

pub(crate) async fn end_of(reply: h2::client::ResponseFuture) -> (String, String) {
    let end = end(reply).await;
    let (status, text) = end.status();
    (status.to_owned(), text)
}

/// Sends as the window allows, until the shop refuses more.
async fn send_all(stream: &mut h2::SendStream<Bytes>, mut data: Bytes) {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let free = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(free)) = free else { return };
        let piece = data.split_to(free.min(data.len()));
        if stream.send_data(piece, false).is_err() {
            return;
        }
    }
}

#[test]
fn each_line_is_quoted_before_the_next_is_sent() {
    let running = shop();
    let isbns = isbns(running.addr);
    let quote = method("QuoteLines");
    run(async {
        let client = Http2Client::new(running.addr).await;
        let (reply, mut stream) = client.begin(&quote.path(), &[]).await;
        // The head comes before any line.
        let mut body = reply.await.unwrap().into_body();
        let mut total = 0;
        for (number, isbn) in isbns.iter().take(5).enumerate() {
            let line = requests(&quote, &format!(r#"{{"isbn":"{isbn}","copies":1}}"#));
            stream.send_data(line.into(), false).unwrap();
            let message = quote.decode_reply(&next_message(&mut body).await).unwrap();
            let message: serde_json::Value = serde_json::from_str(&message).unwrap();
            assert_eq!(message["number"], number + 1);
            let cents: u64 = message["line_cents"].as_str().unwrap().parse().unwrap();
            total += cents;
            assert_eq!(message["total_cents"], total.to_string());
        }
        let wrong = requests(&quote, &format!(r#"{{"isbn":"{UNKNOWN}","copies":1}}"#));
        stream.send_data(wrong.into(), false).unwrap();
        assert!(body.data().await.is_none());
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "5");
    });
}

#[test]
fn calls_that_cannot_be_answered_have_their_status_in_the_head() {
    let running = shop();
    let isbn = isbns(running.addr).remove(0);
    let get_book = method("GetBook");
    let path = get_book.path();
    let good = requests(&get_book, &format!(r#"{{"isbn":"{isbn}"}}"#));
    let with = |isbn: &str| requests(&get_book, &format!(r#"{{"isbn":"{isbn}"}}"#));
    let long = requests(
        &get_book,
        &format!(r#"{{"isbn":"{}"}}"#, "1".repeat(300 << 10)),
    );
    let compressed = [&[1], &good[1..]].concat();
    let two = [&good[..], &good[..]].concat();
    let cases: &[(&str, &[u8], &str, &str)] = &[
        (&path, &with(UNKNOWN), "5", "GET /isbns.csv"),
        (&path, &with(WRONG), "3", "not an ISBN-10"),
        (&path, &with("\u{fc}"), "3", "\u{fc}"),
        (&path, &long[..40_000], "8", "limit of 262144"),
        (&path, &compressed, "12", "identity"),
        (&path, &[2, 0, 0, 0, 0], "13", "flag 2"),
        (&path, &good[..8], "13", "ends within a message"),
        (&path, b"", "12", "needs a request"),
        (&path, &two, "12", "takes one request"),
        (&path, b"\0\0\0\0\x02\x0a\x09", "13", "cannot be read"),
        (
            "/bookshop.v1.Bookshop/Nothing",
            &good,
            "12",
            "there are GetBook",
        ),
        (
            "/bookshop.v1.Nothing/GetBook",
            &good,
            "12",
            "server reflection",
        ),
        ("/", b"", "12", "server reflection"),
        ("/healthz", b"", "12", "server reflection"),
        ("/grpc.health.v1.Health/Nothing", b"", "12", ""),
    ];
    run(async {
        let client = Http2Client::new(running.addr).await;
        for (path, body, status, message) in cases {
            let end = client.call_with(path, &[], body).await;
            assert_eq!(end.http, 200, "{path}");
            assert!(end.is_trailers_only(), "{path}: {end:?}");
            assert_eq!(end.head["grpc-accept-encoding"], "identity");
            let (code, text) = end.status();
            assert!(
                code == *status && text.contains(message),
                "{path}: {code} {text}"
            );
        }
        assert_eq!(client.call_with(&path, &[], &good).await.status().0, "0");
    });
    assert_eq!(calls(&running, "NOT_FOUND"), 1);
    assert_eq!(calls(&running, "UNIMPLEMENTED"), 8);
    let name = "bookshop_requests_total{form=\"grpc\",answer=\"refused\"}";
    assert_eq!(metric(&running, name), 12);
    let name = "bookshop_requests_total{form=\"grpc\",answer=\"failed\"}";
    assert_eq!(metric(&running, name), 3);
}

#[test]
fn requests_that_are_no_calls_get_http() {
    let running = shop();
    let path = method("GetBook").path();
    let grpc = ["Content-Type: application/grpc"];
    let old = send(running.addr, "POST", &path, &grpc, b"\0\0\0\0\0");
    assert!(
        old.status == 505 && old.text().contains("HTTP/2"),
        "{old:?}"
    );
    run(async {
        let client = Http2Client::new(running.addr).await;
        let url = format!("http://shop{path}");
        for (request, kind, status) in [
            (hyper::Request::get(&url), "application/grpc", 405),
            (hyper::Request::post(&url), "application/grpc+json", 415),
            (hyper::Request::post(&url), "application/grpc+proto", 200),
            (
                hyper::Request::post(&url),
                "application/grpc;charset=x",
                200,
            ),
            // Not gRPC, and nothing is there.
            (hyper::Request::get(&url), "application/grpc-web", 404),
        ] {
            let (reply, mut stream) = client.start(request, &[("content-type", kind)]).await;
            let _ = stream.send_data(Bytes::new(), true);
            assert_eq!(end(reply).await.http, status, "{kind}");
        }
    });
}

#[test]
fn a_client_that_goes_away_or_says_nothing_ends_its_call_only() {
    let running = open(BookshopConfig {
        books: 20,
        timeouts: Timeouts {
            body: Span::from_millis(300),
            ..Timeouts::default()
        },
        ..BookshopConfig::default()
    });
    let isbn = isbns(running.addr).remove(0);
    let (list, quote) = (method("ListBooks"), method("QuoteLines"));
    run(async {
        let client = Http2Client::new(running.addr).await;
        let request = format!(r#"{{"isbn":"{isbn}","count":100,"gap":"30s"}}"#);
        let (reply, mut stream) = client.begin(&list.path(), &[]).await;
        stream
            .send_data(requests(&list, &request).into(), true)
            .unwrap();
        let mut body = reply.await.unwrap().into_body();
        next_message(&mut body).await;
        stream.send_reset(h2::Reason::CANCEL);
        until("the call is counted", || calls(&running, "CANCELLED") == 1).await;
        let name = "bookshop_streams_total{form=\"grpc\",end=\"cancelled\"}";
        assert_eq!(metric(&running, name), 1);
        let (reply, _stream) = client.begin(&quote.path(), &[]).await;
        let (status, text) = end_of(reply).await;
        assert!(
            status == "4" && text.contains("no message"),
            "{status} {text}"
        );
        let end = client.call(&list, &format!(r#"{{"isbn":"{isbn}"}}"#)).await;
        assert_eq!(end.status().0, "0", "the connection serves on");
    });
}

#[test]
fn calls_have_serial_service_times_and_health_has_none() {
    // A request counts as arrived when its thread woke, which on a busy machine can be at its start.
    let begin = Instant::now();
    let running = open(BookshopConfig {
        service: Some("md1:30ms".parse().unwrap()),
        books: 10,
        ..BookshopConfig::default()
    });
    let isbn = isbns(running.addr).remove(0);
    let get_book = method("GetBook");
    let health = schema().find("grpc.health.v1.Health/Check").unwrap();
    run(async {
        let client = Http2Client::new(running.addr).await;
        let body = requests(&get_book, &format!(r#"{{"isbn":"{isbn}"}}"#));
        let mut replies = Vec::new();
        for _ in 0..6 {
            let (reply, mut stream) = client.begin(&get_book.path(), &[]).await;
            stream.send_data(body.clone().into(), true).unwrap();
            replies.push(reply);
        }
        let mut times = Vec::new();
        for reply in replies {
            let end = end(reply).await;
            assert_eq!(end.status().0, "0");
            assert!(end.head.contains_key("x-busy"));
            times.push(begin.elapsed());
        }
        for (n, time) in (1..).zip(&times) {
            assert!(*time >= Duration::from_millis(30) * n, "{n}: {times:?}");
        }
        let end = client.call(&health, "{}").await;
        assert!(end.status().0 == "0" && !end.head.contains_key("x-busy"));
        let unknown = client
            .call(&get_book, &format!(r#"{{"isbn":"{UNKNOWN}"}}"#))
            .await;
        assert!(unknown.status().0 == "5" && unknown.head.contains_key("x-busy"));
        let fields = [("grpc-timeout", "5m")];
        let late = client.call_with(&get_book.path(), &fields, &body).await;
        assert_eq!(late.status().0, "4");
    });
}

/// The first of several calls in a queue has its reply while the last still waits. A call without an answer for a long
/// time proves it without a clock.
#[test]
fn a_reply_is_written_before_the_service_of_the_next_call() {
    let running = open(BookshopConfig {
        service: Some("md1:400ms".parse().unwrap()),
        books: 10,
        ..BookshopConfig::default()
    });
    let get_book = method("GetBook");
    run(async {
        let client = Http2Client::new(running.addr).await;
        let body = requests(&get_book, &format!(r#"{{"isbn":"{UNKNOWN}"}}"#));
        let begin = Instant::now();
        let mut replies = Vec::new();
        for _ in 0..5 {
            let (reply, mut stream) = client.begin(&get_book.path(), &[]).await;
            stream.send_data(body.clone().into(), true).unwrap();
            replies.push(reply);
        }
        let first = end(replies.remove(0)).await;
        assert_eq!(first.status().0, "5");
        // Five service times would have passed if the replies waited for each other.
        let passed = begin.elapsed();
        assert!(passed < Duration::from_millis(1900), "{passed:?}");
    });
}

#[test]
fn health_and_its_watch_know_the_services() {
    let running = shop();
    let check = schema().find("grpc.health.v1.Health/Check").unwrap();
    let list = schema().find("grpc.health.v1.Health/List").unwrap();
    let watch = schema().find("grpc.health.v1.Health/Watch").unwrap();
    run(async {
        let client = Http2Client::new(running.addr).await;
        for service in ["", "bookshop.v1.Bookshop", "grpc.health.v1.Health"] {
            let end = client
                .call(&check, &format!(r#"{{"service":"{service}"}}"#))
                .await;
            assert_eq!(end.json(&check)[0]["status"], "SERVING");
        }
        let unknown = client.call(&check, r#"{"service":"x"}"#).await;
        assert_eq!(unknown.status().0, "5");
        let all = client.call(&list, "{}").await;
        let statuses = &all.json(&list)[0]["statuses"];
        assert_eq!(statuses["bookshop.v1.Bookshop"]["status"], "SERVING");
        for (service, status) in [("", "SERVING"), ("x", "SERVICE_UNKNOWN")] {
            let (reply, mut stream) = client.begin(&watch.path(), &[]).await;
            let request = requests(&watch, &format!(r#"{{"service":"{service}"}}"#));
            stream.send_data(request.into(), true).unwrap();
            let mut body = reply.await.unwrap().into_body();
            let message = next_message(&mut body).await;
            assert!(watch.decode_reply(&message).unwrap().contains(status));
        }
    });
}

#[test]
fn both_versions_of_reflection_have_every_service() {
    let running = shop();
    run(async {
        let client = Http2Client::new(running.addr).await;
        for version in REFLECTION_SERVICES {
            let path = format!("/{version}/ServerReflectionInfo");
            for service in ["bookshop.v1.Bookshop", "grpc.health.v1.Health", version] {
                let (reply, mut stream) = client.begin(&path, &[]).await;
                let mut body = reply.await.unwrap().into_body();
                let (mut asks, mut message) = ReflectionClient::begin(service);
                let schema = loop {
                    let mut framed = Vec::new();
                    write_frame(&mut framed, &message);
                    stream.send_data(framed.into(), false).unwrap();
                    match asks.answer(&next_message(&mut body).await).unwrap() {
                        ReflectionStep::Ask(next) => message = next,
                        ReflectionStep::Complete(schema) => break schema,
                    }
                };
                assert_eq!(schema.services().collect::<Vec<_>>(), [service]);
                stream.send_data(Bytes::new(), true).unwrap();
                assert!(body.data().await.is_none());
                assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
            }
            let (mut asks, message) = ReflectionClient::begin("bookshop.v1.Bookshops");
            let mut framed = Vec::new();
            write_frame(&mut framed, &message);
            let end = client.call_with(&path, &[], &framed).await;
            let ReflectionStep::Ask(message) = asks.answer(&end.messages[0]).unwrap() else {
                panic!("there is no such service");
            };
            let mut framed = Vec::new();
            write_frame(&mut framed, &message);
            let end = client.call_with(&path, &[], &framed).await;
            let error = asks.answer(&end.messages[0]).unwrap_err().to_string();
            assert!(error.contains("nearest is bookshop.v1.Bookshop"), "{error}");
        }
    });
}

#[test]
fn the_file_of_the_service_is_served_and_compiles() {
    let running = shop();
    let file = get(running.addr, "/bookshop.proto");
    let texts = [("bookshop.proto".to_owned(), file.text().to_owned())];
    let files = std::collections::BTreeMap::from(texts);
    let schema = posthaste_grpc_schema::Schema::compile(&["bookshop.proto"], files).unwrap();
    assert!(schema.find("bookshop.v1.Bookshop/GetBook").is_ok());
    assert_eq!(GRPC.1, "application/grpc");
}
