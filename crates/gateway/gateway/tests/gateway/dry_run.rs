//! Dry runs of the protection and of compression: decisions are counted and not carried out.

use std::io::Write as _;
use std::sync::Mutex;
use std::thread;

use posthaste_gateway::start;
use tempfile::NamedTempFile;

use crate::priced::{DEAR, metrics};
use crate::support::{TestOrigin, config, field, get, wait_until};
use crate::watching::fetch_admin;

const OK: &str = "HTTP/1.1 200 OK\r\nX-Busy: 1.0\r\nContent-Length: 2\r\n\r\nok";

fn status_page(gateway: &posthaste_gateway::RunningGateway) -> String {
    String::from_utf8(fetch_admin(gateway, "/status").body).unwrap()
}

#[test]
fn requests_beyond_the_rate_are_admitted_and_counted_apart() {
    let origin = TestOrigin::answering(OK);
    let with = |dry_run: bool| {
        let more = format!(
            "[protection]\npolicy = \"rate\"\nrate = \"1/h\"\nburst = 3\ndry_run = {dry_run}\n"
        );
        config(&[origin.address], &more)
    };
    let gateway = start(with(true)).unwrap();
    let statuses: Vec<u16> = (0..5).map(|_| get(&gateway, "/", "").status).collect();
    assert_eq!(statuses, [200; 5]);
    let count = metrics(&gateway);
    // The bucket pays for three, and not for the two that it would not admit.
    assert_eq!(count("would_turn_away_total{reason=\"rate\"}"), 2.0);
    assert_eq!(count("turned_away_total{reason=\"rate\"}"), 0.0);
    assert_eq!(count("entered_total{by=\"plain\"}"), 3.0);
    assert_eq!(count("entered_total{by=\"dry-run\"}"), 2.0);
    let page = status_page(&gateway);
    assert!(page.contains("Dry run:"), "{page}");
    assert!(page.contains("would be rejected: rate"), "{page}");
    // The end of the dry run finds the bucket empty.
    gateway.reload(with(false)).unwrap();
    assert_eq!(get(&gateway, "/", "").status, 429);
    assert!(!status_page(&gateway).contains("Dry run:"));
    assert_eq!(
        metrics(&gateway)("would_turn_away_total{reason=\"rate\"}"),
        2.0
    );
    gateway.reload(with(true)).unwrap();
    assert_eq!(get(&gateway, "/", "").status, 200);
}

#[test]
fn requests_beyond_the_limit_are_in_service() {
    let (origin, release) = TestOrigin::holding();
    let more = "[protection]\npolicy = \"limit\"\nleast = 2\nmost = 2\ndry_run = true\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let statuses = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let status = get(&gateway, "/slow", "").status;
                statuses.lock().unwrap().push(status);
            });
        }
        wait_until("all are in service", || {
            metrics(&gateway)("in_service ") == 10.0
        });
        release.tell();
    });
    assert_eq!(statuses.into_inner().unwrap(), [200; 10]);
    let count = metrics(&gateway);
    assert_eq!(count("would_turn_away_total{reason=\"limit\"}"), 8.0);
    assert_eq!(count("turned_away_total{reason=\"limit\"}"), 0.0);
    wait_until("all have ended", || metrics(&gateway)("in_service ") == 0.0);
}

#[test]
fn clients_and_brokers_see_nothing_of_prices() {
    let origin = TestOrigin::answering(OK);
    let broker = TestOrigin::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let mut token = NamedTempFile::new().unwrap();
    token.write_all(b"secret").unwrap();
    let with = |dry_run: bool| {
        let more = format!(
            "[demand]\nwatch = {{ upstream = \"X-Busy\" }}\n\
             [protection]\npolicy = \"prices\"\ndry_run = {dry_run}\n\
             [prices]\nevery = \"20ms\"\nlife = \"600s\"\ncapacity = \"100/s\"\n{DEAR}\
             [prices.broker]\nurl = \"http://{}/\"\ntype = \"shop\"\nprovider = \"p\"\ntoken = {:?}\n",
            broker.address,
            token.path()
        );
        config(&[origin.address], &more)
    };
    let gateway = start(with(true)).unwrap();
    let pays = "Max-Price: 1000 EUR\r\nQuote-Rate: 5\r\n";
    wait_until("the price has risen", || {
        let reply = get(&gateway, "/", pays);
        assert_eq!(reply.status, 200);
        for name in ["price", "quote", "current-offer"] {
            assert_eq!(field(&reply.head, name), None, "{}", reply.head);
        }
        metrics(&gateway)("price ") >= 1.0
    });
    assert!(!origin.last_request().to_lowercase().contains("max-price"));
    for fields in ["", "Max-Price: 0.01 EUR\r\n", "Quote: AAAA\r\n"] {
        let reply = get(&gateway, "/", fields);
        assert_eq!(reply.status, 200, "{fields}");
        assert_eq!(field(&reply.head, "current-offer"), None);
    }
    let count = metrics(&gateway);
    for reason in ["no-offer", "too-cheap", "forged"] {
        let would = count(&format!("would_turn_away_total{{reason=\"{reason}\"}}"));
        let does = count(&format!("turned_away_total{{reason=\"{reason}\"}}"));
        assert_eq!((would, does), (1.0, 0.0), "{reason}");
    }
    assert_eq!(count("quoted_per_second "), 0.0);
    // The upstream answers requests for the page.
    assert_eq!(get(&gateway, "/.well-known/wsqos", "").body, b"ok");
    assert_eq!(broker.request_count(), 0);
    // The price that the dry run has found applies from its end on.
    gateway.reload(with(false)).unwrap();
    let refused = get(&gateway, "/", "");
    assert_eq!(refused.status, 402);
    assert!(
        field(&refused.head, "current-offer")
            .unwrap()
            .starts_with("standard@1.00")
    );
    wait_until("the offer is published", || broker.request_count() > 0);
}

fn answer() -> String {
    let body = "<book>".repeat(500);
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_dry_run_forwards_replies_unchanged_and_counts_decisions() {
    for policy in ["threshold", "ladder", "always"] {
        let origin = TestOrigin::answering(answer());
        let with = |dry_run: bool| {
            let more = format!("[compression]\npolicy = \"{policy}\"\ndry_run = {dry_run}\n");
            config(&[origin.address], &more)
        };
        let gateway = start(with(true)).unwrap();
        let asks = "Accept-Encoding: gzip\r\nPrefer: compression=always, compression-decision\r\n";
        for _ in 0..3 {
            let reply = get(&gateway, "/", asks);
            assert_eq!(reply.body, "<book>".repeat(500).as_bytes(), "{policy}");
            for (name, value) in [
                ("content-encoding", None),
                ("vary", None),
                ("etag", Some("\"v1\"")),
                ("accept-ranges", Some("bytes")),
                ("content-length", Some("3000")),
            ] {
                assert_eq!(field(&reply.head, name), value, "{policy}: {}", reply.head);
            }
        }
        let count = metrics(&gateway);
        assert_eq!(
            count("would_compress_total{reason=\"asked\"}"),
            3.0,
            "{policy}"
        );
        let plain = "decisions_total{wish=\"always\",decision=\"plain\",reason=\"dry-run\"}";
        assert_eq!(count(plain), 3.0);
        for none in [
            "packed_total{coding=\"gzip\"",
            "packed_bytes_read_total{coding=\"gzip\"",
            "packed_cpu_seconds_total{coding=\"gzip\"",
            "cached_total",
        ] {
            assert_eq!(count(none), 0.0, "{policy}: {none}");
        }
        assert!(status_page(&gateway).contains("Would be compressed, because asked: 3."));
        // Optional replies are decided by the load.
        let reason = if policy == "always" {
            "policy-always"
        } else {
            "affordable"
        };
        wait_until("an optional reply would be compressed", || {
            let reply = get(&gateway, "/", "Accept-Encoding: gzip\r\n");
            assert_eq!(field(&reply.head, "content-encoding"), None);
            let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
            text.contains(&format!("would_compress_total{{reason=\"{reason}\"}}"))
        });
        gateway.reload(with(false)).unwrap();
        wait_until("the dry run has ended", || {
            let reply = get(&gateway, "/", asks);
            field(&reply.head, "content-encoding") == Some("gzip")
        });
    }
}

/// Replies that are not compressed anyway keep their reason.
#[test]
fn a_dry_run_of_compression_changes_no_other_decision() {
    let origin = TestOrigin::answering(answer());
    let gateway = start(config(&[origin.address], "[compression]\ndry_run = true\n")).unwrap();
    get(&gateway, "/", "Accept-Encoding: identity\r\n");
    let refused = "decisions_total{wish=\"never\",decision=\"plain\",reason=\"refused\"}";
    assert_eq!(metrics(&gateway)(refused), 1.0);
}
