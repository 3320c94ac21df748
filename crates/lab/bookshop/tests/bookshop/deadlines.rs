//! gRPC: deadlines of calls, and the calls that count as late.

use std::time::{Duration, Instant};

use bytes::Bytes;
use posthaste_bookshop::BookshopConfig;

use crate::http2::{Http2Client, end, method, requests, run, schema};
use crate::rpc::{calls, end_of, metric, shop};
use crate::{isbns, open};

#[test]
fn a_deadline_ends_a_call_in_every_phase() {
    let running = shop();
    let isbn = isbns(running.addr).remove(0);
    let (get_book, list) = (method("GetBook"), method("ListBooks"));
    let good = requests(&get_book, &format!(r#"{{"isbn":"{isbn}"}}"#));
    run(async {
        let client = Http2Client::new(running.addr).await;
        let timeout = |value: &'static str| [("grpc-timeout", value)];
        let path = get_book.path();
        let end_at_once = client.call_with(&path, &timeout("0m"), &good).await;
        assert_eq!(end_at_once.status().0, "4");
        // The request never ends.
        let (reply, mut stream) = client.begin(&path, &timeout("50m")).await;
        stream.send_data(Bytes::from_static(&[0]), false).unwrap();
        assert_eq!(end_of(reply).await.0, "4");
        // Within the stream of replies.
        let request = format!(r#"{{"isbn":"{isbn}","count":100,"gap":"30s"}}"#);
        let body = requests(&list, &request);
        let end = client.call_with(&list.path(), &timeout("1S"), &body).await;
        assert_eq!((end.messages.len(), end.status().0), (1, "4"));
        let good_reply = client.call_with(&path, &timeout("30S"), &good).await;
        assert_eq!(good_reply.status().0, "0");
        for bad in ["", "5", "123456789S", "-1S", "1s"] {
            let fields = [("grpc-timeout", bad)];
            let (status, text) = {
                let end = client.call_with(&path, &fields, &good).await;
                (end.status().0.to_owned(), end.status().1)
            };
            assert!(
                status == "13" && text.contains("grpc-timeout"),
                "{bad}: {text}"
            );
        }
        let twice = [("grpc-timeout", "1S"), ("grpc-timeout", "1S")];
        assert_eq!(
            client.call_with(&path, &twice, &good).await.status().0,
            "13"
        );
    });
    assert_eq!(calls(&running, "DEADLINE_EXCEEDED"), 3);
    let name = "bookshop_streams_total{form=\"grpc\",end=\"cancelled\"}";
    assert_eq!(metric(&running, name), 1);
}

/// A queue of calls whose client waits for two service times: the others end without a service.
#[test]
fn a_call_past_its_deadline_is_not_served_and_counts_as_late() {
    let running = open(BookshopConfig {
        service: Some("md1:100ms".parse().unwrap()),
        books: 10,
        ..BookshopConfig::default()
    });
    let isbn = isbns(running.addr).remove(0);
    let (get_book, list) = (method("GetBook"), method("ListBooks"));
    let health = schema().find("grpc.health.v1.Health/Check").unwrap();
    run(async {
        let client = Http2Client::new(running.addr).await;
        let body = requests(&get_book, &format!(r#"{{"isbn":"{isbn}"}}"#));
        let begin = Instant::now();
        let now = [("grpc-timeout", "0n")];
        for method in [&get_book, &list, &health] {
            let end = client.call_with(&method.path(), &now, &body).await;
            assert_eq!(end.status().0, "4");
            assert!(!end.head.contains_key("x-busy"), "no service");
        }
        let passed = begin.elapsed();
        assert!(passed < Duration::from_millis(100), "{passed:?}");
        let mut replies = Vec::new();
        let begin = Instant::now();
        for _ in 0..20 {
            let timeout = [("grpc-timeout", "250m")];
            let (reply, mut stream) = client.begin(&get_book.path(), &timeout).await;
            stream.send_data(body.clone().into(), true).unwrap();
            replies.push(reply);
        }
        let mut served = 0;
        for reply in replies {
            match end(reply).await.status().0 {
                "0" => served += 1,
                status => assert_eq!(status, "4"),
            }
        }
        // Twenty service times would be 2 s.
        let passed = begin.elapsed();
        assert!(passed < Duration::from_millis(1_500), "{passed:?}");
        assert!(served <= 2, "{served}");
        assert_eq!(calls(&running, "OK"), served);
        assert_eq!(calls(&running, "DEADLINE_EXCEEDED"), 23 - served);
    });
}
