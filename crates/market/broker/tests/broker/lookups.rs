//! Lookups.

use posthaste_broker_client::{BestOfferQuery, BrokerClient};
use serde_json::json;

use crate::support::{TestBroker, offer, question, send};

#[test]
fn the_cheapest_that_is_enough_is_the_answer() {
    let shop = TestBroker::open();
    for (name, cents, milliseconds) in [("Slow", 10, 900), ("Good", 30, 200), ("Better", 40, 100)] {
        assert_eq!(shop.put(&offer(name, cents, milliseconds)).status, 201);
    }
    let reply = shop.send("POST", "/v1/best-offer", &[], &question(300));
    assert_eq!(reply.status, 200);
    let answer = reply.json();
    assert_eq!(
        (&answer["provider"], &answer["offer"]["name"]),
        (&json!("ada"), &json!("Good"))
    );
    assert_eq!(reply.field("Age"), None);
}

#[test]
fn a_lookup_without_a_result_states_all_objections() {
    let shop = TestBroker::open();
    shop.put(&offer("Slow", 10, 900));
    shop.put(&offer("Slower", 20, 950));
    let answer = shop
        .send("POST", "/v1/best-offer", &[], &question(300))
        .json();
    assert_eq!(answer["offer"], json!(null));
    assert_eq!(answer["considered"], 2);
    let text = "processing time: 900ms offered, at most 300ms wanted";
    assert_eq!(
        answer["reasons"][0],
        json!({ "provider": "ada", "name": "Slow", "objections": [text] })
    );
    assert_eq!(answer["reasons"][1]["name"], "Slower");
    let nothing = shop
        .send(
            "POST",
            "/v1/best-offer",
            &[],
            &json!({ "type": "maps" }).to_string(),
        )
        .json();
    assert_eq!(
        (&nothing["considered"], &nothing["reasons"]),
        (&json!(0), &json!(null))
    );
}

/// Every default requirement is missing in every operation: the text grows with the product of both.
#[test]
fn objections_in_a_reply_are_bounded() {
    let shop = TestBroker::open();
    for name in ["One", "Two"] {
        shop.put(&offer(name, 10, 100));
    }
    let term = |n: usize| json!({ "name": format!("{n:0>400}"), "ontology": "http://x" });
    let group = json!({ "protocol": (0..32).map(term).collect::<Vec<_>>(), "requires": "all" });
    let name = |n: usize| (format!("operation{n}"), json!({}));
    let operations: serde_json::Map<_, _> = (0..128).map(name).collect();
    let qos = json!({
        "defaultQoSInfo": { "securityAndTransaction": [group.clone(), group] },
        "operationQoSInfo": operations,
    });
    let question = json!({ "type": "books", "requirements": { "qos": qos } }).to_string();
    let reply = shop.send("POST", "/v1/best-offer", &[], &question);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    let objections = |n: usize| answer["reasons"][n]["objections"].as_array().unwrap();
    assert!(
        objections(0).len() > 1 && objections(1).len() == 1,
        "{}",
        reply.body.len()
    );
    assert!([0, 1].map(|n| objections(n).last().unwrap()) == ["and more"; 2]);
    assert!(reply.body.len() < 70 << 10, "{}", reply.body.len());
}

#[test]
fn the_best_can_be_chosen_by_weights() {
    let shop = TestBroker::open();
    shop.put(&offer("Cheap", 10, 500));
    shop.put(&offer("Fast", 11, 10));
    let ask = |ranking| {
        let question =
            json!({ "type": "books", "requirements": { "qos": {} }, "ranking": ranking });
        shop.send("POST", "/v1/best-offer", &[], &question.to_string())
            .json()["offer"]["name"]
            .clone()
    };
    assert_eq!(ask(json!({ "weighted": { "processingTime": 1 } })), "Fast");
    assert_eq!(ask(json!({ "weighted": { "price": 1 } })), "Cheap");
    assert_eq!(ask(json!("skyline")), "Cheap");
}

#[test]
fn lists_can_be_read_in_pages() {
    let shop = TestBroker::open();
    for n in 0..5 {
        shop.put(&offer(&format!("n{n}"), 50 - n, 100));
    }
    let names = |path: &str| {
        let list = shop.send("GET", path, &[], "").json();
        let offers = list["offers"].as_array().unwrap().clone();
        offers
            .iter()
            .map(|offer| offer["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("/v1/offers?type=books&limit=2"), ["n4", "n3"]);
    assert_eq!(names("/v1/offers?type=books&limit=2&offset=4"), ["n0"]);
    assert_eq!(
        shop.send("GET", "/v1/offers", &[], "").json(),
        json!({ "types": ["books"] })
    );
    assert_eq!(shop.send("GET", "/v1/offers?limit=x", &[], "").status, 400);
}

#[test]
fn questions_that_make_no_sense_are_refused_with_the_place() {
    let shop = TestBroker::open();
    for (body, status, text) in [
        ("{", 400, "line 1"),
        ("{\"typ\": \"books\"}", 422, "unknown field `typ`"),
        ("{\"type\": \"\"}", 400, "have names"),
        (
            "{\"type\": \"b\", \"ranking\": \"dearest\"}",
            422,
            "unknown variant",
        ),
        (&question(0).replace(":0}", ":-1}"), 422, "not negative"),
        (
            &question(0).replace(":0}", ":1e999}"),
            400,
            "number out of range",
        ),
    ] {
        let reply = shop.send("POST", "/v1/best-offer", &[], body);
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(text), "{body}: {detail}");
    }
    let reply = shop.send("DELETE", "/v1/best-offer", &[], "");
    assert_eq!((reply.status, reply.field("Allow")), (405, Some("POST")));
    let huge = " ".repeat(300 << 10);
    assert_eq!(
        send(shop.broker.addr, "POST", "/v1/best-offer", &[], &huge).status,
        413
    );
}

#[test]
fn the_client_asks_and_lists() {
    let shop = TestBroker::open();
    let client = BrokerClient::new(&shop.url())
        .unwrap()
        .with_token(Some(shop.token.clone()));
    let good = offer("Good value, 100 %", 30, 200);
    posthaste_broker_client::wait(client.put("books", "ada", &good))
        .unwrap()
        .unwrap();
    let question = BestOfferQuery {
        kind: "books".to_owned(),
        ..BestOfferQuery::default()
    };
    let answer = posthaste_broker_client::wait(client.best_offer(&question))
        .unwrap()
        .unwrap();
    assert_eq!(answer.offer.unwrap().name, "Good value, 100 %");
    let listed = posthaste_broker_client::wait(client.list("books", 0, 10))
        .unwrap()
        .unwrap();
    assert_eq!((listed.len(), &*listed[0].provider), (1, "ada"));
    assert_eq!(
        posthaste_broker_client::wait(client.types(0, 10))
            .unwrap()
            .unwrap(),
        ["books"]
    );
    posthaste_broker_client::wait(client.withdraw("books", "ada", "Good value, 100 %"))
        .unwrap()
        .unwrap();
    let again = posthaste_broker_client::wait(client.withdraw("books", "ada", "Good value, 100 %"))
        .unwrap();
    assert_eq!(
        again.unwrap_err().to_string(),
        "refused: there is no such offer (404)"
    );
}

#[test]
fn pages_and_counters_are_there_for_those_who_watch() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    shop.send("POST", "/v1/best-offer", &[], &question(300));
    let page = shop.send("GET", "/status", &[], "");
    assert_eq!(page.field("refresh"), Some("15"));
    let page = page.body;
    for text in [
        "1 offer of 1 type",
        "In step",
        ">Good<",
        "0.30 EUR",
        "at most 200ms",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let open = ["Accept: application/openmetrics-text"];
    let metrics = shop.send("GET", "/metrics", &open, "").body;
    for line in [
        "posthaste_broker_questions_total{answer=\"offer\"} 1.0",
        "posthaste_broker_offers 1.0",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert_eq!(shop.send("GET", "/healthz", &[], "").body, "ok\n");
    assert_eq!(
        shop.send("GET", "/openapi.json", &[], "").json()["openapi"],
        "3.1.0"
    );
}
