//! Exclusion of addresses that fail or are slow, and their return.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::support::{TestClient, TestOrigin, config, get, wait_until};
use crate::watching::{fetch_admin, value};

/// An upstream with a status and a response time that the test changes.
struct Scripted {
    origin: TestOrigin,
    status: Arc<AtomicU16>,
    millis: Arc<AtomicU64>,
}

impl Scripted {
    fn start(status: u16) -> Self {
        let status = Arc::new(AtomicU16::new(status));
        let millis = Arc::<AtomicU64>::default();
        let (now, time) = (status.clone(), millis.clone());
        let origin = TestOrigin::start(move |line| {
            while line.request().is_some() {
                std::thread::sleep(Duration::from_millis(time.load(SeqCst)));
                let status = now.load(SeqCst);
                if status == 0 {
                    // No reply.
                    return;
                }
                line.write(format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nok"
                ));
            }
        });
        Self {
            origin,
            status,
            millis,
        }
    }

    fn request_count(&self) -> usize {
        self.origin.request_count()
    }
}

fn configured(upstreams: &[&Scripted], rules: &str) -> GatewayConfig {
    let addresses: Vec<_> = upstreams.iter().map(|one| one.origin.address).collect();
    let mut config = config(&addresses, "[timeouts]\nreply = \"500ms\"");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:1\"]\n[route.ejection]\n{rules}"
    );
    let with_rules = GatewayConfig::read(&text).unwrap();
    config.routes[0].ejection = with_rules.routes[0].ejection.clone();
    config
}

fn gateway(upstreams: &[&Scripted], rules: &str) -> RunningGateway {
    start(configured(upstreams, rules)).unwrap()
}

fn ejections(gateway: &RunningGateway, outcome: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    let start = format!("posthaste_gateway_ejections_total{{outcome=\"{outcome}\"}}");
    value(&text, &start)
}

/// The states of the upstreams in `/status.json`, in their order.
fn states(gateway: &RunningGateway) -> Vec<String> {
    let document: serde_json::Value =
        serde_json::from_slice(&fetch_admin(gateway, "/status.json").body).unwrap();
    let rows = document["upstreams"].as_array().unwrap().iter();
    rows.map(|row| {
        assert_eq!(row["addresses"][0]["state"], row["state"]);
        row["state"].as_str().unwrap().to_owned()
    })
    .collect()
}

/// The statuses of `count` requests, each on a connection of its own.
fn statuses(gateway: &RunningGateway, count: usize) -> Vec<u16> {
    (0..count).map(|_| get(gateway, "/", "").status).collect()
}

#[test]
fn an_address_that_fails_in_a_row_is_ejected_for_a_time() {
    let (bad, well) = (Scripted::start(500), Scripted::start(200));
    let gateway = gateway(&[&bad, &well], "failures = 3\ntime = \"2s\"");
    statuses(&gateway, 6);
    assert_eq!(bad.request_count(), 3);
    let ejected = Instant::now();
    assert_eq!(states(&gateway), ["ejected", "up"]);
    assert_eq!(ejections(&gateway, "failures"), 1.0);
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    let cell = "<td class=\"ejected\">ejected</td>";
    assert!(page.contains(cell), "{page}");
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let up = format!(
        "posthaste_gateway_upstream_up{{route=\"/\",upstream=\"{}\"}}",
        bad.origin.address
    );
    assert_eq!(value(&text, &up), 0.0);
    let replies = statuses(&gateway, 10);
    if ejected.elapsed() < Duration::from_secs(1) {
        assert_eq!(replies, [200; 10]);
        assert_eq!(bad.request_count(), 3);
    }
    bad.status.store(200, SeqCst);
    wait_until("it is asked again", || {
        get(&gateway, "/", "");
        bad.request_count() > 3
    });
    assert!(ejected.elapsed() > Duration::from_millis(1900));
    assert_eq!(states(&gateway), ["up", "up"]);
}

#[test]
fn a_success_ends_a_row_of_failures() {
    let (bad, well) = (Scripted::start(500), Scripted::start(200));
    let gateway = gateway(&[&bad, &well], "failures = 3\ntime = \"1h\"");
    for _ in 0..3 {
        bad.status.store(500, SeqCst);
        statuses(&gateway, 4);
        bad.status.store(200, SeqCst);
        statuses(&gateway, 2);
    }
    assert_eq!(bad.request_count(), 9);
    assert_eq!(ejections(&gateway, "failures"), 0.0);
}

#[test]
fn upstream_failures_eject_and_client_errors_do_not() {
    for (status, millis, failure) in [(0, 0, 502), (200, 2000, 504)] {
        let (bad, well) = (Scripted::start(status), Scripted::start(200));
        bad.millis.store(millis, SeqCst);
        let gateway = gateway(&[&bad, &well], "failures = 2\ntime = \"1h\"");
        let mut seen = statuses(&gateway, 8);
        seen.sort_unstable();
        assert_eq!(seen, [&[200; 6][..], &[failure; 2]].concat());
        assert_eq!(states(&gateway)[0], "ejected");
    }
    let well = [Scripted::start(200), Scripted::start(404)];
    let gateway = gateway(&[&well[0], &well[1]], "failures = 1\ntime = \"1h\"");
    statuses(&gateway, 4);
    for _ in 0..4 {
        let mut client = TestClient::new(&gateway);
        let head = "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n";
        let reply = client.send(head).reply(false);
        assert!(reply.is_none_or(|reply| reply.status == 400));
    }
    assert_eq!(ejections(&gateway, "failures"), 0.0);
    assert_eq!(states(&gateway), ["up", "up"]);
}

#[test]
fn the_share_and_the_last_address_limit_what_is_ejected() {
    let all = [500, 500, 500].map(Scripted::start);
    let all = all.each_ref();
    let gateway_of = |max| {
        let rules = format!("failures = 1\ntime = \"1h\"\nmax = \"{max}%\"");
        gateway(&all, &rules)
    };
    for (max, ejected) in [(30, 0), (50, 1), (100, 2)] {
        let gateway = gateway_of(max);
        assert_eq!(statuses(&gateway, 12), [500; 12]);
        let states = states(&gateway);
        let count = states.iter().filter(|state| *state == "ejected").count();
        assert_eq!(count, ejected, "{max}: {states:?}");
        assert!(ejections(&gateway, "not-permitted") > 0.0);
    }
}

#[test]
fn ejected_addresses_serve_if_no_other_can_be_connected_to() {
    let bad = Scripted::start(500);
    let mut rules = configured(&[&bad], "failures = 1\ntime = \"1h\"\nmax = \"100%\"");
    let gone = crate::support::closed_port();
    rules.routes[0].upstream.push(gone.to_string());
    rules.routes[0].health.failures = 100;
    let gateway = start(rules).unwrap();
    for _ in 0..6 {
        assert_eq!(get(&gateway, "/", "").status, 500);
    }
    assert_eq!(bad.request_count(), 6);
    assert_eq!(ejections(&gateway, "failures"), 1.0);
}

#[test]
fn a_far_slower_address_is_ejected_and_returns() {
    let all = [200, 200, 200].map(Scripted::start);
    all[2].millis.store(100, SeqCst);
    let rules = "failures = 0\nslow = 3.0\ninterval = \"4s\"\ntime = \"1s\"";
    let gateway = gateway(&all.each_ref(), rules);
    // Enough slow replies in one window, even on a busy machine.
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let address = gateway.addr;
            std::thread::spawn(move || {
                let mut client = TestClient::to(address);
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_secs(10) {
                    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
                    assert_eq!(client.reply(false).unwrap().status, 200);
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        })
        .collect();
    wait_until("it is ejected", || ejections(&gateway, "slow") >= 1.0);
    all[2].millis.store(0, SeqCst);
    wait_until("it is out", || states(&gateway)[2] == "ejected");
    let before = all[2].request_count();
    wait_until("it is asked again", || all[2].request_count() > before + 10);
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(states(&gateway)[0], "up");
}

#[test]
fn ejections_survive_reloads_unless_their_rules_change() {
    let (bad, well) = (Scripted::start(500), Scripted::start(200));
    let rules = "failures = 1\ntime = \"1h\"";
    let config = configured(&[&bad, &well], rules);
    let gateway = start(config.clone()).unwrap();
    statuses(&gateway, 2);
    assert_eq!(states(&gateway)[0], "ejected");
    let mut other = config.clone();
    other.routes[0].retry.attempts = 1;
    gateway.reload(other).unwrap();
    assert_eq!(states(&gateway)[0], "ejected");
    let other = configured(&[&bad, &well], "failures = 2\ntime = \"1h\"");
    gateway.reload(other).unwrap();
    assert_ne!(states(&gateway)[0], "ejected");
}
