//! Names of upstreams whose addresses change, with a name server of our own.

use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use posthaste_gateway::{GatewayConfig, RunningGateway, check, start};

use crate::dns::{Answer, TestNameServer};
use crate::support::{PATIENCE, TestClient, TestOrigin, get, wait_until};
use crate::watching::{fetch_admin, value};

const NAME: &str = "shop.test";

/// An address of this machine, `127.0.0.LAST`.
fn local(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

fn answer(ttl: u32, addresses: &[IpAddr]) -> Answer {
    Answer::Addresses(ttl, addresses.to_vec())
}

/// Upstreams on these addresses and one port. Each answers with its address.
fn origins(addresses: &[IpAddr]) -> (u16, Vec<TestOrigin>) {
    loop {
        let first = TcpListener::bind((addresses[0], 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let others = addresses[1..].iter();
        let others = others.map(|address| TcpListener::bind((*address, port)));
        // Another process may use the port on another address.
        let Ok(others) = others.collect::<Result<Vec<_>, _>>() else {
            continue;
        };
        let listeners = std::iter::once(first).chain(others);
        let origins = listeners.map(|listener| {
            let body = listener.local_addr().unwrap().ip().to_string();
            let length = body.len();
            TestOrigin::on(listener, move |line| {
                while line.request().is_some() {
                    line.write(format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                    ));
                }
            })
        });
        return (port, origins.collect());
    }
}

fn configured(server: &TestNameServer, upstream: &str, bounds: &str, more: &str) -> GatewayConfig {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[resolver]\nservers = [\"{}\"]\n{bounds}\n[[route]]\npath = \"/\"\nupstream = [\"{upstream}\"]\n{more}",
        server.address
    );
    GatewayConfig::read(&text).unwrap()
}

/// A gateway with one upstream, [`NAME`] on `port`.
fn named(server: &TestNameServer, port: u16, bounds: &str) -> RunningGateway {
    start(configured(server, &format!("{NAME}:{port}"), bounds, "")).unwrap()
}

/// Resolutions after the first with this outcome.
fn resolutions(gateway: &RunningGateway, outcome: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    let end = format!("outcome=\"{outcome}\"}}");
    let is_it = |line: &&str| line.contains("upstream_resolutions_total{") && line.contains(&end);
    let line = text.lines().find(is_it).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The addresses of the first upstream in `/status.json`, with their states.
fn addresses(gateway: &RunningGateway) -> Vec<(String, String)> {
    let document: serde_json::Value =
        serde_json::from_slice(&fetch_admin(gateway, "/status.json").body).unwrap();
    let rows = document["upstreams"][0]["addresses"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| (text(&row["address"]), text(&row["state"])))
        .collect()
}

fn body(gateway: &RunningGateway) -> String {
    let reply = get(gateway, "/", "");
    assert_eq!(reply.status, 200, "{}", reply.head);
    String::from_utf8(reply.body).unwrap()
}

/// Clients that send requests all the time. Each request must succeed.
struct Traffic {
    over: Arc<AtomicBool>,
    clients: Vec<std::thread::JoinHandle<usize>>,
}

impl Traffic {
    fn start(gateway: &RunningGateway) -> Self {
        let over = Arc::<AtomicBool>::default();
        // Requests with a body cannot be sent twice.
        let requests = [
            "GET / HTTP/1.1\r\nHost: s\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx",
        ];
        let clients = requests.into_iter().cycle().take(4).map(|request| {
            let (address, over) = (gateway.addr, over.clone());
            std::thread::spawn(move || {
                let mut client = TestClient::to(address);
                let mut replies = 0;
                while !over.load(SeqCst) {
                    client.send(request);
                    let reply = client.reply(false).expect("the gateway has closed");
                    assert_eq!(
                        reply.status,
                        200,
                        "{}",
                        String::from_utf8_lossy(&reply.body)
                    );
                    replies += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                replies
            })
        });
        Self {
            clients: clients.collect(),
            over,
        }
    }

    fn end(self) {
        self.over.store(true, SeqCst);
        for client in self.clients {
            assert!(client.join().unwrap() > 0);
        }
    }
}

#[test]
fn requests_follow_changing_addresses_and_none_is_lost() {
    let (port, origins) = origins(&[local(2), local(3)]);
    let server = TestNameServer::start(NAME, answer(1, &[local(2)]));
    let upstream = format!("{NAME}:{port}");
    let mut config = configured(&server, &upstream, "min_ttl = \"200ms\"", "");
    config.threads = 2;
    let gateway = start(config).unwrap();
    let traffic = Traffic::start(&gateway);
    wait_until("the first is asked", || origins[0].request_count() > 100);
    assert_eq!(origins[1].request_count(), 0);
    server.set(NAME, answer(1, &[local(3), local(2)]));
    wait_until("the second is asked, too", || {
        origins[1].request_count() > 100
    });
    for (stays, goes) in [(1, 0), (0, 1)] {
        let last = [2, 3][stays];
        server.set(NAME, answer(1, &[local(last)]));
        // The time to live, and one second.
        std::thread::sleep(Duration::from_millis(2000));
        let (before, others) = (
            origins[goes].request_count(),
            origins[stays].request_count(),
        );
        wait_until("the other is asked", || {
            origins[stays].request_count() > others + 200
        });
        assert_eq!(origins[goes].request_count(), before);
        assert_eq!(addresses(&gateway).len(), 1);
    }
    traffic.end();
    assert!(resolutions(&gateway, "changed") >= 3.0);
    assert_eq!(resolutions(&gateway, "failed"), 0.0);
}

#[test]
fn no_request_is_lost_while_names_and_settings_keep_changing() {
    let (port, origins) = origins(&[local(2), local(3)]);
    let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
    let upstream = format!("{NAME}:{port}");
    let mut config = configured(&server, &upstream, "min_ttl = \"100ms\"", "");
    config.threads = 2;
    let gateway = start(config.clone()).unwrap();
    let traffic = Traffic::start(&gateway);
    let mut turns = 0;
    wait_until("each has been asked many times", || {
        turns += 1;
        let last = if turns / 40 % 2 == 0 { 2 } else { 3 };
        server.set(NAME, answer(0, &[local(last)]));
        gateway.reload(config.clone()).unwrap();
        turns >= 200 && origins.iter().all(|origin| origin.request_count() > 200)
    });
    traffic.end();
}

#[test]
fn addresses_of_one_name_share_the_load_evenly() {
    let (port, origins) = origins(&[local(2), local(3)]);
    let server = TestNameServer::start(NAME, answer(3600, &[local(2), local(3)]));
    let gateway = named(&server, port, "");
    let mut client = TestClient::new(&gateway);
    for _ in 0..100 {
        client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        assert_eq!(client.reply(false).unwrap().status, 200);
    }
    assert_eq!([0, 1].map(|index| origins[index].request_count()), [50, 50]);
    let up = |last| (format!("127.0.0.{last}:{port}"), "up".to_owned());
    assert_eq!(addresses(&gateway), [up(2), up(3)]);
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let labels = format!("route=\"/\",upstream=\"{NAME}:{port}\",state=\"up\"");
    let gauge = format!("posthaste_gateway_upstream_addresses{{{labels}}}");
    assert_eq!(value(&text, &gauge), 2.0);
}

#[test]
fn without_a_usable_answer_the_last_addresses_stay() {
    let (port, origins) = origins(&[local(2), local(3)]);
    let hostile = [0x81, 0x80, 0, 1, 0xff, 0xff, 0, 0, 0, 0, 0xc0, 12, 0xc0, 12];
    let answers = [
        (Answer::Code(3), "no-address"),
        (answer(0, &[]), "no-address"),
        (answer(0, &["0.0.0.0".parse().unwrap()]), "no-address"),
        (answer(0, &[[255, 255, 255, 255].into()]), "no-address"),
        (Answer::Denied(0, vec![local(3)]), "no-address"),
        (
            Answer::Foreign(0, Vec::new(), "other.test".to_owned(), vec![local(3)]),
            "no-address",
        ),
        (Answer::Code(2), "failed"),
        (Answer::Silence, "failed"),
        (Answer::Truncated, "failed"),
        (Answer::Bytes(hostile.to_vec()), "failed"),
    ];
    let origins = Arc::new(origins);
    let tests = answers.map(|(bad, outcome)| {
        let origins = origins.clone();
        std::thread::spawn(move || {
            let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
            let gateway = named(&server, port, "min_ttl = \"200ms\"");
            server.set(NAME, bad);
            wait_until(outcome, || resolutions(&gateway, outcome) >= 1.0);
            for _ in 0..5 {
                assert_eq!(body(&gateway), "127.0.0.2", "{outcome}");
            }
            server.set(NAME, answer(0, &[local(3)]));
            wait_until("it is resolved again", || body(&gateway) == "127.0.0.3");
            drop(origins);
        })
    });
    for test in tests {
        test.join().unwrap();
    }
}

#[test]
fn records_of_another_name_do_not_count() {
    let (port, _origins) = origins(&[local(2), local(3)]);
    let other = "other.test".to_owned();
    let mixed = Answer::Foreign(3600, vec![local(2)], other, vec![local(3)]);
    let server = TestNameServer::start(NAME, mixed);
    let gateway = named(&server, port, "");
    for _ in 0..4 {
        assert_eq!(body(&gateway), "127.0.0.2");
    }
    assert_eq!(addresses(&gateway).len(), 1);
}

#[test]
fn a_failed_connection_causes_a_lookup_and_a_new_attempt() {
    let (port, origins) = origins(&[local(2)]);
    // Nothing listens there.
    let server = TestNameServer::start(NAME, answer(86400, &[local(4)]));
    let bounds = "min_ttl = \"100ms\"\nmax_ttl = \"24h\"\n[timeouts]\nconnect = \"30s\"";
    let gateway = named(&server, port, bounds);
    server.set(NAME, answer(86400, &[local(2)]));
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.reply(false).unwrap().body, b"127.0.0.2");
    assert_eq!(origins[0].request_count(), 1);
    assert_eq!(resolutions(&gateway, "changed"), 1.0);
    assert_eq!(server.queries(), 4);
}

#[test]
fn failed_connections_cause_no_more_lookups_than_one_in_min_ttl() {
    let server = TestNameServer::start(NAME, answer(0, &[local(4)]));
    let port = crate::support::closed_port().port();
    let bounds = "min_ttl = \"1h\"\nmax_ttl = \"1h\"";
    let gateway = named(&server, port, bounds);
    let begin = Instant::now();
    for status in [502, 502, 502, 503, 503] {
        assert_eq!(get(&gateway, "/", "").status, status);
    }
    // No request waits for a lookup that is not due in its time.
    assert!(begin.elapsed() < PATIENCE / 2);
    assert_eq!(server.queries(), 2);
    assert_eq!(addresses(&gateway)[0].1, "out");
}

#[test]
fn a_time_to_live_of_zero_means_min_ttl_and_a_long_one_max_ttl() {
    let (port, _origins) = origins(&[local(2)]);
    for ttl in [0, 86400] {
        let begin = Instant::now();
        let server = TestNameServer::start(NAME, answer(ttl, &[local(2)]));
        let _gateway = named(&server, port, "min_ttl = \"200ms\"\nmax_ttl = \"200ms\"");
        wait_until("it is looked up again", || server.queries() >= 10);
        let most = 2 * (begin.elapsed().as_millis() / 200 + 2);
        assert!(
            server.queries() as u128 <= most,
            "{} {most}",
            server.queries()
        );
    }
}

#[test]
fn the_shortest_time_to_live_on_the_way_to_an_address_counts() {
    let (port, _origins) = origins(&[local(2), local(3)]);
    let alias = |name: &str| Answer::Alias(1, name.to_owned());
    let server = TestNameServer::start(NAME, alias("old.test"));
    server.set("old.test", answer(86400, &[local(2)]));
    server.set("new.test", answer(86400, &[local(3)]));
    let gateway = named(&server, port, "max_ttl = \"24h\"");
    assert_eq!(body(&gateway), "127.0.0.2");
    server.set(NAME, alias("new.test"));
    wait_until("the alias is followed", || body(&gateway) == "127.0.0.3");
}

#[test]
fn a_removed_address_keeps_only_connections_in_use() {
    let (go_on, may_go_on) = mpsc::channel();
    let (closed, is_closed) = mpsc::channel();
    let (listener, other) = loop {
        let one = TcpListener::bind((local(2), 0)).unwrap();
        let port = one.local_addr().unwrap().port();
        if let Ok(other) = TcpListener::bind((local(3), port)) {
            break (one, other);
        }
    };
    let port = listener.local_addr().unwrap().port();
    let may_go_on = Mutex::new(may_go_on);
    let old = TestOrigin::on(listener, move |line| {
        while let Some(request) = line.request() {
            if request.starts_with("GET /slow") {
                let signal = may_go_on.lock().unwrap();
                signal.recv_timeout(PATIENCE).unwrap();
            }
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
        }
        let _ = closed.send(());
    });
    let _new = TestOrigin::on(other, |line| {
        while line.request().is_some() {
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew");
        }
    });
    let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
    let bounds = "min_ttl = \"100ms\"\n[timeouts]\nupstream_idle = \"1h\"";
    let gateway = named(&server, port, bounds);
    let mut slow = TestClient::new(&gateway);
    slow.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("the slow one is under way", || old.request_count() == 1);
    assert_eq!(body(&gateway), "old");
    server.set(NAME, answer(0, &[local(3)]));
    // The one that is not in use, also without further requests.
    assert_eq!(is_closed.recv_timeout(PATIENCE), Ok(()));
    go_on.send(()).unwrap();
    assert_eq!(slow.reply(false).unwrap().body, b"old");
    assert_eq!(is_closed.recv_timeout(PATIENCE), Ok(()));
    assert_eq!(body(&gateway), "new");
}

#[test]
fn an_address_family_whose_lookup_fails_keeps_its_addresses() {
    let six: IpAddr = "::1".parse().unwrap();
    let (port, origins) = origins(&[local(2), six]);
    let server = TestNameServer::start(NAME, answer(0, &[local(2), six]));
    let gateway = named(&server, port, "min_ttl = \"200ms\"");
    for _ in 0..4 {
        body(&gateway);
    }
    assert_eq!([0, 1].map(|index| origins[index].request_count()), [2, 2]);
    server.set(NAME, Answer::Half(0, vec![local(2)]));
    let before = resolutions(&gateway, "unchanged");
    wait_until("it is looked up twice", || {
        resolutions(&gateway, "unchanged") >= before + 2.0
    });
    assert_eq!(addresses(&gateway).len(), 2);
    // An answer without addresses of a family removes them.
    server.set(NAME, answer(0, &[six]));
    wait_until("one is gone", || addresses(&gateway).len() == 1);
    assert_eq!(body(&gateway), "::1");
}

#[test]
fn the_hosts_file_comes_first_and_addresses_are_never_looked_up() {
    let (port, _origins) = origins(&[local(1)]);
    let server = TestNameServer::start(NAME, Answer::Code(2));
    for upstream in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let config = configured(&server, &upstream, "min_ttl = \"100ms\"", "");
        let gateway = start(config).unwrap();
        for _ in 0..4 {
            assert_eq!(body(&gateway), "127.0.0.1");
        }
        let listed = addresses(&gateway);
        let up = (format!("127.0.0.1:{port}"), "up".to_owned());
        assert!(listed.contains(&up), "{listed:?}");
    }
    assert_eq!(server.queries(), 0);
}

#[test]
fn unresolved_names_prevent_neither_start_nor_reload() {
    let (port, _origins) = origins(&[local(2)]);
    let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
    let later = |name: &str| {
        let route = format!("[[route]]\npath = \"/later\"\nupstream = [\"{name}:{port}\"]");
        let upstream = format!("{NAME}:{port}");
        configured(&server, &upstream, "min_ttl = \"200ms\"", &route)
    };
    let config = later("later.test");
    check(config.clone()).unwrap();
    let gateway = start(config).unwrap();
    assert_eq!(body(&gateway), "127.0.0.2");
    let reply = get(&gateway, "/later", "");
    assert_eq!(reply.status, 503, "{}", reply.head);
    assert!(reply.head.to_lowercase().contains("\r\nretry-after: "));
    let reason = String::from_utf8(reply.body).unwrap();
    assert!(reason.contains("has no address yet"), "{reason}");
    let status: serde_json::Value =
        serde_json::from_slice(&fetch_admin(&gateway, "/status.json").body).unwrap();
    assert_eq!(status["upstreams"][1]["state"], "unresolved");
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let failures = "posthaste_gateway_upstream_failures_total{kind=\"unresolved\"}";
    assert_eq!(value(&text, failures), 1.0);
    let is_served = || get(&gateway, "/later", "").status == 200;
    server.set("later.test", answer(0, &[local(2)]));
    wait_until("the name is resolved", is_served);
    gateway.reload(later("other.test")).unwrap();
    assert_eq!(body(&gateway), "127.0.0.2");
    assert_eq!(get(&gateway, "/later", "").status, 503);
    server.set("other.test", answer(0, &[local(2)]));
    wait_until("the other name is resolved", is_served);
}

#[test]
fn a_silent_name_server_delays_the_start_once_for_all_names() {
    let (port, _origins) = origins(&[local(2)]);
    let server = TestNameServer::start(NAME, Answer::Silence);
    server.set("other.test", Answer::Silence);
    let upstreams = format!("{NAME}:{port}\", \"other.test:{port}");
    let begin = Instant::now();
    let gateway = start(configured(&server, &upstreams, "", "")).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(9));
    assert_eq!(get(&gateway, "/", "").status, 503);
    server.set(NAME, answer(0, &[local(2)]));
    wait_until("one name is resolved", || {
        get(&gateway, "/", "").status == 200
    });
}

#[test]
fn a_name_keeps_its_addresses_if_a_lookup_fails_at_reload() {
    let (port, _origins) = origins(&[local(2)]);
    let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
    let config = configured(&server, &format!("{NAME}:{port}"), "", "");
    let gateway = start(config.clone()).unwrap();
    server.set(NAME, Answer::Code(2));
    gateway.reload(config).unwrap();
    assert_eq!(body(&gateway), "127.0.0.2");
}

#[test]
fn health_stays_with_its_address_when_others_change() {
    let server = TestNameServer::start(NAME, answer(0, &[local(4)]));
    let (port, _origins) = origins(&[local(2)]);
    let health = "[route.health]\nevery = \"1h\"\nfailures = 1";
    let bounds = "min_ttl = \"200ms\"";
    let config = configured(&server, &format!("{NAME}:{port}"), bounds, health);
    let gateway = start(config.clone()).unwrap();
    // The lookup that it causes changes nothing.
    assert_eq!(get(&gateway, "/", "").status, 502);
    let state = |last: u8, state: &str| (format!("127.0.0.{last}:{port}"), state.to_owned());
    assert_eq!(addresses(&gateway), [state(4, "out")]);
    server.set(NAME, answer(0, &[local(2), local(4)]));
    wait_until("an address is added", || addresses(&gateway).len() == 2);
    for _ in 0..4 {
        assert_eq!(body(&gateway), "127.0.0.2");
    }
    assert_eq!(addresses(&gateway), [state(2, "up"), state(4, "out")]);
    gateway.reload(config).unwrap();
    assert_eq!(addresses(&gateway), [state(2, "up"), state(4, "out")]);
}

#[test]
fn checks_follow_the_addresses() {
    let (port, origins) = origins(&[local(2), local(3)]);
    let server = TestNameServer::start(NAME, answer(0, &[local(2)]));
    let health = "[route.health]\nevery = \"50ms\"\npath = \"/health\"";
    let bounds = "min_ttl = \"100ms\"";
    let config = configured(&server, &format!("{NAME}:{port}"), bounds, health);
    let gateway = start(config).unwrap();
    wait_until("the first is checked", || origins[0].request_count() > 2);
    assert_eq!(origins[1].request_count(), 0);
    server.set(NAME, answer(0, &[local(3)]));
    wait_until("the second is checked", || origins[1].request_count() > 2);
    let first = origins[0].request_count();
    let second = origins[1].request_count();
    wait_until("only the second is", || {
        origins[1].request_count() > second + 5
    });
    // At most one that was under way.
    assert!(origins[0].request_count() <= first + 1);
    assert_eq!(addresses(&gateway)[0].1, "up");
}
