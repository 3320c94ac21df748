//! Publishing: authentication, validation and durability.

use posthaste_qos::{Document, Offers};
use serde_json::json;

use crate::support::{TestBroker, exchange, offer, question, send, token};

#[test]
fn published_offers_can_be_read_and_withdrawn() {
    let shop = TestBroker::open();
    let good = offer("Good", 30, 200);
    let reply = shop.put(&good);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let tag = reply.field("ETag").unwrap().to_owned();
    let path = "/v1/offers/books/ada/Good";
    let got = shop.send("GET", path, &[], "");
    assert_eq!(
        (got.json(), got.field("ETag")),
        (serde_json::to_value(&good).unwrap(), Some(&*tag))
    );
    assert_eq!(shop.put(&good).status, 204);
    assert_eq!(shop.send("DELETE", path, &[], "").status, 204);
    assert_eq!(shop.send("GET", path, &[], "").status, 404);
    assert_eq!(shop.send("DELETE", path, &[], "").status, 404);
}

#[test]
fn published_offers_survive_a_restart() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    let shop = shop.reopen();
    let answer = shop
        .send("POST", "/v1/best-offer", &[], &question(300))
        .json();
    assert_eq!(answer["offer"]["name"], "Good");
}

#[test]
fn a_provider_touches_nobody_elses_offers() {
    let shop = TestBroker::open();
    let body = serde_json::to_string(&offer("Good", 30, 200)).unwrap();
    let put = |fields: &[&str]| {
        send(
            shop.broker.addr,
            "PUT",
            "/v1/offers/books/ada/Good",
            fields,
            &body,
        )
    };
    let nobody = put(&[]);
    assert_eq!(
        (nobody.status, nobody.field("WWW-Authenticate")),
        (401, Some("Bearer"))
    );
    let wrong = put(&["Authorization: Bearer pht_wrong"]);
    assert_eq!(
        (wrong.status, wrong.field("WWW-Authenticate")),
        (401, Some("Bearer error=\"invalid_token\""))
    );
    assert_eq!(put(&["Authorization: Basic YWRhOmE="]).status, 401);
    assert_eq!(
        shop.send("PUT", "/v1/offers/books/bob/Good", &[], &body)
            .status,
        403
    );
    assert_eq!(
        shop.send("DELETE", "/v1/offers/books/bob/Good", &[], "")
            .status,
        403
    );
    assert_eq!(
        shop.send("PUT", "/v1/offers/books/bob", &[], "{\"offers\": []}")
            .status,
        403
    );
}

#[test]
fn a_new_token_takes_over_without_a_gap_and_the_old_one_ends() {
    let shop = TestBroker::open();
    let second = format!("Authorization: Bearer {}", token(&shop.store, "ada"));
    let body = serde_json::to_string(&offer("Good", 30, 200)).unwrap();
    let put = |field: &str| {
        send(
            shop.broker.addr,
            "PUT",
            "/v1/offers/books/ada/Good",
            &[field],
            &body,
        )
        .status
    };
    let first = format!("Authorization: Bearer {}", shop.token);
    let until = |field: &str, wanted: fn(u16) -> bool| {
        let since = std::time::Instant::now();
        while !wanted(put(field)) {
            assert!(since.elapsed().as_secs() < 30, "the broker does not notice");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    // Made by another process a moment ago.
    assert!(put(&second) < 300);
    assert!(put(&first) < 300, "both are valid");
    posthaste_broker::Admin::open(&shop.store)
        .unwrap()
        .revoke(1)
        .unwrap();
    until(&first, |status| status == 401);
    assert!(put(&second) < 300);
}

#[test]
fn a_request_that_knows_what_is_there_undoes_nothing_else() {
    let shop = TestBroker::open();
    let put = |cents, field: &str| {
        let body = serde_json::to_string(&offer("Good", cents, 200)).unwrap();
        let reply = shop.send("PUT", "/v1/offers/books/ada/Good", &[field], &body);
        (reply.status, reply.field("ETag").map(str::to_owned))
    };
    assert_eq!(put(30, "If-Match: *").0, 412);
    let (status, first) = put(30, "If-None-Match: *");
    assert_eq!(status, 201);
    assert_eq!(put(31, "If-None-Match: *").0, 412);
    let matching = format!("If-Match: {}", first.unwrap());
    assert_eq!(put(31, &matching).0, 204);
    // A replay of the same request fails.
    assert_eq!(put(30, &matching).0, 412);
    assert_eq!(put(30, "If-Match: W/\"x\"").0, 400);
    assert_eq!(
        shop.send("DELETE", "/v1/offers/books/ada/Good", &[&matching], "")
            .status,
        412
    );
}

#[test]
fn offers_that_no_client_could_choose_are_refused() {
    let shop = TestBroker::open();
    let good = || serde_json::to_value(offer("Good", 30, 200)).unwrap();
    let with = |path: &str, value: serde_json::Value| {
        let mut offer = good();
        *offer.pointer_mut(path).unwrap() = value;
        offer.to_string()
    };
    for (body, text) in [
        (
            with("/expires", json!("2020-01-01T00:00:00Z")),
            "check the clocks",
        ),
        (
            with("/qos/price/currency", json!("XTS")),
            "the exchange rate of XTS is unknown",
        ),
        (
            with("/qos/price/amount", json!("-1")),
            "from 0 to less than 10^12",
        ),
        (
            with("/qos/price", json!(null)),
            "the offer has no price: state one",
        ),
        (with("/name", json!("Other")), "in the path"),
        (
            with(
                "/qos/defaultQoSInfo/serverQoSMetrics/processingTime",
                json!("NaN"),
            ),
            "invalid type",
        ),
    ] {
        let reply = shop.send("PUT", "/v1/offers/books/ada/Good", &[], &body);
        assert_eq!(reply.status, 422, "{body}: {}", reply.body);
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(text), "{body}: {detail}");
    }
    let coded = shop.send(
        "PUT",
        "/v1/offers/books/ada/Good",
        &["Content-Encoding: gzip"],
        "x",
    );
    assert_eq!(coded.status, 415);
    assert_eq!(
        shop.send("GET", "/v1/offers", &[], "").json(),
        json!({ "types": [] })
    );
}

#[test]
fn offers_can_be_put_together_and_the_others_are_withdrawn() {
    let shop = TestBroker::open();
    shop.put(&offer("Old", 10, 200));
    let offers = vec![offer("Gold", 40, 100), offer("Silver", 20, 300)];
    let xml = Document::Offers(Offers {
        offers,
        ..Offers::default()
    })
    .write();
    let reply = shop.send(
        "PUT",
        "/v1/offers/books/ada",
        &["Content-Type: application/xml"],
        &xml,
    );
    assert_eq!(
        (reply.status, reply.json()),
        (200, json!({ "offers": 2, "withdrawn": 1 }))
    );
    let list = shop.send("GET", "/v1/offers?type=books", &[], "").json();
    let names: Vec<&str> = list["offers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Silver", "Gold"]);
    let twice = json!({ "offers": [offer("Gold", 1, 1), offer("Gold", 2, 2)] }).to_string();
    assert!(
        shop.send("PUT", "/v1/offers/books/ada", &[], &twice)
            .body
            .contains("there twice")
    );
    let more: Vec<_> = (0..1001).map(|n| offer(&n.to_string(), 1, 1)).collect();
    assert_eq!(
        shop.send(
            "PUT",
            "/v1/offers/books/ada",
            &[],
            &json!({ "offers": more }).to_string()
        )
        .status,
        422
    );
    assert_eq!(
        shop.send("PUT", "/v1/offers/books/ada", &[], "{\"offers\": []}")
            .json()["withdrawn"],
        2
    );
}

/// The other broker checks once a second.
#[test]
fn offers_just_added_by_another_broker_are_withdrawn_too() {
    let shop = TestBroker::open();
    let other = crate::support::broker(&shop.store);
    shop.put(&offer("Gold", 40, 100));
    let token = format!("Authorization: Bearer {}", shop.token);
    let all = |offers: &[_]| {
        let text = json!({ "offers": offers }).to_string();
        let path = "/v1/offers/books/ada";
        crate::support::send(other.addr, "PUT", path, &[&token], &text).json()
    };
    let silver = offer("Silver", 20, 300);
    assert_eq!(
        all(std::slice::from_ref(&silver)),
        json!({ "offers": 1, "withdrawn": 1 })
    );
    assert_eq!(all(&[silver]), json!({ "offers": 1, "withdrawn": 0 }));
    let log = posthaste_broker::Admin::open(&shop.store).unwrap().log(9);
    assert_eq!(log.unwrap().len(), 3, "what has not changed is no change");
}

#[test]
fn an_offer_ends_when_it_says() {
    let shop = TestBroker::open();
    let mut short = offer("Short", 10, 100);
    short.expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(5);
    assert_eq!(shop.put(&short).status, 201);
    let ask = || {
        shop.send("POST", "/v1/best-offer", &[], &question(300))
            .json()["offer"]["name"]
            .clone()
    };
    while jiff::Timestamp::now() < short.expires {
        let before = jiff::Timestamp::now();
        let answer = ask();
        assert!(
            answer == "Short" || jiff::Timestamp::now() >= short.expires,
            "{answer} {before}"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(ask(), json!(null));
    assert_eq!(
        shop.send("GET", "/v1/offers/books/ada/Short", &[], "")
            .status,
        404
    );
}

#[test]
fn changes_of_offers_are_listed_with_their_tokens() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    shop.send("DELETE", "/v1/offers/books/ada/Good", &[], "");
    let log = posthaste_broker::Admin::open(&shop.store)
        .unwrap()
        .log(10)
        .unwrap();
    let changes: Vec<_> = log
        .iter()
        .map(|(token, change)| (*token, change.key.name.as_str(), change.offer.is_some()))
        .collect();
    assert_eq!(changes, [(1, "Good", false), (1, "Good", true)]);
}

/// Requests that two HTTP parsers could read differently.
#[test]
fn ambiguous_requests_are_rejected() {
    let shop = TestBroker::open();
    for (status, fields) in [
        (501, "Host: b\r\nTransfer-Encoding: x, chunked"),
        (501, "Host: b\r\nTransfer-Encoding: chunked, chunked"),
        (
            400,
            "Host: b\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6",
        ),
        (400, "Host: a..b\r\nContent-Length: 5"),
        (417, "Host: b\r\nExpect: 200-ok\r\nContent-Length: 5"),
        (400, "Content-Length: 5"),
    ] {
        let request = format!("POST /v1/best-offer HTTP/1.1\r\n{fields}\r\n\r\n0\r\n\r\n");
        let reply = exchange(shop.broker.addr, &request);
        assert_eq!(reply.status, status, "{request}");
    }
}

#[test]
fn a_backup_of_a_store_in_use_has_all_that_was_acknowledged() {
    let shop = TestBroker::open();
    assert!(shop.put(&offer("Good", 30, 200)).status < 300);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    posthaste_broker::Admin::backup(&shop.store, &copy).unwrap();
    assert!(shop.put(&offer("Later", 30, 200)).status < 300);
    let again = posthaste_broker::Admin::backup(&shop.store, &copy).unwrap_err();
    assert!(again.to_string().contains("copy.db"), "{again}");
    let store = posthaste_broker::StoreUrl::Sqlite(copy);
    let restored = crate::support::broker(&store);
    let field = format!("Authorization: Bearer {}", shop.token);
    let get = |name: &str| {
        let path = format!("/v1/offers/books/ada/{name}");
        send(restored.addr, "GET", &path, &[&field], "").status
    };
    assert_eq!((get("Good"), get("Later")), (200, 404));
    let body = serde_json::to_string(&offer("New", 30, 200)).unwrap();
    let put = send(
        restored.addr,
        "PUT",
        "/v1/offers/books/ada/New",
        &[&field],
        &body,
    );
    assert!(put.status < 300, "the token is in the copy");
}
