//! Changes of the protection while requests are in service.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use posthaste_gateway::{GatewayConfig, GatewayError, RunningGateway, start};
use tempfile::NamedTempFile;

use crate::priced::{DEAR, metrics};
use crate::support::{OK, TestClient, TestOrigin, closed_port, config, field, get, wait_until};
use crate::watching::fetch_admin;

const PAYS: &str = "Max-Price: 1000 EUR\r\n";

fn in_service(gateway: &RunningGateway) -> f64 {
    metrics(gateway)("in_service ")
}

fn limits(least: u32, most: u32) -> String {
    format!("[protection]\npolicy = \"limit\"\nleast = {least}\nmost = {most}\n")
}

/// Sends a request for `path` and returns its client.
fn ask(gateway: &RunningGateway, path: &str) -> TestClient {
    let mut client = TestClient::new(gateway);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: s\r\n{PAYS}\r\n"));
    client
}

#[test]
fn requests_in_service_count_for_the_new_limit() {
    let (origin, release) = TestOrigin::holding();
    let gateway = start(config(&[origin.address], &limits(2, 2))).unwrap();
    let mut first = [ask(&gateway, "/slow"), ask(&gateway, "/slow")];
    wait_until("two are in service", || in_service(&gateway) == 2.0);
    gateway
        .reload(config(&[origin.address], &limits(1, 9)))
        .unwrap();
    assert_eq!(metrics(&gateway)("service_limit{"), 2.0, "the limit stays");
    assert_eq!(in_service(&gateway), 2.0);
    assert_eq!(get(&gateway, "/", "").status, 503);
    gateway
        .reload(config(&[origin.address], &limits(1, 1)))
        .unwrap();
    assert_eq!(metrics(&gateway)("service_limit{"), 1.0);
    gateway
        .reload(config(&[origin.address], &limits(3, 3)))
        .unwrap();
    let mut third = ask(&gateway, "/slow");
    wait_until("three are in service", || in_service(&gateway) == 3.0);
    assert_eq!(get(&gateway, "/", "").status, 503);
    release.tell();
    for client in first.iter_mut().chain([&mut third]) {
        assert_eq!(client.reply(false).unwrap().status, 200);
    }
    wait_until("all have ended", || in_service(&gateway) == 0.0);
}

const POLICIES: [(&str, &str); 4] = [
    ("none", ""),
    (
        "rate",
        "[protection]\npolicy = \"rate\"\nrate = \"1000/s\"\nburst = 1000\n",
    ),
    ("limit", "[protection]\npolicy = \"limit\"\nleast = 50\n"),
    (
        "prices",
        "[protection]\npolicy = \"prices\"\nleast = 50\n[prices]\nevery = \"20ms\"\n",
    ),
];

#[test]
fn the_policy_changes_in_every_direction() {
    let release = Arc::new(AtomicUsize::new(0));
    let released = release.clone();
    let origin = TestOrigin::start(move |line| {
        while let Some(request) = line.request() {
            let round = request.split(['/', ' ']).nth(2).unwrap().to_owned();
            if request.contains("/slow") {
                wait_until("it may answer", || {
                    released.load(SeqCst) > round[1..].parse().unwrap()
                });
            }
            line.write(OK);
        }
    });
    // The path shows which configuration the thread has.
    let configured = |policy: &str, path: &str| {
        let mut config = config(&[origin.address], policy);
        config.routes[0].path = path.to_owned();
        config
    };
    let gateway = start(configured("", "/p")).unwrap();
    let reload = |policy: &str, path: &str| {
        gateway.reload(configured(policy, path)).unwrap();
        wait_until("the thread has the configuration", || {
            get(&gateway, path, PAYS).status == 200
        });
        wait_until("nothing is in service", || {
            in_service(&gateway) == 0.0 || path.starts_with("/n")
        });
    };
    let mut round = 0;
    for (from, before) in POLICIES {
        for (to, after) in POLICIES {
            let (old, new) = (format!("/o{round}"), format!("/n{round}"));
            reload(before, &old);
            let seen = origin.request_count();
            let mut under_way = ask(&gateway, &format!("{old}/slow"));
            wait_until("it has reached the upstream", || {
                origin.request_count() > seen
            });
            reload(after, &new);
            let counted = if from == "none" { 0.0 } else { 1.0 };
            wait_until("only the slow one is in service", || {
                in_service(&gateway) == counted
            });
            round += 1;
            release.store(round, SeqCst);
            let reply = under_way.reply(false).unwrap();
            assert_eq!(reply.status, 200, "from {from} to {to}");
            wait_until("it has left", || in_service(&gateway) == 0.0);
            let reply = get(&gateway, &new, PAYS);
            assert_eq!(reply.status, 200, "from {from} to {to}");
            let has_price = field(&reply.head, "price").is_some();
            assert_eq!(has_price, to == "prices", "from {from} to {to}");
            let forwarded = origin.last_request().to_lowercase();
            assert_eq!(
                forwarded.contains("max-price"),
                to != "prices",
                "from {from} to {to}"
            );
        }
    }
}

#[test]
fn no_request_is_lost_while_the_policy_changes_all_the_time() {
    let (origin, _) = TestOrigin::holding();
    let gateway = Arc::new(start(config(&[origin.address], "")).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (gateway, over) = (gateway.clone(), over.clone());
            thread::spawn(move || {
                let mut client = TestClient::new(&gateway);
                let mut replies = 0;
                while replies < 20 || !over.load(SeqCst) {
                    client.send(format!("GET / HTTP/1.1\r\nHost: s\r\n{PAYS}\r\n"));
                    assert_eq!(client.reply(false).unwrap().status, 200);
                    replies += 1;
                }
            })
        })
        .collect();
    for round in 0..60 {
        // Every pair of policies comes up, since 4 and 5 have no common factor.
        let (_, policy) = POLICIES[(round + round / 4) % 4];
        gateway.reload(config(&[origin.address], policy)).unwrap();
        thread::sleep(Duration::from_millis(3));
    }
    over.store(true, SeqCst);
    for client in clients {
        client.join().unwrap();
    }
    wait_until("nothing is in service", || in_service(&gateway) == 0.0);
}

#[test]
fn a_reload_fills_no_bucket() {
    let (origin, _) = TestOrigin::holding();
    let rate = |rate: &str, burst: u32| {
        let more = format!("[protection]\npolicy = \"rate\"\nrate = \"{rate}\"\nburst = {burst}\n");
        config(&[origin.address], &more)
    };
    let gateway = start(rate("1/h", 3)).unwrap();
    let statuses = || [0; 4].map(|_| get(&gateway, "/", "").status);
    assert_eq!(statuses(), [200, 200, 200, 429]);
    for (per, burst) in [("1/h", 3), ("2/h", 3), ("1/h", 50), ("1/h", 1)] {
        gateway.reload(rate(per, burst)).unwrap();
        assert_eq!(statuses(), [429; 4], "{per}, {burst} at once");
    }
    // At this rate, the three that are missing come back at once.
    gateway.reload(rate("1000/s", 3)).unwrap();
    wait_until("requests are admitted again", || {
        get(&gateway, "/", "").status == 200
    });
}

/// The text of a configuration with prices that follow an upstream's report.
fn priced(prices: &str) -> String {
    format!(
        "[demand]\nwatch = {{ upstream = \"X-Busy\" }}\n[trust]\nforwarded = [\"127.0.0.0/8\"]\n\
         [protection]\npolicy = \"prices\"\nclient = \"X-Client\"\n[prices]\nevery = \"20ms\"\ncapacity = \"100/s\"\n{prices}"
    )
}

/// An upstream that reports itself busy once it is told.
fn reporting() -> (TestOrigin, Arc<AtomicBool>) {
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
    (origin, is_busy)
}

fn price(gateway: &RunningGateway) -> f64 {
    metrics(gateway)("price ")
}

fn until_expensive(gateway: &RunningGateway) {
    wait_until("the price has risen", || {
        get(gateway, "/", PAYS);
        price(gateway) >= 1.0
    });
}

#[test]
fn price_quotes_and_key_outlive_a_change_of_prices() {
    let (origin, is_busy) = reporting();
    let terms = format!("{DEAR}life = \"600s\"\nrate = \"1/min\"\nburst = 9\n");
    let with = |more: &str| config(&[origin.address], &priced(&format!("{terms}{more}")));
    let gateway = start(with("")).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\nX-Client: bob\r\nMax-Price: 0 EUR\r\n\r\n";
    let reply = String::from_utf8(TestClient::new(&gateway).send(request).rest()).unwrap();
    let quote = field(&reply, "quote").expect("a quote");
    let bob = format!(
        "X-Client: bob\r\nQuote: {}\r\n",
        quote.split(';').next().unwrap()
    );
    is_busy.store(true, SeqCst);
    until_expensive(&gateway);
    gateway
        .reload(with(
            "offer = \"gold\"\ndiscount = \"20%\"\nmost_rate = \"99/s\"\n",
        ))
        .unwrap();
    assert_eq!(price(&gateway), 1.0);
    let refused = get(&gateway, "/", "");
    assert_eq!(refused.status, 402);
    let offer = field(&refused.head, "current-offer").unwrap();
    assert!(offer.starts_with("gold@1.00"), "{offer}");
    let served = get(&gateway, "/", &bob);
    assert_eq!(
        (served.status, field(&served.head, "price")),
        (200, Some("0.00 eur"))
    );
    // Published offers can still be selected.
    assert_eq!(
        get(&gateway, "/", "Selected-Offer: standard@1.00\r\n").status,
        200
    );
    // Another limiter, another interval: nothing of the market changes.
    let mut other = with("offer = \"gold\"\n");
    other.protection.most = 77;
    other.prices.as_mut().unwrap().every = "30ms".parse().unwrap();
    gateway.reload(other).unwrap();
    assert_eq!(get(&gateway, "/", &bob).status, 200);
    assert_eq!(price(&gateway), 1.0);
    // Quotes of another currency end.
    is_busy.store(false, SeqCst);
    gateway.reload(with("currency = \"USD\"\n")).unwrap();
    let by_quote = || metrics(&gateway)("entered_total{by=\"quote\"}");
    let before = by_quote();
    get(&gateway, "/", &bob);
    assert_eq!(by_quote(), before);
}

#[test]
fn the_price_loop_starts_stops_and_starts_again() {
    let (origin, is_busy) = reporting();
    is_busy.store(true, SeqCst);
    let watched = "[demand]\nwatch = { upstream = \"X-Busy\" }\n";
    let none = || config(&[origin.address], watched);
    let gateway = start(none()).unwrap();
    for _ in 0..2 {
        gateway
            .reload(config(&[origin.address], &priced(DEAR)))
            .unwrap();
        until_expensive(&gateway);
        gateway.reload(none()).unwrap();
        wait_until("the thread has the configuration", || {
            get(&gateway, "/", "").status == 200
        });
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        assert!(!text.contains("posthaste_gateway_price "), "{text}");
        for _ in 0..5 {
            let reply = get(&gateway, "/", "");
            assert_eq!((reply.status, field(&reply.head, "price")), (200, None));
        }
    }
}

#[test]
fn another_broker_gets_the_offers_from_then_on() {
    let (origin, _) = reporting();
    let mut token = NamedTempFile::new().unwrap();
    token.write_all(b"secret").unwrap();
    let broker = || TestOrigin::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let (first, second) = (broker(), broker());
    let at = |broker: &TestOrigin| {
        let table = format!(
            "life = \"40ms\"\n[prices.broker]\nurl = \"http://{}/\"\ntype = \"shop\"\nprovider = \"p\"\ntoken = {:?}\n",
            broker.address,
            token.path()
        );
        config(&[origin.address], &priced(&table))
    };
    let gateway = start(at(&first)).unwrap();
    wait_until("the first has offers", || first.request_count() > 2);
    assert_eq!(second.request_count(), 0);
    gateway.reload(at(&second)).unwrap();
    wait_until("the second has offers", || second.request_count() > 2);
    let before = first.request_count();
    let from = second.request_count();
    wait_until("the second has more", || second.request_count() > from + 5);
    assert_eq!(first.request_count(), before);
}

#[test]
fn an_error_leaves_everything_as_it_was() {
    let (origin, _) = TestOrigin::holding();
    let gateway = start(config(&[origin.address], &limits(7, 7))).unwrap();
    let stays = || {
        assert_eq!(metrics(&gateway)("service_limit{"), 7.0);
        assert_eq!(field(&get(&gateway, "/", "").head, "price"), None);
    };
    for more in [
        "promise = \"/nonexistent\"\n",
        "[prices.broker]\nurl = \"http://127.0.0.1:9/\"\ntype = \"t\"\nprovider = \"p\"\ntoken = \"/nonexistent\"\n",
    ] {
        let other = config(
            &[origin.address],
            &format!("[protection]\npolicy = \"prices\"\nleast = 9\n[prices]\n{more}"),
        );
        let error = gateway.reload(other).unwrap_err();
        assert!(matches!(error, GatewayError::Resolve(_)), "{error}");
        stays();
    }
    let mut other = config(&[origin.address], &limits(9, 9));
    other.threads = 2;
    gateway.reload(other).unwrap_err();
    stays();
}

#[test]
fn every_key_that_needs_a_restart_is_refused_by_name() {
    let (origin, _) = TestOrigin::holding();
    let first = config(&[origin.address], "");
    let gateway = start(first.clone()).unwrap();
    let other = |key: &str, change: &dyn Fn(&mut GatewayConfig)| {
        let mut other = first.clone();
        change(&mut other);
        // A key that may change does not hide it.
        other.protection.least = 9;
        match gateway.reload(other) {
            Err(GatewayError::Fixed(named)) => assert_eq!(named, key),
            outcome => panic!("{key}: {outcome:?}"),
        }
    };
    let port = closed_port();
    let second = posthaste_units::Span::from_secs(1);
    other("admin", &|config| config.admin = port);
    other("listen", &|config| config.listen = port);
    other("access_log", &|config| {
        config.access_log = Some("/tmp/none".into())
    });
    other("threads", &|config| config.threads = 2);
    other("cpus", &|config| config.cpus = vec![0]);
    other("backlog", &|config| config.backlog = 7);
    other("connections", &|config| config.connections = Some(7));
    other("timeouts.idle", &|config| config.timeouts.idle = second);
    other("timeouts.head", &|config| config.timeouts.head = second);
    other("timeouts.body", &|config| config.timeouts.body = second);
    other("timeouts.write", &|config| config.timeouts.write = second);
    other("timeouts.grace", &|config| {
        config.timeouts.grace = second * 7
    });
    let table = |key: &str, table: &str| {
        let with = config(&[origin.address], table);
        other(key, &|config| {
            config.tls.clone_from(&with.tls);
            config.traces.clone_from(&with.traces);
            config.demand.clone_from(&with.demand);
        });
    };
    table("tls", "[tls]\ncertificate = \"/a\"\nkey = \"/b\"\n");
    table("traces", "[traces]\ncollector = \"http://127.0.0.1:9/\"\n");
    table("demand", "[demand]\nwatch = { cores = [0] }\n");
    gateway.reload(first.clone()).unwrap();
}
