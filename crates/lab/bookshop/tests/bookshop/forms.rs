//! Replies in each form: for a known book, an unknown book, a wrong number, method or media type.

use std::io::Read as _;

use posthaste_bookshop::{BookshopConfig, BookshopError, ServiceSpec, start};
use posthaste_compression::{Described, Wish};
use posthaste_soap::reply::{Inspection, inspect};
use posthaste_soap::{Version, wsdl};

use crate::{call, envelope, get, isbns, open, send};

/// Valid, and in no catalogue of these tests.
const UNKNOWN: &str = "0306406152";
const WRONG: &str = "0306406153";
const XML: &str = "Content-Type: text/xml; charset=utf-8";

#[test]
fn soap_answers_with_envelopes_and_faults() {
    let running = open(BookshopConfig::default());
    let isbn = &isbns(running.addr)[0];
    for version in [Version::Soap11, Version::Soap12] {
        let hit = call(running.addr, version, "BookLite", isbn);
        assert_eq!(
            (hit.status, inspect(&hit.body)),
            (200, Inspection::Reply(version))
        );
        assert_eq!(
            hit.field("content-type"),
            Some(posthaste_soap::http::content_type(version))
        );
        let (code, status) = if version == Version::Soap11 {
            ("Client", 500)
        } else {
            ("Sender", 400)
        };
        for (isbn, problem) in [
            (UNKNOWN, "unknown-isbn"),
            (WRONG, "invalid-isbn"),
            ("&lt;", "invalid-isbn"),
        ] {
            let miss = call(running.addr, version, "BookHeavy1", isbn);
            assert_eq!(miss.status, status);
            assert!(matches!(inspect(&miss.body), Inspection::Fault { code: c, .. } if c == code));
            assert!(
                miss.text()
                    .contains(&format!("<problem>{problem}</problem><isbn>{isbn}</isbn>")),
                "{}",
                miss.text()
            );
        }
        let operation = call(running.addr, version, "BookHuge", isbn);
        assert!(
            operation.status == status && operation.text().contains("BookHeavy5"),
            "{}",
            operation.text()
        );
    }
}

#[test]
fn soap_over_http_obeys_the_profile() {
    let running = open(BookshopConfig::default());
    let isbn = &isbns(running.addr)[0];
    let body = envelope(Version::Soap11, "Hello", isbn);
    let post =
        |fields: &[&str], body: &str| send(running.addr, "POST", "/soap", fields, body.as_bytes());
    let action = "SOAPAction: \"urn:posthaste:bookshop/Hello\"";
    assert_eq!(post(&[XML, action], &body).status, 200, "R2744");
    assert_eq!(post(&[XML, "SOAPAction: \"\""], &body).status, 200, "R2745");
    let other = post(
        &[XML, "SOAPAction: \"urn:posthaste:bookshop/BookLite\""],
        &body,
    );
    assert!(other.status == 500 && other.text().contains("R2744"));
    assert_eq!(
        post(&[XML, "SOAPAction: urn:x"], &body).status,
        400,
        "R1109"
    );
    assert_eq!(post(&[XML], &body).status, 400);
    assert_eq!(
        post(
            &["Content-Type: application/json", "SOAPAction: \"\""],
            &body
        )
        .status,
        415
    );
    assert_eq!(post(&["SOAPAction: \"\""], &body).status, 415);
    assert_eq!(
        post(
            &["Content-Type: text/xml; charset=latin1", "SOAPAction: \"\""],
            &body
        )
        .status,
        415
    );
    assert_eq!(post(&[XML, "SOAPAction: \"\""], "").status, 400);
    let mismatch = post(
        &[XML, "SOAPAction: \"\""],
        &envelope(Version::Soap12, "Hello", isbn),
    );
    assert!(mismatch.status == 500 && mismatch.text().contains("soap:VersionMismatch"));
    let long = post(&[XML, "SOAPAction: \"\""], &" ".repeat(300 << 10));
    assert_eq!(long.status, 413);
    let broken = post(&[XML, "SOAPAction: \"\""], &body[..body.len() - 5]);
    assert!(broken.status == 500 && broken.text().contains("soap:Client"));
    for method in ["GET", "PUT", "DELETE"] {
        let wrong = send(running.addr, method, "/soap", &[], b"");
        assert_eq!(
            (wrong.status, wrong.field("allow")),
            (405, Some("POST")),
            "{method}"
        );
    }
    let without = body.replace("isbn>", "number>");
    assert!(
        post(&[XML, "SOAPAction: \"\""], &without)
            .text()
            .contains("there is no isbn")
    );
}

#[test]
fn the_description_is_at_the_address_the_client_used() {
    let running = open(BookshopConfig::default());
    let document = get(running.addr, "/soap?wsdl");
    assert_eq!(
        (document.status, document.field("content-type")),
        (200, Some("text/xml; charset=utf-8"))
    );
    let description = wsdl::read(&document.body).unwrap();
    let described = Described::from_description(&description);
    let wish = |operation: &str| described.wish(&format!("urn:posthaste:bookshop/{operation}"));
    assert_eq!(wish("Hello"), Some(Wish::Never), "it would get longer");
    assert_eq!(wish("BookLite"), Some(Wish::IfPossible));
    let isbn = &isbns(running.addr)[3];
    for version in [Version::Soap11, Version::Soap12] {
        let (port, operation) = description.find("BookHeavy2", Some(version)).unwrap();
        assert_eq!(port.address, "http://shop.example:8080/soap");
        let body = operation.envelope(version, &[("isbn", isbn)]).unwrap();
        let kind = match version {
            Version::Soap11 => format!("{XML}\r\nSOAPAction: \"{}\"", operation.action),
            Version::Soap12 => format!(
                "Content-Type: application/soap+xml; action=\"{}\"",
                operation.action
            ),
        };
        let reply = send(running.addr, "POST", "/soap", &[&kind], body.as_bytes());
        assert_eq!(inspect(&reply.body), Inspection::Reply(version));
    }
}

#[test]
fn pages_and_json_answer_in_their_own_form() {
    let running = open(BookshopConfig::default());
    let isbn = &isbns(running.addr)[0];
    let hyphens = format!("{}-{}-{}", &isbn[..1], &isbn[1..5], &isbn[5..]);
    for (path, kind, problem) in [
        (
            "/page",
            "text/html; charset=utf-8",
            "text/html; charset=utf-8",
        ),
        ("/json", "application/json", "application/problem+json"),
    ] {
        for found in [
            isbn.clone(),
            hyphens.clone(),
            format!("{isbn}?size=heavy5"),
            format!("{isbn}?size=hello"),
        ] {
            let hit = get(running.addr, &format!("{path}/{found}"));
            assert_eq!(
                (hit.status, hit.field("content-type")),
                (200, Some(kind)),
                "{found}"
            );
        }
        for (isbn, status) in [
            (UNKNOWN.to_owned(), 404),
            (WRONG.to_owned(), 400),
            ("%3Cscript%3E".to_owned(), 400),
            (String::new(), 400),
            (format!("{isbn}?size=huge"), 400),
        ] {
            let miss = get(running.addr, &format!("{path}/{isbn}"));
            assert_eq!(
                (miss.status, miss.field("content-type")),
                (status, Some(problem)),
                "{isbn}"
            );
            if path == "/json" {
                let parsed: serde_json::Value = serde_json::from_slice(&miss.body).unwrap();
                assert_eq!(parsed["status"], status);
                assert!(
                    parsed["type"].is_string()
                        && parsed["title"].is_string()
                        && parsed["detail"].is_string()
                );
            }
        }
        let wrong = send(running.addr, "POST", &format!("{path}/{isbn}"), &[], b"x");
        assert_eq!(
            (
                wrong.status,
                wrong.field("allow"),
                wrong.field("content-type")
            ),
            (405, Some("GET, HEAD"), Some(problem))
        );
        let whole = get(running.addr, &format!("{path}/{isbn}"));
        let head = send(running.addr, "HEAD", &format!("{path}/{isbn}"), &[], b"");
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), whole.field("content-length"));
    }
}

#[test]
fn the_other_addresses_help_and_watch() {
    let running = open(BookshopConfig {
        books: 5,
        ..BookshopConfig::default()
    });
    let home = get(running.addr, "/");
    for text in [
        "curl http://shop.example:8080/page/",
        "An inventory of 5 books",
    ] {
        assert!(home.text().contains(text), "{}", home.text());
    }
    assert_eq!(isbns(running.addr).len(), 5);
    assert_eq!(get(running.addr, "/healthz").text(), "ok\n");
    assert_eq!(get(running.addr, "/nowhere").status, 404);
    let _ = call(running.addr, Version::Soap11, "Hello", UNKNOWN);
    let metrics = get(running.addr, "/metrics");
    assert!(
        metrics
            .text()
            .contains("bookshop_requests_total{form=\"soap\",answer=\"failed\"} 1\n"),
        "{}",
        metrics.text()
    );
    assert!(
        metrics.text().contains("bookshop_connections_open 1\n"),
        "{}",
        metrics.text()
    );
}

#[test]
fn replies_are_packed_for_those_who_ask_when_the_shop_does_that() {
    let running = open(BookshopConfig {
        compression: Some(6),
        ..BookshopConfig::default()
    });
    let isbn = &isbns(running.addr)[0];
    let target = format!("/page/{isbn}?size=heavy1");
    let plain = get(running.addr, &target);
    assert_eq!(
        (plain.field("content-encoding"), plain.field("vary")),
        (None, Some("accept-encoding"))
    );
    for _ in 0..2 {
        let packed = send(
            running.addr,
            "GET",
            &target,
            &["Accept-Encoding: br, gzip"],
            b"",
        );
        assert_eq!(packed.field("content-encoding"), Some("gzip"));
        assert!(packed.body.len() * 2 < plain.body.len());
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&packed.body[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, plain.body);
    }
    let refused = send(
        running.addr,
        "GET",
        &target,
        &["Accept-Encoding: gzip;q=0"],
        b"",
    );
    assert_eq!(refused.field("content-encoding"), None);
    let without = open(BookshopConfig::default());
    let never = send(
        without.addr,
        "GET",
        &target,
        &["Accept-Encoding: gzip"],
        b"",
    );
    assert_eq!(
        (never.field("content-encoding"), never.field("vary")),
        (None, None)
    );
}

#[test]
fn two_shops_of_a_process_share_nothing() {
    let (first, second) = (
        open(BookshopConfig {
            books: 3,
            ..BookshopConfig::default()
        }),
        open(BookshopConfig {
            books: 4,
            ..BookshopConfig::default()
        }),
    );
    assert_eq!((isbns(first.addr).len(), isbns(second.addr).len()), (3, 4));
    drop(first);
    assert_eq!(get(second.addr, "/healthz").status, 200);
}

#[test]
fn start_errors_state_the_reason() {
    let listen = ([127, 0, 0, 1], 0).into();
    let law: ServiceSpec = "mm1k:1ms:4".parse().unwrap();
    let config = || BookshopConfig {
        listen,
        ..BookshopConfig::default()
    };
    assert!(matches!(
        start(BookshopConfig {
            books: 0,
            ..config()
        }),
        Err(BookshopError::Books(0))
    ));
    assert!(matches!(
        start(BookshopConfig {
            compression: Some(10),
            ..config()
        }),
        Err(BookshopError::Level(10))
    ));
    assert!(matches!(
        start(BookshopConfig {
            threads: 2,
            service: Some(law),
            ..config()
        }),
        Err(BookshopError::Law { .. })
    ));
    assert!(matches!(
        start(BookshopConfig {
            concurrency: Some(2),
            service: Some(law),
            ..config()
        }),
        Err(BookshopError::Law { .. })
    ));
    let running = open(BookshopConfig::default());
    let taken = start(BookshopConfig {
        listen: running.addr,
        ..config()
    })
    .unwrap_err();
    assert!(
        taken.to_string().contains(&running.addr.to_string()),
        "{taken}"
    );
}
