//! The advice in rejections, and the recovery after a load.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use posthaste_gateway::start;
use posthaste_units::Span;

use crate::priced::{DEAR, Priced, metrics};
use crate::support::{
    OK, ReceivedReply, TestClient, TestOrigin, closed_port, config, field, get, wait_until,
};

fn advice(reply: &ReceivedReply) -> u64 {
    let field = field(&reply.head, "retry-after");
    let field = field.unwrap_or_else(|| panic!("no advice in {}", reply.head));
    field.parse().unwrap()
}

#[test]
fn a_rejection_by_price_states_when_the_price_may_have_moved() {
    let shop = Priced::new("1.0", DEAR);
    shop.until(|price| price > 0.0);
    for fields in [
        "",
        "Max-Price: 0.01 EUR\r\n",
        "Max-Price: 9 USD\r\n",
        "Selected-Offer: standard@7.77\r\n",
        "Quote: AAAA\r\nMax-Price: 9 EUR\r\n",
    ] {
        let reply = shop.get(fields);
        assert_eq!(reply.status, 402, "{fields}");
        assert!(
            (1..=3).contains(&advice(&reply)),
            "{fields}: {}",
            reply.head
        );
    }
    let fault = shop.call("", "");
    assert_eq!(fault.status, 500);
    assert!((1..=3).contains(&advice(&fault)), "{}", fault.head);
}

#[test]
fn clients_rejected_together_do_not_return_together() {
    let shop = Priced::new("1.0", DEAR);
    shop.until(|price| price > 0.0);
    let seen: BTreeSet<u64> = (0..100).map(|_| advice(&shop.get(""))).collect();
    assert_eq!(seen, BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_quote_used_too_often_states_when_it_can_be_used_again() {
    let is_busy = Arc::<AtomicBool>::default();
    let busy = is_busy.clone();
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            let busy = u8::from(busy.load(SeqCst));
            line.write(format!(
                "HTTP/1.1 200 OK\r\nX-Busy: {busy}.0\r\nContent-Length: 2\r\n\r\nok"
            ));
        }
    });
    let more = format!("{DEAR}life = \"600s\"\nrate = \"1/min\"\nburst = 2\n");
    let shop = Priced::before(origin, &more);
    let quote = shop.quote("bob");
    is_busy.store(true, SeqCst);
    shop.until(|price| price > 0.9);
    let bob = || shop.get(&format!("X-Client: bob\r\nQuote: {quote}\r\n"));
    let mut reply = bob();
    for _ in 0..3 {
        reply = bob();
    }
    assert_eq!(reply.status, 429, "{}", reply.head);
    assert!((30..=90).contains(&advice(&reply)), "{}", reply.head);
}

#[test]
fn a_rejection_by_the_limit_states_the_time_of_a_reply() {
    let answers = Arc::<AtomicBool>::default();
    let may_answer = answers.clone();
    let origin = TestOrigin::start(move |line| {
        while let Some(request) = line.request() {
            if request.contains("/late") {
                thread::sleep(Duration::from_millis(3_100));
            }
            if request.contains("/slow") {
                wait_until("it may answer", || may_answer.load(SeqCst));
            }
            line.write(OK);
        }
    });
    let more = "[protection]\npolicy = \"limit\"\nleast = 1\nmost = 1\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    assert_eq!(get(&gateway, "/late", "").status, 200);
    let mut slow = TestClient::new(&gateway);
    slow.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in service", || {
        metrics(&gateway)("in_service ") == 1.0
    });
    let reply = get(&gateway, "/", "");
    assert_eq!(reply.status, 503);
    // The only reply so far took 3.1 s or, on a busy machine, longer.
    assert!((4..=60).contains(&advice(&reply)), "{}", reply.head);
    answers.store(true, SeqCst);
    assert_eq!(slow.reply(false).unwrap().status, 200);
}

#[test]
fn retry_after_covers_an_exclusion_but_not_a_failed_attempt() {
    let mut config = config(&[closed_port()], "");
    config.routes[0].health.every = Span::from_secs(60);
    config.routes[0].health.failures = 1;
    let gateway = start(config).unwrap();
    let failed = get(&gateway, "/", "");
    assert_eq!(failed.status, 502);
    assert_eq!(field(&failed.head, "retry-after"), None);
    let rejected = get(&gateway, "/", "");
    assert_eq!(rejected.status, 503);
    assert!((2..=90).contains(&advice(&rejected)), "{}", rejected.head);
}

/// With these parameters the controller alone lowers no price: the error of an idle service stays within the band.
const RISES: &str = "controller = { policy = \"proportional-integral\", target = \"5%\", band = \"10%\", memory = \"20ms\" }\n";

#[test]
fn an_idle_service_is_free_soon_after_a_load() {
    let shop = Priced::new("1.0", RISES);
    shop.until(|price| price >= 0.5);
    wait_until("the price is 0", || shop.price() == 0.0);
    assert_eq!(shop.get("").status, 200);
}

#[test]
fn a_client_that_asks_now_and_then_does_not_keep_the_price_up() {
    let shop = Priced::new("1.0", RISES);
    shop.until(|price| price >= 0.5);
    let mut refused = 0;
    wait_until("it is served", || {
        thread::sleep(Duration::from_millis(400));
        let status = shop.get("").status;
        refused += usize::from(status == 402);
        status == 200
    });
    assert!(refused > 0, "the price was 0 at once");
}

#[test]
fn a_crowd_that_is_refused_keeps_the_price_up() {
    // Replies of 50 ms: three refused requests a second would be more than a tenth of the service's time.
    let origin = TestOrigin::start(|line| {
        while line.request().is_some() {
            thread::sleep(Duration::from_millis(50));
            line.write("HTTP/1.1 200 OK\r\nX-Busy: 1.0\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let shop = Priced::before(origin, RISES);
    shop.until(|price| price >= 0.5);
    let begin = std::time::Instant::now();
    let mut last = begin;
    while begin.elapsed() < Duration::from_secs(3) {
        let status = shop.get("").status;
        // A busy machine may stop this test for as long as an end of the load takes.
        if last.elapsed() > Duration::from_millis(300) {
            return;
        }
        last = std::time::Instant::now();
        assert_eq!(status, 402);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_limit_lowered_by_a_slow_service_recovers_at_rest() {
    let is_slow = Arc::<AtomicBool>::default();
    let slow = is_slow.clone();
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            if slow.load(SeqCst) {
                thread::sleep(Duration::from_millis(600));
            }
            line.write(OK);
        }
    });
    let more = "[protection]\npolicy = \"limit\"\nstart = 1\nleast = 1\nmost = 20\n\
                limiter = { policy = \"aimd\", timeout = \"500ms\", backoff = \"10%\" }\n";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let limit = || metrics(&gateway)("service_limit{");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut client = TestClient::new(&gateway);
                while !over.load(SeqCst) {
                    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
                    client.reply(false).unwrap();
                }
            });
        }
        wait_until("the limit has grown", || limit() >= 16.0);
        is_slow.store(true, SeqCst);
        wait_until("the limit has fallen", || limit() <= 3.0);
        over.store(true, SeqCst);
    });
    wait_until("the limit has recovered", || limit() >= 7.0);
}
