//! Admission by rate, by number in service, and by price; and advice in rejections.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use posthaste_gateway::start;

use crate::priced::{DEAR, Priced, metrics};
use crate::support::{OK, TestClient, TestOrigin, config, field, get, wait_until};

#[test]
fn requests_beyond_the_rate_are_rejected_with_retry_after() {
    let origin = TestOrigin::answering(OK);
    let more = "[protection]\npolicy = \"rate\"\nrate = \"1/min\"\nburst = 3\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let statuses: Vec<u16> = (0..5).map(|_| get(&gateway, "/", "").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let later = get(&gateway, "/", "");
    let seconds: u64 = field(&later.head, "retry-after").unwrap().parse().unwrap();
    assert!((50..=90).contains(&seconds), "{seconds}");
    assert_eq!(origin.request_count(), 3);
    assert_eq!(metrics(&gateway)("turned_away_total{reason=\"rate\"}"), 3.0);
}

#[test]
fn requests_beyond_the_limit_are_rejected_without_waiting() {
    let (origin, release) = TestOrigin::holding();
    let more = "[protection]\npolicy = \"limit\"\nleast = 2\nmost = 2\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let statuses = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let status = get(&gateway, "/slow", "").status;
                statuses.lock().unwrap().push(status);
            });
        }
        // Before any reply.
        wait_until("eight are refused", || statuses.lock().unwrap().len() == 8);
        assert_eq!(*statuses.lock().unwrap(), [503; 8]);
        release.tell();
    });
    assert_eq!(statuses.into_inner().unwrap()[8..], [200; 2]);
    assert_eq!(origin.request_count(), 2);
    wait_until("all have ended", || metrics(&gateway)("in_service ") == 0.0);
    assert_eq!(get(&gateway, "/", "").status, 200);
}

#[test]
fn faults_of_clients_do_not_lower_the_limit() {
    let origin = TestOrigin::answering(OK);
    let more = "[protection]\npolicy = \"limit\"\nstart = 1\nleast = 1\nlimiter = { policy = \"aimd\", timeout = \"2s\" }\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let limit = || metrics(&gateway)("service_limit{");
    let entered = || metrics(&gateway)("entered_total{by=\"plain\"} ");
    let ask = |request: &str| {
        TestClient::new(&gateway)
            .send(request)
            .reply(false)
            .unwrap()
            .status
    };
    for _ in 0..30 {
        assert_eq!(ask("GET / HTTP/1.1\r\nHost: s\r\n\r\n"), 200);
    }
    assert_eq!(limit(), 2.0);
    // The chunk does not end with CRLF.
    for _ in 0..20 {
        let garbage = "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplain!";
        assert_eq!(ask(garbage), 400);
    }
    // Uploads slower than the service may be.
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut client = TestClient::new(&gateway);
        let before = entered();
        client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nx");
        let is_in = || entered() > before && metrics(&gateway)("in_service ") == 0.0;
        wait_until("it has come in and is waited for", is_in);
        slow.push(client);
    }
    thread::sleep(Duration::from_millis(2200));
    for client in &mut slow {
        assert_eq!(client.send("y").reply(false).unwrap().status, 200);
    }
    assert!(limit() >= 2.0, "{}", limit());
    assert_eq!(
        metrics(&gateway)("upstream_failures_total{kind=\"broken\"}"),
        0.0
    );
}

#[test]
fn slow_uploads_do_not_count_as_requests_in_service() {
    let origin = TestOrigin::answering(OK);
    let more = "[protection]\npolicy = \"limit\"\nleast = 2\nmost = 2\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let in_service = || metrics(&gateway)("in_service ");
    let entered = || metrics(&gateway)("entered_total{by=\"plain\"} ");
    let slow = |before: u32| {
        let mut client = TestClient::new(&gateway);
        client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nx");
        let is_in = || entered() > f64::from(before) && in_service() == 0.0;
        wait_until("it has come in and is waited for", is_in);
        client
    };
    // If the first two stayed in service, the third would be rejected.
    let mut slow = [0, 1, 2, 3].map(slow);
    assert_eq!(get(&gateway, "/", "").status, 200);
    for client in &mut slow {
        assert_eq!(client.send("y").reply(false).unwrap().status, 200);
    }
    wait_until("all have ended", || in_service() == 0.0);
}

#[test]
fn a_service_at_ease_is_free_and_says_so() {
    let shop = Priced::new("0.1", "");
    let reply = shop.get("");
    assert_eq!(reply.status, 200);
    assert_eq!(field(&reply.head, "price"), Some("0.00 eur"));
    assert_eq!(field(&reply.head, "quote"), None);
}

#[test]
fn requests_that_do_not_pay_get_the_current_offer() {
    let shop = Priced::new("1.0", DEAR);
    shop.until(|price| price >= 0.3);
    let before = shop.origin.request_count();
    for (fields, message) in [
        ("", "states the offer"),
        ("Max-Price: 0.01 EUR\r\n", "above what the request accepts"),
        ("Max-Price: 9 USD\r\n", "another currency"),
        ("Selected-Offer: standard@7.77\r\n", "has ended"),
        (
            "Quote: AAAA\r\nMax-Price: 9 EUR\r\n",
            "was not given to this client",
        ),
    ] {
        let reply = shop.get(fields);
        assert_eq!(reply.status, 402, "{fields}");
        let body = String::from_utf8(reply.body).unwrap();
        assert!(body.contains(message), "{fields}: {body}");
        let offer = field(&reply.head, "current-offer").unwrap();
        let price: f64 = offer.split(['"', ' ']).nth(1).unwrap().parse().unwrap();
        assert!(offer.starts_with("standard@") && price >= 0.3, "{offer}");
    }
    assert_eq!(
        shop.origin.request_count(),
        before,
        "refused requests do not reach the upstream"
    );
}

#[test]
fn a_soap_header_selects_an_offer() {
    let select = |shop: &Priced, name: &str| {
        let header = format!(
            "<q:WSQoSSoapHeader xmlns:q='http://wsqos.org/'><selectedOffer>{name}</selectedOffer></q:WSQoSSoapHeader>"
        );
        shop.call("", &header)
    };
    let reply = select(&Priced::new("0.1", ""), "standard@0.00");
    assert_eq!(reply.status, 200);
    // A request with a price gets a quote.
    assert!(field(&reply.head, "quote").is_some(), "{}", reply.head);
    let busy = Priced::new("1.0", DEAR);
    busy.until(|price| price > 0.0);
    let ended = select(&busy, "standard@7.77");
    assert_eq!(ended.status, 500);
    let body = String::from_utf8(ended.body).unwrap();
    assert!(body.contains("has ended"), "{body}");
}

#[test]
fn a_soap_client_finds_the_present_offer_in_the_fault() {
    let shop = Priced::new("1.0", DEAR);
    shop.until(|price| price > 0.0);
    let reply = shop.call("", "");
    let body = String::from_utf8(reply.body).unwrap();
    assert_eq!(reply.status, 500, "{body}");
    assert!(
        body.contains("faultcode") && body.contains("CurrentOffer"),
        "{body}"
    );
    assert!(body.contains("standard@"), "{body}");
}

#[test]
fn a_quote_keeps_its_price_and_is_valid_for_its_client_only() {
    let is_busy = Arc::<AtomicBool>::default();
    let origin = {
        let is_busy = is_busy.clone();
        TestOrigin::start(move |line| {
            while line.request().is_some() {
                let busy = u8::from(is_busy.load(Relaxed));
                line.write(format!(
                    "HTTP/1.1 200 OK\r\nX-Busy: {busy}.0\r\nContent-Length: 2\r\n\r\nok"
                ));
            }
        })
    };
    let more = format!("{DEAR}life = \"600s\"\nrate = \"1/min\"\nburst = 4\n");
    let shop = Priced::before(origin, &more);
    let first = shop.get("X-Client: ann\r\nMax-Price: 0.5 EUR\r\n");
    assert_eq!(first.status, 200);
    let quote = shop.quote("bob");
    is_busy.store(true, Relaxed);
    shop.until(|price| price > 0.9);
    let bob = |fields: &str| shop.get(&format!("X-Client: bob\r\nQuote: {quote}\r\n{fields}"));
    let mut statuses = Vec::new();
    for _ in 0..6 {
        let reply = bob("");
        statuses.push(reply.status);
        if reply.status == 200 {
            assert_eq!(
                field(&reply.head, "price"),
                Some("0.00 eur"),
                "{}",
                reply.head
            );
        }
    }
    // Four at once, including the first request for the quote; then one per minute.
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
    let eve = shop.get(&format!("X-Client: eve\r\nQuote: {quote}\r\n"));
    assert_eq!(eve.status, 402);
    let mut forged = quote.clone();
    forged.replace_range(4..5, if &quote[4..5] == "A" { "B" } else { "A" });
    let changed = shop.get(&format!("X-Client: bob\r\nQuote: {forged}\r\n"));
    assert_eq!(changed.status, 402);
    let count = metrics(&shop.gateway);
    assert!(count("turned_away_total{reason=\"forged\"}") >= 2.0);
    assert!(count("entered_total{by=\"quote\"}") >= 3.0);
    let request = shop.origin.last_request().to_lowercase();
    assert!(
        !request.contains("quote:") && !request.contains("max-price"),
        "{request}"
    );
}

/// 2,000 such requests, forty at a time, while a client with a quote is served.
#[test]
fn clients_that_ignore_prices_do_not_block_those_with_quotes() {
    let shop = Priced::new(
        "1.0",
        &format!("{DEAR}life = \"60s\"\nrate = \"2/s\"\nburst = 20\n"),
    );
    let quote = shop.quote("bob");
    shop.until(|price| price >= 0.3);
    let before = shop.origin.request_count();
    let refused = thread::scope(|scope| {
        let crowd = |worker: usize| {
            let shop = &shop;
            move || {
                let clients = (0..50).map(|index| 50 * worker + index);
                let ask = |client| shop.get(&format!("X-Client: {client}\r\n")).status;
                clients.filter(|client| ask(*client) == 402).count()
            }
        };
        let crowd: Vec<_> = (0..40).map(|worker| scope.spawn(crowd(worker))).collect();
        for _ in 0..10 {
            let bob = shop.get(&format!("X-Client: bob\r\nQuote: {quote}\r\n"));
            assert_eq!(bob.status, 200, "{}", bob.head);
        }
        let refused = crowd.into_iter().map(|worker| worker.join().unwrap());
        refused.sum::<usize>()
    });
    assert_eq!(refused, 2000);
    assert_eq!(shop.origin.request_count() - before, 10);
}

#[test]
fn invalid_protection_settings_are_refused_with_the_remedy() {
    use posthaste_gateway::GatewayConfig;
    let route = "listen = \"127.0.0.1:0\"\n";
    for (more, message) in [
        ("[prices]", "protection.policy = \"prices\""),
        ("[protection]\npolicy = \"rate\"", "protection.rate"),
        ("[protection]\npolicy = \"prises\"", "`prices`"),
        ("[protection]\nleast = 0", "at least 1"),
        (
            "[protection]\nlimiter = { policy = \"gradient\", tolerance = 0.1 }",
            "protection.limiter: tolerance",
        ),
        (
            "[protection]\npolicy = \"prices\"\n[prices]\noffer = \"a@b\"",
            "letters, digits",
        ),
        (
            "[protection]\npolicy = \"prices\"\n[prices]\nlife = \"100ms\"",
            "twice prices.every",
        ),
        (
            "[protection]\npolicy = \"prices\"\n[prices]\ndiscount = \"95%\"",
            "at most 90%",
        ),
        (
            "[protection]\npolicy = \"prices\"\n[prices]\ncontroller = { policy = \"rajomon\", most = \"0.005\" }",
            "tick must be a number from 0.000001 to 0.005",
        ),
    ] {
        let text =
            format!("{route}{more}\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9\"]\n");
        let error = GatewayConfig::read(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{more}: {error}");
    }
}
