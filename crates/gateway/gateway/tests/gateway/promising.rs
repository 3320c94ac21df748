//! Promises of offers compared with delivery: for the client, in metrics, and on the page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use posthaste_gateway::RunningGateway;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::priced::{DEAR, Priced, metrics, promise};
use crate::support::{TestOrigin, get, wait_until};
use crate::watching::fetch_admin;

/// Promises about the server.
const PROMISE: &str = "<serverQoSMetrics><processingTime>10000</processingTime><requestsPerSecond>0.5</requestsPerSecond><reliability>0.9</reliability><availability>0.9</availability></serverQoSMetrics>";

/// The configuration key with the promises, and the file that it names.
fn promising() -> (String, NamedTempFile) {
    let file = promise(PROMISE);
    (format!("promise = {:?}\n", file.path()), file)
}

/// The document for this client.
fn outcome(gateway: &RunningGateway, client: &str) -> Value {
    let reply = get(
        gateway,
        "/.well-known/wsqos",
        &format!("X-Client: {client}\r\n"),
    );
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn a_client_can_ask_what_became_of_what_was_promised() {
    let (more, _file) = promising();
    let shop = Priced::new("0.1", &more);
    for _ in 0..500 {
        assert_eq!(shop.get("X-Client: ann\r\n").status, 200);
    }
    let document = outcome(&shop.gateway, "ann");
    assert_eq!(document["current"]["offer"], "standard@0.00", "{document}");
    let yours = &document["you"][0];
    let kept = json!({ "processingTime": "kept", "requestsPerSecond": "kept", "reliability": "kept", "availability": "kept" });
    assert_eq!(yours["verdict"], kept, "{document}");
    let promised = json!({ "processingTime": 10000.0, "requestsPerSecond": 0.5, "reliability": 0.9, "availability": 0.9 });
    assert_eq!(yours["promised"], promised, "{document}");
    let delivered = &yours["delivered"];
    assert_eq!(
        (&delivered["reliability"], &delivered["availability"]),
        (&json!(1.0), &json!(1.0)),
        "{document}"
    );
    let time = delivered["processingTime"].as_f64().unwrap();
    assert!(time > 0.0 && time < 10_000.0, "{document}");
    assert!(yours["served"].as_u64().unwrap() >= 300, "{document}");
    assert_eq!(
        outcome(&shop.gateway, "bob")["you"],
        Value::Array(Vec::new())
    );
}

/// Prices that stay at zero while requests are rejected.
const STEADY: &str = "controller = { policy = \"steps\", period = \"1h\" }\n";

#[test]
fn promises_and_deliveries_are_compared_in_metrics_and_page() {
    let (more, _file) = promising();
    let holds = Arc::<AtomicBool>::default();
    let held = holds.clone();
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            while held.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
            line.write("HTTP/1.1 200 OK\r\nX-Busy: 0.1\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let shop = Priced::before(origin, &format!("{STEADY}{more}"));
    for _ in 0..40 {
        assert_eq!(shop.get("X-Client: ann\r\n").status, 200);
    }
    holds.store(true, Relaxed);
    std::thread::scope(|scope| {
        let limit = metrics(&shop.gateway)("service_limit{") as usize;
        for _ in 0..limit {
            scope.spawn(|| shop.get("X-Client: ann\r\n"));
        }
        wait_until("it is full", || {
            metrics(&shop.gateway)("in_service ") as usize == limit
        });
        for _ in 0..30 {
            assert_eq!(shop.get("X-Client: <eve>\r\n").status, 503);
        }
        holds.store(false, Relaxed);
    });
    let count = metrics(&shop.gateway);
    let offer = "offer=\"standard@0.00\"";
    assert_eq!(
        count(&format!(
            "offer_requests_total{{{offer},delivery=\"refused\"}}"
        )),
        30.0
    );
    assert!(
        count(&format!(
            "offer_requests_total{{{offer},delivery=\"in-time\"}}"
        )) >= 40.0
    );
    assert!(count(&format!("offer_processing_seconds_total{{{offer}}}")) > 0.0);
    let row = |key: &str, promise: &str| count(&format!("{key}{{{offer},promise=\"{promise}\"}}"));
    let promised = [
        "processingTime",
        "requestsPerSecond",
        "reliability",
        "availability",
    ]
    .map(|promise| row("offer_promised", promise));
    assert_eq!(promised, [10.0, 0.5, 0.9, 0.9]);
    // Too few requests to show 99 % in time.
    let verdicts = ["processingTime", "reliability", "availability"]
        .map(|promise| row("offer_verdict", promise));
    assert_eq!(verdicts, [0.0, 1.0, -1.0]);
    assert_eq!(count(&format!("offer_clients_let_down{{{offer}}}")), 1.0);
    assert_eq!(
        outcome(&shop.gateway, "<eve>")["you"][0]["verdict"]["availability"],
        "broken"
    );
    assert_eq!(
        outcome(&shop.gateway, "ann")["you"][0]["verdict"]["availability"],
        "kept"
    );
    let page = String::from_utf8(fetch_admin(&shop.gateway, "/status").body).unwrap();
    for expected in ["standard@0.00", "10000.0 ms", "kept", "broken"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let [eve, ann] = ["&lt;eve&gt;", ">ann<"].map(|name| page.find(name).unwrap());
    assert!(eve < ann, "to whom a promise was broken comes first");
}

#[test]
fn clients_that_decline_an_offer_have_no_broken_promise() {
    let (more, _file) = promising();
    // Other prices would fall while all requests are rejected.
    let shop = Priced::new("1.0", &format!("{DEAR}{more}"));
    shop.until(|price| price >= 0.3);
    for _ in 0..40 {
        let fields = "X-Client: ann\r\nMax-Price: 0.01 EUR\r\n";
        assert_eq!(shop.get(fields).status, 402);
    }
    assert_eq!(outcome(&shop.gateway, "ann")["you"], json!([]));
}
