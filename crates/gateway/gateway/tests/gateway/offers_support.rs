//! A broker as a script: it tells the offers that the test states, and goes away and returns as the test wants.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use posthaste_gateway::{GatewayConfig, RunningGateway};
use serde_json::{Value, json};

use crate::support::{PATIENCE, ReceivedReply, field, get, wait_until};
use crate::watching::fetch_admin;

/// The broker.
pub(crate) struct TestBroker {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<BrokerScript>>,
}

/// The part that the test controls.
struct BrokerScript {
    offers: Vec<Value>,
    /// Counts the changes of `offers`.
    generation: u64,
    is_away: bool,
    /// Bodies of reported measurements.
    reports: Vec<Value>,
}

/// An offer of the type `books`.
pub(crate) struct TestOffer<'a> {
    pub(crate) provider: &'a str,
    pub(crate) name: &'a str,
    pub(crate) price: &'a str,
    /// Promised processing time.
    pub(crate) milliseconds: u32,
    pub(crate) reliability: f64,
    pub(crate) endpoint: String,
    pub(crate) expires: Timestamp,
}

impl<'a> TestOffer<'a> {
    /// Promises this processing time and 99.9 % for an hour.
    pub(crate) fn new(name: &'a str, price: &'a str, milliseconds: u32, at: SocketAddr) -> Self {
        Self {
            provider: "ada",
            name,
            price,
            milliseconds,
            reliability: 0.999,
            endpoint: format!("http://{at}"),
            expires: Timestamp::now() + SignedDuration::from_hours(1),
        }
    }

    fn put(&self) -> Value {
        let server =
            json!({ "processingTime": self.milliseconds, "reliability": self.reliability });
        json!({
            "type": "books",
            "provider": self.provider,
            "name": self.name,
            "offer": {
                "name": self.name,
                "expires": self.expires,
                "endpoint": self.endpoint,
                "qos": {
                    "defaultQoSInfo": { "serverQoSMetrics": server },
                    "price": { "amount": self.price, "currency": "EUR" },
                },
            },
        })
    }
}

impl TestBroker {
    pub(crate) fn start(offers: &[TestOffer<'_>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(BrokerScript {
            offers: offers.iter().map(TestOffer::put).collect(),
            generation: 0,
            is_away: false,
            reports: Vec::new(),
        }));
        let served = script.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = served.clone();
                std::thread::spawn(move || serve(stream, &script));
            }
        });
        Self { address, script }
    }

    /// Replaces all offers.
    pub(crate) fn set(&self, offers: &[TestOffer<'_>]) {
        let mut script = self.script.lock().unwrap();
        script.offers = offers.iter().map(TestOffer::put).collect();
        script.generation += 1;
    }

    /// Closes every connection from now on, or serves again.
    pub(crate) fn go_away(&self, is_away: bool) {
        self.script.lock().unwrap().is_away = is_away;
    }

    pub(crate) fn reports(&self) -> Vec<Value> {
        self.script.lock().unwrap().reports.clone()
    }
}

fn serve(mut stream: TcpStream, script: &Mutex<BrokerScript>) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let Some((head, body)) = read(&mut stream) else {
        return;
    };
    if script.lock().unwrap().is_away {
        return;
    }
    if head.starts_with("put ") {
        let report = serde_json::from_str(&body).unwrap();
        script.lock().unwrap().reports.push(report);
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        return;
    }
    let _ = stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
    );
    let (mut sent, mut spoke) = (None, Instant::now());
    loop {
        let text = {
            let script = script.lock().unwrap();
            if script.is_away {
                return;
            }
            let generation = Some(script.generation);
            if sent != generation {
                sent = generation;
                transfer(&script)
            } else if spoke.elapsed() > Duration::from_millis(500) {
                "event: alive\ndata: {}\n\n".to_owned()
            } else {
                String::new()
            }
        };
        if !text.is_empty() {
            spoke = Instant::now();
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A complete transfer of the offers.
fn transfer(script: &BrokerScript) -> String {
    let puts = script.offers.iter();
    let puts: String = puts
        .map(|put| format!("event: put\ndata: {put}\n\n"))
        .collect();
    let number = script.generation + 1;
    format!("event: begin\ndata: {{}}\n\n{puts}id: {number}\nevent: ready\ndata: {{}}\n\n")
}

/// Reads a request: its head in lower case, and its body.
fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = field(&head, "content-length").map_or(0, |text| text.parse().unwrap());
            if body.len() >= length {
                return Some((head, body.to_owned()));
            }
        }
        let length = stream.read(&mut piece).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&piece[..length]);
    }
}

/// A configuration of one route with offers, `more` keys of the route's offers, and fallbacks.
pub(crate) fn config(broker: &TestBroker, more: &str, upstream: &[SocketAddr]) -> GatewayConfig {
    let upstream: Vec<_> = upstream.iter().map(SocketAddr::to_string).collect();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = {upstream:?}\n\
         [route.offers]\nbroker = \"http://{}\"\ntype = \"books\"\nallow = [\"127.0.0.1\"]\n{more}\n",
        broker.address
    );
    GatewayConfig::read(&text).unwrap()
}

/// Waits until the gateway uses `count` offers.
pub(crate) fn wait_for_offers(gateway: &RunningGateway, count: usize) {
    wait_until("the offers have arrived", || {
        let status: Value =
            serde_json::from_slice(&fetch_admin(gateway, "/status.json").body).unwrap();
        status["offers"][0]["count"] == count
    });
}

/// The reply to a GET, the name of its offer and the decision.
pub(crate) fn offered(gateway: &RunningGateway, fields: &str) -> (ReceivedReply, String, String) {
    let reply = get(gateway, "/books", fields);
    let text = |name| field(&reply.head, name).unwrap_or_default().to_owned();
    let (offer, decision) = (text("selected-offer"), text("offer-decision"));
    let name = offer.split(';').next().unwrap_or_default().to_owned();
    (reply, name, decision)
}
