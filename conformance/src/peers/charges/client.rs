//! ChargedClients that pay: they add up the prices of their replies.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use super::system::{GATEWAYS, PRICE};

/// ChargedClients of each account at each gateway.
const CLIENTS: usize = 2;

/// Time limit of a reply, long beyond the time in which the upstream replies.
const PATIENCE: Duration = Duration::from_secs(60);

/// Running clients.
pub(super) struct ChargedClients {
    stops: Arc<AtomicBool>,
    /// Number of the account, and its thread.
    threads: Vec<(usize, JoinHandle<Paid>)>,
}

/// Payments of the clients of one account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paid {
    /// Replies with a price above 0.
    pub(super) replies: u64,
    /// Sum of the prices.
    pub(super) micros: u64,
    /// Maximum price of requests that were sent and got no complete reply.
    pub(super) cut_off: u64,
}

/// One request.
enum ChargedReply {
    /// Not sent: no connection.
    Unsent,
    /// Sent, and no complete head of a reply.
    CutOff,
    /// Price in millionths, 0 if the reply states none.
    Price(u64),
}

impl ChargedClients {
    /// Starts clients of each account: the first ones at the gateway of their number, those of the last at each.
    pub(super) fn start(gateways: &[SocketAddr], keys: &[String]) -> Self {
        let stops = Arc::<AtomicBool>::default();
        let mut threads = Vec::new();
        for (account, key) in keys.iter().enumerate() {
            let own = gateways.iter().enumerate();
            let own = own.filter(|(number, _)| account >= GATEWAYS || account == *number);
            for (_, address) in own.flat_map(|gateway| std::iter::repeat_n(gateway, CLIENTS)) {
                let (address, key, stops) = (*address, key.clone(), stops.clone());
                let client = std::thread::spawn(move || pay(address, &key, &stops));
                threads.push((account, client));
            }
        }
        Self { stops, threads }
    }

    /// Ends the clients. Returns what was paid by each account.
    pub(super) fn stop(self) -> Vec<Paid> {
        self.stops.store(true, Relaxed);
        let mut sums = vec![Paid::default(); GATEWAYS + 1];
        for (account, thread) in self.threads {
            let paid = thread.join().expect("a client does not panic");
            let sum = &mut sums[account];
            sum.replies += paid.replies;
            sum.micros += paid.micros;
            sum.cut_off += paid.cut_off;
        }
        sums
    }
}

/// Sends requests one after the other until `stops`.
fn pay(address: SocketAddr, key: &str, stops: &AtomicBool) -> Paid {
    let mut paid = Paid::default();
    while !stops.load(Relaxed) {
        match ask(address, key) {
            ChargedReply::Price(0) => std::thread::sleep(Duration::from_millis(5)),
            ChargedReply::Price(micros) => {
                paid.replies += 1;
                paid.micros += micros;
            }
            ChargedReply::CutOff => paid.cut_off += PRICE,
            ChargedReply::Unsent => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    paid
}

/// Sends a request on a new connection.
fn ask(address: SocketAddr, key: &str) -> ChargedReply {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return ChargedReply::Unsent;
    };
    let request = format!(
        "GET / HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    );
    // A limit that cannot be set is one of the connection.
    let _ = stream.set_read_timeout(Some(PATIENCE));
    if stream.write_all(request.as_bytes()).is_err() {
        return ChargedReply::CutOff;
    }
    let mut reply = Vec::new();
    // A reset after the reply leaves what was read.
    let _ = stream.read_to_end(&mut reply);
    let text = String::from_utf8_lossy(&reply);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return ChargedReply::CutOff;
    };
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let price = lines.find(|(name, _)| name.eq_ignore_ascii_case("price"));
    ChargedReply::Price(price.map_or(0, |(_, price)| micros(price)))
}

/// Millionths of an amount, such as `0.01 EUR`.
pub(super) fn micros(price: &str) -> u64 {
    let amount = price.split(' ').next().unwrap_or_default();
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    let part: u64 = format!("{part:0<6}").parse().unwrap_or(0);
    whole.parse::<u64>().unwrap_or(0) * 1_000_000 + part
}
