//! Routing by offers: the cheapest adequate one, measured quality, failures, and the absence of the broker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use posthaste_gateway::{RunningGateway, start};
use serde_json::Value;

use crate::offers_support::{TestBroker, TestOffer, config, offered, wait_for_offers};
use crate::priced::metrics;
use crate::support::{OK, TestClient, TestOrigin, closed_port, field, get, wait_until};
use crate::watching::{fetch_admin, value};

/// Three endpoints of one service: the dearer, the faster.
struct ThreeOffers {
    _broker: TestBroker,
    gateway: RunningGateway,
    origins: [TestOrigin; 3],
}

impl ThreeOffers {
    fn open(more: &str) -> Self {
        let origins = [(); 3].map(|()| TestOrigin::answering(OK));
        let broker = TestBroker::start(&three(&origins));
        let gateway = start(config(&broker, more, &[])).unwrap();
        wait_for_offers(&gateway, 3);
        Self {
            _broker: broker,
            gateway,
            origins,
        }
    }
}

fn three(origins: &[TestOrigin; 3]) -> [TestOffer<'static>; 3] {
    let [cheap, middle, dear] = origins.each_ref().map(|origin| origin.address);
    [
        TestOffer::new("cheap", "0.10", 5000, cheap),
        TestOffer::new("middle", "0.20", 1000, middle),
        TestOffer::new("dear", "0.30", 200, dear),
    ]
}

fn metric(gateway: &RunningGateway, start: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{start}"))
}

#[test]
fn the_cheapest_offer_that_meets_the_terms_is_used() {
    let market = ThreeOffers::open("probe = \"0s\"");
    for (fields, name, decision) in [
        ("", "cheap", "cheapest"),
        ("Max-Latency: 6s\r\n", "cheap", "cheapest"),
        (
            "Max-Latency: 2s;p=50\r\n",
            "middle",
            "cheapest;passed-over=\"cheap: promised-slow\"",
        ),
        (
            "Max-Latency: 500ms;p=50\r\nMax-Price: 0.30 EUR\r\nMin-Reliability: 99.9%\r\n",
            "dear",
            "cheapest;passed-over=\"cheap: promised-slow, middle: promised-slow\"",
        ),
        ("Selected-Offer: dear\r\n", "dear", "selected"),
        (
            "Selected-Offer: gold\r\n",
            "cheap",
            "cheapest;selected=unknown",
        ),
        (
            "Selected-Offer: dear\r\nMax-Price: 0.15 EUR\r\n",
            "cheap",
            "cheapest;selected=price",
        ),
    ] {
        let (reply, offer, why) = offered(&market.gateway, fields);
        assert_eq!(
            (reply.status, &*offer, &*why),
            (200, name, decision),
            "{fields}"
        );
    }
    let (reply, ..) = offered(&market.gateway, "");
    let shown = field(&reply.head, "selected-offer").unwrap();
    assert_eq!(shown, "cheap;provider=\"ada\";price=\"0.10 eur\"");
    assert_eq!(
        metric(
            &market.gateway,
            "offer_decisions_total{route=\"/\",decision=\"selected\"}"
        ),
        1.0
    );
}

#[test]
fn an_upstream_learns_its_offer_and_not_the_terms() {
    let market = ThreeOffers::open("");
    let fields =
        "Max-Latency: 6s\r\nMax-Price: 1 EUR\r\nMin-Reliability: 50%\r\nSelected-Offer: x\r\n";
    offered(&market.gateway, fields);
    let request = market.origins[0].last_request().to_lowercase();
    assert_eq!(field(&request, "selected-offer"), Some("cheap"));
    for name in ["max-latency", "max-price", "min-reliability"] {
        assert_eq!(field(&request, name), None, "{request}");
    }
}

#[test]
fn a_soap_header_states_terms() {
    let market = ThreeOffers::open("probe = \"0s\"");
    let message = |header: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header>\
             <q:WSQoSSoapHeader xmlns:q=\"http://wsqos.org/\">{header}</q:WSQoSSoapHeader>\
             </s:Header><s:Body/></s:Envelope>"
        )
    };
    let post = |header: &str| {
        let body = message(header);
        let request = format!(
            "POST /books HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut client = TestClient::new(&market.gateway);
        client.send(request).reply(false).unwrap()
    };
    let metrics = |metrics: &str| {
        format!("<qosInfo><serverQoSMetrics>{metrics}</serverQoSMetrics></qosInfo>")
    };
    let fast = metrics("<processingTime>500</processingTime><reliability>0.9</reliability>");
    for (header, name) in [
        (fast, "dear"),
        ("<selectedOffer>middle</selectedOffer>".to_owned(), "middle"),
    ] {
        let reply = post(&header);
        let offer = field(&reply.head, "selected-offer").unwrap();
        assert!(offer.starts_with(name), "{header}: {offer}");
    }
    let reply = post(&metrics("<reliability>2</reliability>"));
    assert_eq!(reply.status, 400);
    // A fault names the offer that is adequate except for its price.
    let body = message(&metrics("<processingTime>500</processingTime>"));
    let request = format!(
        "POST /books HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nMax-Price: 0.10 EUR\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = TestClient::new(&market.gateway);
    let reply = client.send(request).reply(false).unwrap();
    let text = String::from_utf8(reply.body).unwrap();
    assert!(
        text.contains("CurrentOffer") && text.contains("dear"),
        "{text}"
    );
}

#[test]
fn terms_that_no_offer_satisfies_are_refused_with_the_reason() {
    let market = ThreeOffers::open("probe = \"0s\"");
    let (reply, ..) = offered(
        &market.gateway,
        "Max-Price: 0.15 EUR\r\nMax-Latency: 2s\r\n",
    );
    assert_eq!(reply.status, 402);
    let current = field(&reply.head, "current-offer").unwrap();
    assert_eq!(current, "middle;price=\"0.20 eur\"");
    assert!(field(&reply.head, "retry-after").is_some());
    let (reply, ..) = offered(&market.gateway, "Max-Latency: 1ms\r\n");
    assert_eq!(reply.status, 503);
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.contains("dear: promised-slow"), "{text}");
    for (fields, message) in [
        ("Max-Latency: 5\r\n", "200ms"),
        ("Max-Latency: 5ms;p=98\r\n", "200ms;p=50"),
        ("Max-Latency: 5ms\r\nMax-Latency: 6ms\r\n", "send one line"),
        ("Min-Reliability: 99.9\r\n", "99.9%"),
        ("Max-Price: cheap\r\n", "0.40 EUR"),
        ("Max-Price: 1 USD\r\n", "not in EUR"),
    ] {
        let (reply, ..) = offered(&market.gateway, fields);
        let text = String::from_utf8(reply.body).unwrap();
        assert_eq!(reply.status, 400, "{fields}");
        assert!(text.contains(message), "{text}");
    }
    assert!(
        market
            .origins
            .iter()
            .all(|origin| origin.request_count() == 0)
    );
}

/// Answers after `milliseconds`.
fn slow(milliseconds: &Arc<AtomicUsize>) -> TestOrigin {
    let milliseconds = milliseconds.clone();
    TestOrigin::start(move |line| {
        while line.request().is_some() {
            let wait = milliseconds.load(SeqCst) as u64;
            std::thread::sleep(Duration::from_millis(wait));
            line.write(OK);
        }
    })
}

#[test]
fn an_offer_that_becomes_slow_is_passed_over_and_comes_back() {
    let wait = Arc::new(AtomicUsize::new(0));
    let (cheap, dear) = (slow(&wait), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[
        TestOffer::new("cheap@0.10", "0.10", 1000, cheap.address),
        TestOffer::new("dear@0.30", "0.30", 1000, dear.address),
    ]);
    let gateway = start(config(&broker, "window = \"4s\"\nprobe = \"20ms\"", &[])).unwrap();
    wait_for_offers(&gateway, 2);
    let terms = "Max-Latency: 1s;p=50\r\n";
    assert_eq!(offered(&gateway, terms).1, "cheap@0.10");
    wait.store(1500, SeqCst);
    // Many at once, because each of them takes long.
    let passed = |decision: &str| decision == "cheapest;passed-over=\"cheap@0.10: measured-slow\"";
    let slowed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| {
                while !slowed.load(SeqCst) {
                    let (reply, name, decision) = offered(&gateway, terms);
                    assert_eq!(reply.status, 200);
                    if passed(&decision) {
                        assert_eq!(name, "dear@0.30");
                        slowed.store(true, SeqCst);
                    }
                }
            });
        }
    });
    // Without a bound on the time it is still the cheapest.
    assert_eq!(offered(&gateway, "").1, "cheap@0.10");
    wait.store(0, SeqCst);
    let mut probes = 0;
    wait_until("it has come back", || {
        let (_, name, decision) = offered(&gateway, terms);
        probes += usize::from(decision == "probe");
        (&*name, &*decision) == ("cheap@0.10", "cheapest")
    });
    let probed = metric(
        &gateway,
        "offer_decisions_total{route=\"/\",decision=\"probe\"}",
    );
    assert!(probed >= probes as f64);
    let text = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    for expected in ["Offers of /", "measured-slow", "current"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn an_offer_with_half_of_its_requests_failing_is_passed_over() {
    let bad = TestOrigin::answering("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let good = TestOrigin::answering(OK);
    let broker = TestBroker::start(&[
        TestOffer::new("bad", "0.10", 1000, bad.address),
        TestOffer::new("good", "0.30", 1000, good.address),
    ]);
    let gateway = start(config(&broker, "probe = \"0s\"", &[])).unwrap();
    wait_for_offers(&gateway, 2);
    wait_until("the failing one is passed over", || {
        let (_, name, decision) = offered(&gateway, "");
        name == "good" && decision == "cheapest;passed-over=\"bad: measured-failing\""
    });
    assert!(
        bad.request_count() >= 20,
        "the promise counts until enough is measured"
    );
    // It is better than none.
    broker.set(&[TestOffer::new("bad", "0.10", 1000, bad.address)]);
    wait_for_offers(&gateway, 1);
    assert_eq!(offered(&gateway, "").0.status, 500);
    // A stated reliability is not.
    assert_eq!(offered(&gateway, "Min-Reliability: 90%\r\n").0.status, 503);
}

#[test]
fn a_refused_connection_leads_to_the_next_offer_without_loss() {
    let (gone, middle) = (closed_port(), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[
        TestOffer::new("gone", "0.10", 1000, gone),
        TestOffer::new("gone too", "0.15", 1000, closed_port()),
        TestOffer::new("middle", "0.20", 1000, middle.address),
    ]);
    let gateway = start(config(&broker, "", &[])).unwrap();
    wait_for_offers(&gateway, 3);
    for number in 0..20 {
        let (reply, name, decision) = offered(&gateway, "");
        assert_eq!((reply.status, &*name), (200, "middle"), "{number}");
        let expected = "cheapest;passed-over=\"gone: unreachable, gone%20too: unreachable\"";
        assert_eq!(decision, expected, "{number}");
    }
    // With a body, too: nothing of it was sent.
    let request = "POST /books HTTP/1.1\r\nHost: s\r\nContent-Length: 4\r\n\r\nbody";
    let reply = TestClient::new(&gateway)
        .send(request)
        .reply(false)
        .unwrap();
    assert_eq!(reply.status, 200);
    assert!(middle.last_request().ends_with("body"));
    broker.set(&[TestOffer::new("gone", "0.10", 1000, gone)]);
    wait_for_offers(&gateway, 1);
    let status = offered(&gateway, "").0.status;
    assert!(matches!(status, 502 | 503), "{status}");
}

#[test]
fn the_last_offers_hold_and_then_the_fallback_serves() {
    let (cheap, fallback) = (TestOrigin::answering(OK), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[TestOffer::new("cheap", "0.10", 1000, cheap.address)]);
    let gateway = start(config(&broker, "hold = \"2s\"", &[fallback.address])).unwrap();
    wait_for_offers(&gateway, 1);
    broker.go_away(true);
    let state = |name: &str| {
        metric(
            &gateway,
            &format!("offers_state{{route=\"/\",state=\"{name}\"}}"),
        ) == 1.0
    };
    wait_until("the broker is missed", || !state("current"));
    let mut held = 0;
    wait_until("the offers have lapsed", || {
        let (reply, name, decision) = offered(&gateway, "Max-Price: 1 EUR\r\n");
        assert_eq!(reply.status, 200);
        match &*name {
            "cheap" => held += 1,
            _ => assert_eq!(decision, "fallback;reason=lapsed"),
        }
        name.is_empty()
    });
    assert!(held > 0, "the last offers did not hold");
    let request = fallback.last_request().to_lowercase();
    assert_eq!(field(&request, "max-price"), None, "{request}");
    broker.go_away(false);
    wait_until("the offers are back", || offered(&gateway, "").1 == "cheap");
    assert!(state("current"));
}

#[test]
fn without_offers_and_without_a_fallback_there_is_a_reason() {
    let broker = TestBroker::start(&[]);
    broker.go_away(true);
    let gateway = start(config(&broker, "", &[])).unwrap();
    let (reply, _, decision) = offered(&gateway, "");
    assert_eq!((reply.status, &*decision), (503, "none;reason=waiting"));
    assert!(field(&reply.head, "retry-after").is_some());
    broker.go_away(false);
    wait_until("it knows that there is none", || {
        offered(&gateway, "").2 == "none;reason=no-offer"
    });
}

#[test]
fn an_endpoint_that_is_not_permitted_is_never_connected_to() {
    let (inner, outer) = (TestOrigin::answering(OK), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[
        TestOffer::new("inner", "0.10", 1000, inner.address),
        TestOffer::new("outer", "0.20", 1000, outer.address),
    ]);
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\n[route.offers]\nbroker = \"http://{}\"\n\
         type = \"books\"\nallow = [\"{}\"]\n",
        broker.address, outer.address
    );
    let gateway = start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    wait_for_offers(&gateway, 1);
    for fields in ["", "Selected-Offer: inner\r\n"] {
        assert_eq!(offered(&gateway, fields).1, "outer");
    }
    assert_eq!(inner.connections.load(SeqCst), 0);
    assert_eq!(
        metric(&gateway, "offers_excluded{route=\"/\",reason=\"host\"}"),
        1.0
    );
}

#[test]
fn an_offer_is_not_used_after_its_end() {
    let (short, fallback) = (TestOrigin::answering(OK), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[]);
    let gateway = start(config(&broker, "", &[fallback.address])).unwrap();
    let expires = Timestamp::now() + SignedDuration::from_secs(5);
    broker.set(&[TestOffer {
        expires,
        ..TestOffer::new("short", "0.10", 1000, short.address)
    }]);
    wait_for_offers(&gateway, 1);
    wait_until("it has ended", || {
        let sent = Timestamp::now();
        let (reply, name, decision) = offered(&gateway, "");
        assert_eq!(reply.status, 200);
        assert!(sent < expires || name.is_empty(), "{sent} is after the end");
        decision == "fallback;reason=no-offer"
    });
    let [now, end] = [Timestamp::now(), expires].map(Timestamp::as_millisecond);
    assert!(now >= end, "it ended early");
}

#[test]
fn requests_whose_offer_ends_in_the_queue_use_the_fallback() {
    let ((short, release), fallback) = (TestOrigin::holding(), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[]);
    let one_slot = "[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1\nwait = \"60s\"\n\
                    [[protection.tier]]\nname = \"high\"\nshare = \"80%\"\nmatch = [{ headers = { X-Tier = \"high\" } }]\n\
                    [[protection.tier]]\nname = \"low\"\nshare = \"20%\"\n[trust]\nforwarded = [\"127.0.0.1\"]\n";
    let gateway = start(config(&broker, one_slot, &[fallback.address])).unwrap();
    let expires = Timestamp::now() + SignedDuration::from_secs(5);
    broker.set(&[TestOffer {
        expires,
        ..TestOffer::new("short", "0.10", 1000, short.address)
    }]);
    wait_for_offers(&gateway, 1);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get(&gateway, "/slow", "").status);
        wait_until("the slot is taken", || short.request_count() == 1);
        let waiting = scope.spawn(|| offered(&gateway, ""));
        wait_until("the other waits", || {
            metrics(&gateway)("tier_waiting{tier=\"low\"") == 1.0
        });
        assert!(Timestamp::now() < expires, "its offer holds when it comes");
        wait_until("the offer has ended", || Timestamp::now() >= expires);
        release.tell();
        assert_eq!(first.join().unwrap(), 200);
        let (reply, _, decision) = waiting.join().unwrap();
        assert_eq!(
            (reply.status, &*decision),
            (200, "fallback;reason=no-offer")
        );
    });
    assert_eq!((short.request_count(), fallback.request_count()), (1, 1));
}

#[test]
fn equal_offers_share_the_requests() {
    let origins = [(); 2].map(|()| TestOrigin::answering(OK));
    let [one, other] = origins.each_ref().map(|origin| origin.address);
    let broker = TestBroker::start(&[
        TestOffer::new("one", "0.10", 1000, one),
        TestOffer::new("other", "0.10", 1000, other),
    ]);
    let gateway = start(config(&broker, "", &[])).unwrap();
    wait_for_offers(&gateway, 2);
    for _ in 0..20 {
        assert_eq!(offered(&gateway, "").0.status, 200);
    }
    let counts = origins.each_ref().map(TestOrigin::request_count);
    assert_eq!(counts, [10, 10]);
}

#[test]
fn a_reload_keeps_the_offers_and_their_connections() {
    let origin = TestOrigin::answering(OK);
    let broker = TestBroker::start(&[TestOffer::new("cheap", "0.10", 1000, origin.address)]);
    let gateway = start(config(&broker, "", &[])).unwrap();
    wait_for_offers(&gateway, 1);
    let mut client = TestClient::new(&gateway);
    let mut ask = || {
        let reply = client
            .send("GET /books HTTP/1.1\r\nHost: s\r\n\r\n")
            .reply(false);
        reply.unwrap().status
    };
    assert_eq!(ask(), 200);
    // A new route comes first, so the order of routes changes, too.
    let mut next = config(&broker, "", &[]);
    let mut other = next.routes[0].clone();
    (other.path, other.offers) = ("/other".to_owned(), None);
    other.upstream = vec![closed_port().to_string()];
    next.routes.insert(0, other);
    gateway.reload(next).unwrap();
    for _ in 0..20 {
        assert_eq!(ask(), 200, "the offers are known at once");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(origin.connections.load(SeqCst), 1);
    // Other rules for the offers begin anew.
    gateway
        .reload(config(&broker, "providers = [\"bob\"]", &[]))
        .unwrap();
    wait_until("the provider is not listed", || ask() == 503);
}

#[test]
fn measurements_are_reported_to_the_broker() {
    let origin = TestOrigin::answering(OK);
    let broker = TestBroker::start(&[TestOffer::new("cheap@0.10", "0.10", 1000, origin.address)]);
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "pht_secret\n").unwrap();
    let report = format!(
        "report = {{ gateway = \"edge\", token = {:?} }}",
        token.path()
    );
    let gateway = start(config(&broker, &report, &[])).unwrap();
    wait_for_offers(&gateway, 1);
    wait_until("a report has arrived", || {
        offered(&gateway, "");
        !broker.reports().is_empty()
    });
    let report = &broker.reports()[0];
    let offer = &report["offers"][0];
    let text = |key: &str| offer[key].as_str().unwrap().to_owned();
    assert_eq!(
        (text("provider"), text("name")),
        ("ada".to_owned(), "cheap".to_owned())
    );
    assert_eq!(text("endpoint"), format!("http://{}", origin.address));
    assert_eq!(report["window"], 120.0);
    assert!(offer["requests"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn the_access_log_names_the_offer() {
    let origin = TestOrigin::answering(OK);
    let broker = TestBroker::start(&[TestOffer::new("cheap", "0.10", 1000, origin.address)]);
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut config = config(&broker, "", &[]);
    config.access_log = Some(log.path().to_owned());
    let gateway = start(config).unwrap();
    wait_for_offers(&gateway, 1);
    get(&gateway, "/books", "");
    let mut line = Value::Null;
    wait_until("the line is there", || {
        let text = std::fs::read_to_string(log.path()).unwrap();
        let last = text.lines().last().unwrap_or_default();
        line = serde_json::from_str(last).unwrap_or_default();
        line["offer"] == "cheap"
    });
    assert_eq!(line["upstream"], format!("http://{}", origin.address));
}

#[test]
fn names_of_endpoints_are_resolved() {
    let origin = TestOrigin::answering(OK);
    let broker = TestBroker::start(&[TestOffer {
        endpoint: format!("http://localhost:{}", origin.address.port()),
        ..TestOffer::new("named", "0.10", 1000, SocketAddr::from(([127, 0, 0, 1], 1)))
    }]);
    let gateway = start(config(&broker, "", &[])).unwrap();
    wait_until("the broker is known", || {
        offered(&gateway, "").2 == "none;reason=no-offer"
    });
    assert_eq!(
        metric(&gateway, "offers_excluded{route=\"/\",reason=\"host\"}"),
        1.0
    );
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\n[route.offers]\nbroker = \"http://{}\"\n\
         type = \"books\"\nallow = [\"localhost\"]\n",
        broker.address
    );
    gateway
        .reload(posthaste_gateway::GatewayConfig::read(&text).unwrap())
        .unwrap();
    wait_until("the name is resolved", || {
        offered(&gateway, "").1 == "named"
    });
}

#[test]
fn hanging_endpoints_are_passed_over_before_requests_end() {
    let ((hanging, release), dear) = (TestOrigin::holding(), TestOrigin::answering(OK));
    let broker = TestBroker::start(&[
        TestOffer::new("cheap", "0.10", 1000, hanging.address),
        TestOffer::new("dear", "0.30", 1000, dear.address),
    ]);
    let gateway = start(config(&broker, "probe = \"0s\"", &[])).unwrap();
    wait_for_offers(&gateway, 2);
    let request = "GET /slow HTTP/1.1\r\nHost: s\r\nMax-Latency: 1s\r\n\r\n";
    let mut clients = Vec::new();
    wait_until("requests go elsewhere", || {
        let mut client = TestClient::new(&gateway);
        client.send(request);
        clients.push(client);
        std::thread::sleep(Duration::from_millis(20));
        dear.request_count() > 0
    });
    assert!(hanging.request_count() >= 20);
    release.tell();
    for client in &mut clients {
        assert_eq!(
            client.reply(false).unwrap().status,
            200,
            "no request is lost"
        );
    }
}
