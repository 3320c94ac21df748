//! Measurements that gateways report: authentication, validation, and where they are shown.

use serde_json::{Value, json};

use crate::support::{TestBroker, send};

fn report() -> Value {
    json!({ "window": 120.0, "offers": [{
        "provider": "bob",
        "name": "Gold<b>",
        "endpoint": "http://127.0.0.1:9001",
        "requests": 40,
        "failures": 1,
        "p50": 1.5,
        "p99": null,
    }] })
}

fn put(broker: &TestBroker, path: &str, report: &Value) -> u16 {
    broker.send("PUT", path, &[], &report.to_string()).status
}

#[test]
fn a_report_is_listed_and_shown_with_its_gateway() {
    let broker = TestBroker::open();
    assert_eq!(put(&broker, "/v1/measurements/books/ada", &report()), 204);
    let listed = |query: &str| {
        let path = format!("/v1/measurements{query}");
        send(broker.broker.addr, "GET", &path, &[], "").json()
    };
    let found = &listed("?type=books")["measurements"][0];
    let texts = ["type", "gateway"].map(|key| found[key].as_str().unwrap());
    assert_eq!(texts, ["books", "ada"]);
    assert_eq!(found["offers"], report()["offers"]);
    assert!(found["age"].as_f64().unwrap() >= 0.0);
    assert_eq!(listed("")["measurements"].as_array().unwrap().len(), 1);
    assert_eq!(listed("?type=maps"), json!({ "measurements": [] }));
    let page = send(broker.broker.addr, "GET", "/status", &[], "").body;
    for words in ["Measured by gateways", "Gold&lt;b&gt;", "1.5 ms", "failure"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    // The next report replaces it.
    let empty = json!({ "window": 60.0, "offers": [] });
    assert_eq!(put(&broker, "/v1/measurements/books/ada", &empty), 204);
    assert_eq!(listed("")["measurements"][0]["window"], 60.0);
}

#[test]
fn a_report_needs_the_token_of_its_gateway_and_sense() {
    let broker = TestBroker::open();
    assert_eq!(put(&broker, "/v1/measurements/books/bob", &report()), 403);
    let path = "/v1/measurements/books/ada";
    let body = report().to_string();
    assert_eq!(
        send(broker.broker.addr, "PUT", path, &[], &body).status,
        401
    );
    let mut senseless = report();
    senseless["offers"][0]["failures"] = 41.into();
    assert_eq!(put(&broker, path, &senseless), 422);
    let mut unknown = report();
    unknown["offers"][0]["price"] = 1.into();
    assert_eq!(put(&broker, path, &unknown), 422);
    assert_eq!(broker.send("PUT", path, &[], "{").status, 400);
    assert_eq!(broker.send("POST", path, &[], "{}").status, 405);
    let listed = send(broker.broker.addr, "GET", "/v1/measurements", &[], "").json();
    assert_eq!(listed, json!({ "measurements": [] }));
}
