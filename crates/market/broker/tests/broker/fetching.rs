//! Offers that the broker fetches from providers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use posthaste_broker::{Broker, BrokerConfig, OfferLimits, SourceConfig, StoreUrl};
use posthaste_qos::{Document, Offer, Offers};
use posthaste_units::Span;

use crate::support::{offer, send, start};

/// A provider's server: documents by path, and a log of requests. Requests for unknown paths are never answered.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    pub(crate) documents: Arc<Mutex<HashMap<String, String>>>,
    pub(crate) requested: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let provider = Self {
            address: listener.local_addr().unwrap(),
            documents: Arc::default(),
            requested: Arc::default(),
        };
        let serving = provider.clone();
        std::thread::spawn(move || {
            let mut unanswered = Vec::new();
            for socket in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                let mut reader = BufReader::new(socket);
                reader.read_line(&mut line).unwrap_or_default();
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                serving.requested.lock().unwrap().push(path.clone());
                match serving.documents.lock().unwrap().get(&path) {
                    Some(text) => {
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                            text.len()
                        );
                        let _ = reader.into_inner().write_all(head.as_bytes());
                    }
                    None => unanswered.push(reader),
                }
            }
        });
        provider
    }

    pub(crate) fn has(&self, path: &str, includes: &[&str], offers: Vec<Offer>) {
        let includes = includes.iter().map(ToString::to_string).collect();
        let text = Document::Offers(Offers { includes, offers }).write();
        self.documents.lock().unwrap().insert(path.to_owned(), text);
    }

    fn source(&self, provider: &str, path: &str) -> SourceConfig {
        SourceConfig {
            kind: "books".to_owned(),
            provider: provider.to_owned(),
            url: format!("http://{}{path}", self.address),
            every: Span::from_millis(50),
        }
    }
}

/// A broker with these sources.
fn broker(sources: Vec<SourceConfig>) -> (Broker, tempfile::TempDir) {
    limited(sources, OfferLimits::default())
}

/// A broker with these sources and limits.
fn limited(sources: Vec<SourceConfig>, limits: OfferLimits) -> (Broker, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
    (
        start(BrokerConfig {
            store,
            sources,
            limits,
            ..BrokerConfig::default()
        }),
        folder,
    )
}

/// Waits until the broker has exactly the offers `wanted`, cheapest first.
fn until(broker: &Broker, wanted: &[&str]) {
    let since = Instant::now();
    loop {
        let list = send(broker.addr, "GET", "/v1/offers?type=books", &[], "").json();
        let offers = list["offers"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = offers
            .iter()
            .filter_map(|offer| offer["name"].as_str())
            .collect();
        if names == wanted {
            return;
        }
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "{names:?} are not {wanted:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Number of failed fetches.
fn failures(broker: &Broker) -> f64 {
    let text = send(broker.addr, "GET", "/metrics", &[], "").body;
    let line = text
        .lines()
        .find(|line| line.starts_with("posthaste_broker_fetches_total{outcome=\"failed\"}"));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

fn until_failed(broker: &Broker) {
    let since = Instant::now();
    let before = failures(broker);
    while failures(broker) == before {
        assert!(since.elapsed() < Duration::from_secs(30), "nothing failed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn offers_follow_the_document_of_their_provider() {
    let provider = Provider::open();
    provider.has(
        "/a",
        &[],
        vec![offer("Gold", 40, 100), offer("Silver", 20, 300)],
    );
    let (broker, _folder) = broker(vec![provider.source("ada", "/a")]);
    until(&broker, &["Silver", "Gold"]);
    provider.has(
        "/a",
        &[],
        vec![offer("Bronze", 10, 900), offer("Gold", 5, 100)],
    );
    until(&broker, &["Gold", "Bronze"]);
}

#[test]
fn includes_are_read_once_each_even_in_a_circle() {
    let provider = Provider::open();
    provider.has("/a", &["b", "/a"], vec![offer("Gold", 40, 100)]);
    provider.has("/b", &["/a", "/b"], vec![offer("Silver", 20, 300)]);
    let (broker, _folder) = broker(vec![provider.source("ada", "/a")]);
    until(&broker, &["Silver", "Gold"]);
}

#[test]
fn nothing_is_fetched_from_where_nobody_has_said() {
    let (provider, inside) = (Provider::open(), Provider::open());
    inside.has("/secret", &[], vec![offer("Secret", 1, 1)]);
    let elsewhere = format!("http://{}/secret", inside.address);
    provider.has("/a", &[&elsewhere], vec![offer("Gold", 40, 100)]);
    let (broker, _folder) = broker(vec![provider.source("ada", "/a")]);
    until_failed(&broker);
    assert_eq!(*inside.requested.lock().unwrap(), [""; 0]);
    until(&broker, &[]);
}

#[test]
fn a_failing_provider_keeps_its_offers_and_delays_no_other() {
    let provider = Provider::open();
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    provider.has("/b", &[], vec![offer("Silver", 20, 300)]);
    let sources = [("ada", "/a"), ("bob", "/b"), ("eve", "/silent")];
    let (broker, _folder) = broker(sources.map(|(who, path)| provider.source(who, path)).into());
    until(&broker, &["Silver", "Gold"]);
    provider
        .documents
        .lock()
        .unwrap()
        .insert("/a".to_owned(), "<wsqos".to_owned());
    until_failed(&broker);
    until(&broker, &["Silver", "Gold"]);
    provider.has("/b", &[], vec![offer("Silver", 60, 300)]);
    until(&broker, &["Gold", "Silver"]);
}

#[test]
fn fetched_offers_beyond_a_limit_are_counted_as_failed() {
    let provider = Provider::open();
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    let limits = OfferLimits {
        per_provider: 1,
        ..OfferLimits::default()
    };
    let (broker, _folder) = limited(vec![provider.source("ada", "/a")], limits);
    until(&broker, &["Gold"]);
    assert_eq!(failures(&broker), 0.0);
    let two = vec![offer("Gold", 30, 100), offer("Silver", 20, 300)];
    provider.has("/a", &[], two);
    until_failed(&broker);
    until(&broker, &["Gold"]);
}
