//! A broker under test, and a client that sends exact bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use posthaste_broker::{Admin, Broker, BrokerConfig, StoreUrl};
use posthaste_qos::Offer;
use tempfile::TempDir;

/// A broker with a provider named "ada".
pub(crate) struct TestBroker {
    pub(crate) broker: Broker,
    pub(crate) token: String,
    pub(crate) store: StoreUrl,
    folder: TempDir,
}

/// A reply.
pub(crate) struct TestReply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl TestBroker {
    pub(crate) fn open() -> Self {
        Self::with(|store| BrokerConfig {
            store: store.clone(),
            ..BrokerConfig::default()
        })
    }

    /// Starts a broker with the result of `config` for a new store.
    pub(crate) fn with(config: impl FnOnce(&StoreUrl) -> BrokerConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
        let token = token(&store, "ada");
        Self {
            broker: start(config(&store)),
            token,
            store,
            folder,
        }
    }

    /// Stops the broker and starts another on the same store.
    pub(crate) fn reopen(self) -> Self {
        let Self {
            broker,
            token,
            store,
            folder,
        } = self;
        broker.stop();
        broker.join();
        Self {
            broker: crate::support::broker(&store),
            token,
            store,
            folder,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.broker.addr)
    }

    /// Sends a request with ada's token.
    pub(crate) fn send(&self, method: &str, path: &str, fields: &[&str], body: &str) -> TestReply {
        let token = format!("Authorization: Bearer {}", self.token);
        let fields = [fields, &[&token]].concat();
        send(self.broker.addr, method, path, &fields, body)
    }

    pub(crate) fn put(&self, offer: &Offer) -> TestReply {
        let path = format!("/v1/offers/books/ada/{}", offer.name);
        self.send("PUT", &path, &[], &serde_json::to_string(offer).unwrap())
    }
}

impl TestReply {
    /// Value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .clone()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Creates a token for a provider.
pub(crate) fn token(store: &StoreUrl, provider: &str) -> String {
    Admin::open(store).unwrap().make_token(provider).unwrap().1
}

pub(crate) fn broker(store: &StoreUrl) -> Broker {
    start(BrokerConfig {
        store: store.clone(),
        ..BrokerConfig::default()
    })
}

pub(crate) fn start(config: BrokerConfig) -> Broker {
    let listen = ([127, 0, 0, 1], 0).into();
    posthaste_broker::start(BrokerConfig { listen, ..config }).unwrap()
}

/// Sends a request on a new connection.
pub(crate) fn send(
    at: SocketAddr,
    method: &str,
    path: &str,
    fields: &[&str],
    body: &str,
) -> TestReply {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: b\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n"
    );
    exchange(at, &(head + body))
}

/// Sends these bytes on a new connection.
pub(crate) fn exchange(at: SocketAddr, request: &str) -> TestReply {
    let mut socket = TcpStream::connect(at).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    TestReply {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// An offer with this price and processing time, valid for an hour.
pub(crate) fn offer(name: &str, cents: u32, milliseconds: u32) -> Offer {
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    serde_json::from_value(serde_json::json!({
        "name": name,
        "expires": expires,
        "qos": {
            "defaultQoSInfo": { "serverQoSMetrics": { "processingTime": milliseconds } },
            "price": { "amount": format!("{}.{:02}", cents / 100, cents % 100), "currency": "EUR" },
        },
    }))
    .unwrap()
}

/// Query for a processing time of at most `milliseconds`.
pub(crate) fn question(milliseconds: u32) -> String {
    let qos = serde_json::json!({ "defaultQoSInfo": { "serverQoSMetrics": { "processingTime": milliseconds } } });
    serde_json::json!({ "type": "books", "requirements": { "qos": qos } }).to_string()
}
