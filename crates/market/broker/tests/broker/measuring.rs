//! Measurements that gateways report: authentication, validation, and where they are shown.

use posthaste_broker::{Admin, BrokerConfig, TokenRole};
use serde_json::{Value, json};

use crate::support::{TestBroker, TestReply, send};

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

/// A broker, and the token of the gateway `edge`.
struct Measured {
    broker: TestBroker,
    token: String,
}

impl Measured {
    fn open() -> Self {
        let mut token = None;
        let broker = TestBroker::with(|store| {
            let mut admin = Admin::open(store).unwrap();
            let made = admin.make_token_for(TokenRole::Gateway, "edge").unwrap();
            token = Some(made.1);
            BrokerConfig {
                store: store.clone(),
                ..BrokerConfig::default()
            }
        });
        let token = token.unwrap();
        Self { broker, token }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TestReply {
        let field = format!("Authorization: Bearer {}", self.token);
        send(self.broker.broker.addr, method, path, &[&field], body)
    }

    fn put(&self, path: &str, report: &Value) -> u16 {
        self.send("PUT", path, &report.to_string()).status
    }

    fn get(&self, path: &str) -> TestReply {
        send(self.broker.broker.addr, "GET", path, &[], "")
    }
}

#[test]
fn a_report_is_listed_and_shown_with_its_gateway() {
    let broker = Measured::open();
    assert_eq!(broker.put("/v1/measurements/books/edge", &report()), 204);
    let listed = |query: &str| broker.get(&format!("/v1/measurements{query}")).json();
    let found = &listed("?type=books")["measurements"][0];
    let texts = ["type", "gateway"].map(|key| found[key].as_str().unwrap());
    assert_eq!(texts, ["books", "edge"]);
    assert_eq!(found["offers"], report()["offers"]);
    assert!(found["age"].as_f64().unwrap() >= 0.0);
    assert_eq!(listed("")["measurements"].as_array().unwrap().len(), 1);
    assert_eq!(listed("?type=maps"), json!({ "measurements": [] }));
    let page = broker.get("/status").body;
    for text in ["Measured by gateways", "Gold&lt;b&gt;", "1.5 ms", "failure"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    // The next report replaces it.
    let empty = json!({ "window": 60.0, "offers": [] });
    assert_eq!(broker.put("/v1/measurements/books/edge", &empty), 204);
    assert_eq!(listed("")["measurements"][0]["window"], 60.0);
}

#[test]
fn a_report_needs_the_token_of_its_gateway_and_sense() {
    let broker = Measured::open();
    assert_eq!(broker.put("/v1/measurements/books/bob", &report()), 403);
    let path = "/v1/measurements/books/edge";
    let body = report().to_string();
    let unnamed = send(broker.broker.broker.addr, "PUT", path, &[], &body);
    assert_eq!(unnamed.status, 401);
    // The token of a provider.
    assert_eq!(broker.broker.send("PUT", path, &[], &body).status, 403);
    let mut senseless = report();
    senseless["offers"][0]["failures"] = 41.into();
    assert_eq!(broker.put(path, &senseless), 422);
    let mut unknown = report();
    unknown["offers"][0]["price"] = 1.into();
    assert_eq!(broker.put(path, &unknown), 422);
    assert_eq!(broker.send("PUT", path, "{").status, 400);
    assert_eq!(broker.send("POST", path, "{}").status, 405);
    let listed = broker.get("/v1/measurements").json();
    assert_eq!(listed, json!({ "measurements": [] }));
}
