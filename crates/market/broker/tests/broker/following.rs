//! Stream of changes, and followers.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use posthaste_broker::{Broker, BrokerConfig};

use crate::support::{TestBroker, offer, question, send, start};

/// A reader of the stream.
struct Reader(BufReader<TcpStream>);

/// An event, with dates removed from its data.
#[derive(Debug, PartialEq)]
struct StreamPart {
    event: String,
    id: Option<u64>,
    name: Option<String>,
}

impl Reader {
    fn new(at: SocketAddr, last: Option<u64>) -> Self {
        let mut socket = TcpStream::connect(at).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let last = last
            .map(|last| format!("Last-Event-ID: {last}\r\n"))
            .unwrap_or_default();
        write!(socket, "GET /v1/changes HTTP/1.1\r\nHost: b\r\n{last}\r\n").unwrap();
        Self(BufReader::new(socket))
    }

    /// Next event other than `alive`.
    fn next(&mut self) -> StreamPart {
        let mut part = StreamPart {
            event: String::new(),
            id: None,
            name: None,
        };
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).unwrap(),
                0,
                "the stream has ended"
            );
            match line.trim_end().split_once(": ") {
                Some(("event", event)) => part.event = event.to_owned(),
                Some(("id", id)) => part.id = id.parse().ok(),
                Some(("data", data)) => {
                    let data: serde_json::Value = serde_json::from_str(data).unwrap();
                    part.name = data["name"].as_str().map(str::to_owned);
                }
                _ if line.trim().is_empty() && !part.event.is_empty() => {
                    if part.event != "alive" {
                        return part;
                    }
                    part = StreamPart {
                        event: String::new(),
                        id: None,
                        name: None,
                    };
                }
                _ => {}
            }
        }
    }
}

fn part(event: &str, id: Option<u64>, name: Option<&str>) -> StreamPart {
    StreamPart {
        event: event.to_owned(),
        id,
        name: name.map(str::to_owned),
    }
}

#[test]
fn the_stream_tells_what_there_is_and_what_happens() {
    let shop = TestBroker::open();
    shop.put(&offer("Gold", 40, 100));
    let mut reader = Reader::new(shop.broker.addr, None);
    assert_eq!(reader.next(), part("begin", None, None));
    assert_eq!(reader.next(), part("put", None, Some("Gold")));
    assert_eq!(reader.next(), part("ready", Some(1), None));
    shop.put(&offer("Silver", 20, 300));
    assert_eq!(reader.next(), part("put", Some(2), Some("Silver")));
    shop.send("DELETE", "/v1/offers/books/ada/Gold", &[], "");
    assert_eq!(reader.next(), part("withdrawn", Some(3), Some("Gold")));
}

/// A reader that stops reading misses more changes than the broker keeps for it. It gets the queued ones, and then the
/// stream ends.
#[test]
fn a_slow_reader_is_cut_off_and_never_skips_a_change() {
    const OFFERS: u32 = 500;
    let shop = TestBroker::open();
    let mut reader = Reader::new(shop.broker.addr, None);
    let endpoint = format!("http://books.example/{}", "x".repeat(450));
    while reader.next().event != "ready" {}
    let change_all = |cents| {
        let changed = |number| {
            let mut offer = offer(&format!("offer-{number}"), cents, 100);
            offer.endpoint = Some(endpoint.clone());
            offer
        };
        let offers: Vec<_> = (0..OFFERS).map(changed).collect();
        let body = serde_json::json!({ "offers": offers }).to_string();
        let reply = shop.send("PUT", "/v1/offers/books/ada", &[], &body);
        assert!(reply.status < 300, "{}", reply.body);
    };
    let id = |line: String| line.strip_prefix("id: ")?.parse::<u64>().ok();
    (0..25).for_each(change_all);
    let mut lines = reader.0.by_ref().lines().map(Result::unwrap);
    let mut ids: Vec<u64> = lines.by_ref().filter_map(id).take(2000).collect();
    (25..70).for_each(change_all);
    // Up to the final chunk, or until the stream is idle.
    let goes_on = |line: &String| !["0", "event: alive"].contains(&line.as_str());
    ids.extend(lines.take_while(goes_on).filter_map(id));
    let expected: Vec<u64> = (1..).take(ids.len()).collect();
    assert!(ids == expected, "{} of them", ids.len());
    assert!((2000..70 * OFFERS as usize).contains(&ids.len()));
}

#[test]
fn a_returning_reader_gets_the_changes_it_missed() {
    let shop = TestBroker::open();
    for name in ["a", "b", "c"] {
        shop.put(&offer(name, 40, 100));
    }
    let mut reader = Reader::new(shop.broker.addr, Some(1));
    assert_eq!(reader.next(), part("put", Some(2), Some("b")));
    assert_eq!(reader.next(), part("put", Some(3), Some("c")));
    assert_eq!(reader.next(), part("ready", Some(3), None));
    // A number that this store has not reached belongs to another store.
    assert_eq!(
        Reader::new(shop.broker.addr, Some(99)).next(),
        part("begin", None, None)
    );
    let wrong = send(
        shop.broker.addr,
        "GET",
        "/v1/changes",
        &["Last-Event-ID: x"],
        "",
    );
    assert_eq!(wrong.status, 400);
}

/// Waits until the best offer has this name, or until there is none.
fn until(broker: &Broker, name: Option<&str>) {
    let since = Instant::now();
    loop {
        let answer = send(broker.addr, "POST", "/v1/best-offer", &[], &question(300)).json();
        if answer["offer"]["name"].as_str() == name {
            return;
        }
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "{answer} is not {name:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_follower_answers_as_the_one_it_follows() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    let follower = start(BrokerConfig {
        follow: Some(shop.url()),
        ..BrokerConfig::default()
    });
    until(&follower, Some("Good"));
    shop.put(&offer("Better", 20, 200));
    until(&follower, Some("Better"));
    // The follower's own stream continues with the same numbers.
    let mut reader = Reader::new(follower.addr, None);
    assert_eq!(reader.next(), part("begin", None, None));
    shop.send("PUT", "/v1/offers/books/ada", &[], "{\"offers\": []}");
    until(&follower, None);
    let refused = send(
        follower.addr,
        "PUT",
        "/v1/offers/books/ada/x",
        &["Authorization: Bearer x"],
        "{}",
    );
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("publish there"), "{}", refused.body);
}

#[test]
fn a_follower_continues_without_its_broker_and_states_the_age() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    let follower = start(BrokerConfig {
        follow: Some(shop.url()),
        ..BrokerConfig::default()
    });
    until(&follower, Some("Good"));
    shop.broker.stop();
    drop(shop);
    let since = Instant::now();
    let old = loop {
        let reply = send(follower.addr, "POST", "/v1/best-offer", &[], &question(300));
        assert_eq!(reply.json()["offer"]["name"], "Good");
        if let Some(age) = reply.field("Age") {
            break age.parse::<u64>().unwrap();
        }
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "it does not say that it is old"
        );
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!((3..30).contains(&old), "{old} s");
    assert_eq!(send(follower.addr, "GET", "/healthz", &[], "").status, 503);
    // A follower of the follower is part that the data is late, and never treats it as fresh. Before it is part, its age
    // counts from its start.
    let second = start(BrokerConfig {
        follow: Some(format!("http://{}", follower.addr)),
        ..BrokerConfig::default()
    });
    until(&second, Some("Good"));
    let since = Instant::now();
    loop {
        let reply = send(second.addr, "POST", "/v1/best-offer", &[], &question(300));
        let age: u64 = reply.field("Age").unwrap().parse().unwrap();
        if age >= old + since.elapsed().as_secs() {
            break;
        }
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "{age} s, {old} s before"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_follower_that_has_heard_nothing_yet_says_so() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let follower = start(BrokerConfig {
        follow: Some(format!("http://{}", gone.local_addr().unwrap())),
        ..BrokerConfig::default()
    });
    assert_eq!(send(follower.addr, "GET", "/healthz", &[], "").status, 503);
    let reply = send(follower.addr, "POST", "/v1/best-offer", &[], &question(300));
    assert_eq!(reply.field("Age"), Some("0"));
}
