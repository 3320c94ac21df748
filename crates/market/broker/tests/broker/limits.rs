//! Limits on offers and changes.

use std::time::{Duration, Instant};

use posthaste_broker::{BrokerConfig, OfferLimits};

use crate::support::{TestBroker, TestReply, offer, question, send, start, token};

fn shop(limits: OfferLimits) -> TestBroker {
    TestBroker::with(|store| BrokerConfig {
        store: store.clone(),
        limits,
        ..BrokerConfig::default()
    })
}

fn detail(reply: &TestReply) -> String {
    reply.json()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn limits_are_refused_by_name_and_existing_offers_may_change() {
    let shop = shop(OfferLimits {
        offers: 4,
        per_type: 3,
        per_provider: 2,
        ..OfferLimits::default()
    });
    let bob = format!("Authorization: Bearer {}", token(&shop.store, "bob"));
    // A broker checks for new tokens every second.
    let put = |kind: &str, name: &str| {
        let path = format!("/v1/offers/{kind}/bob/{name}");
        let body = serde_json::to_string(&offer(name, 20, 200)).unwrap();
        let begun = Instant::now();
        loop {
            let reply = send(shop.broker.addr, "PUT", &path, &[&bob], &body);
            if reply.status != 401 || begun.elapsed() > Duration::from_secs(60) {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    for name in ["Good", "Better"] {
        assert_eq!(shop.put(&offer(name, 30, 200)).status, 201);
    }
    let beyond_provider = shop.put(&offer("Best", 30, 200));
    assert_eq!(beyond_provider.status, 507);
    assert!(detail(&beyond_provider).contains("limits.per_provider"));
    assert_eq!(shop.put(&offer("Good", 29, 100)).status, 204);
    let all = serde_json::json!({ "offers": [offer("One", 1, 1), offer("Two", 2, 2)] });
    let reply = shop.send("PUT", "/v1/offers/books/ada", &[], &all.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);

    assert_eq!(put("books", "Good").status, 201);
    let beyond_type = put("books", "Better");
    assert_eq!(beyond_type.status, 507);
    assert!(detail(&beyond_type).contains("limits.per_type"));
    assert_eq!(put("films", "Good").status, 201);
    let eve = format!("Authorization: Bearer {}", token(&shop.store, "eve"));
    let body = serde_json::to_string(&offer("Good", 20, 200)).unwrap();
    let beyond_total = loop {
        let path = "/v1/offers/music/eve/Good";
        let reply = send(shop.broker.addr, "PUT", path, &[&eve], &body);
        if reply.status != 401 {
            break reply;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(beyond_total.status, 507);
    assert!(detail(&beyond_total).contains("limits.offers"));
}

#[test]
fn offers_beyond_the_memory_limit_are_refused() {
    let shop = shop(OfferLimits {
        bytes: 2_000,
        ..OfferLimits::default()
    });
    let mut long = offer("Good", 30, 200);
    long.endpoint = Some(format!("http://a/{}", "x".repeat(400)));
    let statuses = ["1", "2", "3", "4"].map(|name| {
        long.name = name.to_owned();
        shop.put(&long).status
    });
    assert_eq!(statuses, [201, 201, 201, 507]);
}

#[test]
fn a_token_has_a_quota_of_changes() {
    let shop = shop(OfferLimits {
        changes_per_minute: 3,
        ..OfferLimits::default()
    });
    let all = serde_json::json!({ "offers": [offer("One", 1, 1), offer("Two", 2, 2)] });
    let reply = shop.send("PUT", "/v1/offers/books/ada", &[], &all.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(shop.put(&offer("Good", 30, 200)).status, 201);
    let refused = shop.put(&offer("Better", 30, 200));
    assert_eq!(refused.status, 429);
    assert!(detail(&refused).contains("limits.changes_per_minute"));
    let wait: u64 = refused.field("Retry-After").unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait} s");
    let offers: Vec<_> = (1..5).map(|n| offer(&n.to_string(), n, n)).collect();
    let all = serde_json::json!({ "offers": offers });
    let reply = shop.send("PUT", "/v1/offers/books/ada", &[], &all.to_string());
    assert_eq!(reply.status, 413, "{}", reply.body);
}

/// A follower does not load a part of an upstream's offers if they exceed its limits.
#[test]
fn a_follower_takes_no_more_than_it_may() {
    let shop = TestBroker::open();
    for name in ["Good", "Better", "Best"] {
        assert_eq!(shop.put(&offer(name, 30, 200)).status, 201);
    }
    let follower = start(BrokerConfig {
        follow: Some(shop.url()),
        limits: OfferLimits {
            offers: 2,
            ..OfferLimits::default()
        },
        ..BrokerConfig::default()
    });
    let answer = || send(follower.addr, "POST", "/v1/best-offer", &[], &question(300)).json();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(send(follower.addr, "GET", "/healthz", &[], "").status, 503);
    assert!(answer()["offer"]["name"].is_null());
    let gone = shop.send("DELETE", "/v1/offers/books/ada/Good", &[], "");
    assert_eq!(gone.status, 204);
    let begun = Instant::now();
    while send(follower.addr, "GET", "/healthz", &[], "").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "not in step");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(answer()["offer"]["name"].is_string());
}
