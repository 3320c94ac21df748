//! A gateway in virtual time: its clients, its upstream and its network are in memory, and a seed decides the rest.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_gateway::{GatewayConfig, start};
use posthaste_serve::Environment as _;
use posthaste_serve::environment::now;
use posthaste_serve::simulated::SimulatedStream;
use posthaste_units::Span;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::memory_network::{MemoryNetwork, simulate};
use crate::support::OK;

const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";

const ORIGIN: ([u8; 4], u16) = ([192, 0, 2, 3], 8080);
const GATEWAY: ([u8; 4], u16) = ([192, 0, 2, 2], 80);

/// Everything that a run shows.
#[derive(Debug, PartialEq, Eq)]
struct Transcript {
    /// Each reply with the time until its end.
    replies: Vec<(String, Span)>,
    /// The requests that reached the upstream.
    forwarded: Vec<String>,
    log: String,
}

/// Sends one request on each path to a gateway with one upstream.
fn run(seed: u64, paths: &[&str]) -> Transcript {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let text = format!(
        r#"
        listen = "192.0.2.2:80"
        admin = "192.0.2.2:9000"
        access_log = {log:?}
        threads = 2
        [traces]
        collector = "http://collector.example/v1/traces"
        share = "100%"
        [[route]]
        path = "/"
        upstream = ["http://origin.example:8080"]
        [route.retry]
        attempts = 1
        budget = "100%"
        "#
    );
    let config = GatewayConfig::read(&text).unwrap();
    let names = [("origin.example", ORIGIN.0.into())];
    let (replies, forwarded) = simulate(seed, &names, |network| async move {
        let forwarded = Arc::<Mutex<Vec<String>>>::default();
        tokio::task::spawn_local(origin(network.clone(), forwarded.clone()));
        let mut gateway = start(config).unwrap();
        let mut replies = Vec::new();
        for path in paths {
            let begun = now();
            let reply = exchange(&network, path).await;
            replies.push((reply, now().since(begun)));
        }
        gateway.stop();
        gateway.ended().await;
        let forwarded = forwarded.lock().unwrap().clone();
        (replies, forwarded)
    });
    Transcript {
        replies,
        forwarded,
        log: std::fs::read_to_string(log).unwrap(),
    }
}

async fn exchange(network: &MemoryNetwork, path: &str) -> String {
    let mut client = network.connect(GATEWAY.into()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).await.unwrap();
    reply
}

/// An upstream. `/busy` gets one 503 and then 200, `/slow` waits for 7 s, and `/hangs` gets no reply.
async fn origin(network: Arc<MemoryNetwork>, forwarded: Arc<Mutex<Vec<String>>>) {
    let address = SocketAddr::from(ORIGIN);
    let listener = network.listen(address, 64).unwrap();
    loop {
        let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
        tokio::task::spawn_local(answer(accepted.unwrap().0, forwarded.clone()));
    }
}

async fn answer(mut stream: SimulatedStream, forwarded: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut request).await {
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(std::mem::take(&mut request)).unwrap();
        let (is_slow, hangs) = (
            text.starts_with("GET /slow "),
            text.starts_with("GET /hangs "),
        );
        let is_busy = record(&forwarded, text);
        if hangs {
            std::future::pending::<()>().await;
        }
        if is_slow {
            tokio::time::sleep(Duration::from_secs(7)).await;
        }
        let reply = if is_busy { BUSY } else { OK };
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Keeps a request. True for the first one that finds the upstream busy.
fn record(forwarded: &Mutex<Vec<String>>, request: String) -> bool {
    let mut forwarded = forwarded.lock().unwrap();
    let is_busy = |request: &String| request.starts_with("GET /busy ");
    let is_first = is_busy(&request) && !forwarded.iter().any(is_busy);
    forwarded.push(request);
    is_first
}

#[test]
fn a_seed_repeats_a_run_byte_for_byte() {
    let paths = ["/", "/busy", "/slow", "/hangs"];
    let first = run(1, &paths);
    let statuses = first.replies.iter().map(|(reply, _)| &reply[..12]);
    let statuses: Vec<_> = statuses.collect();
    let well = "HTTP/1.1 200";
    assert_eq!(statuses, [well, well, well, "HTTP/1.1 504"]);
    // No request waits for anything but the upstream. The reply may take 30 s.
    let times: Vec<_> = first.replies.iter().map(|(_, time)| *time).collect();
    assert_eq!(times[..3], [0, 0, 7].map(Span::from_secs));
    let limit = Span::from_secs(30);
    assert!(
        times[3] >= limit && times[3] < limit + Span::from_secs(1),
        "{times:?}"
    );
    assert_eq!(first.forwarded.len(), 5, "{:?}", first.forwarded);
    assert_eq!(first.log.lines().count(), 4, "{}", first.log);
    assert_eq!(run(1, &paths), first);
    // Only the identifiers of traces are random here.
    let other = run(2, &paths);
    assert_ne!(other.forwarded, first.forwarded);
    assert_eq!(other.replies, first.replies);
}

#[test]
fn a_name_that_does_not_exist_gets_503() {
    let text = "listen = \"192.0.2.2:80\"\nadmin = \"192.0.2.2:9000\"\n[[route]]\npath = \"/\"\nupstream = [\"no.example:1\"]\n";
    let config = GatewayConfig::read(text).unwrap();
    let reply = simulate(1, &[], |network| async move {
        let mut gateway = start(config).unwrap();
        let reply = exchange(&network, "/").await;
        gateway.stop();
        gateway.ended().await;
        reply
    });
    assert!(reply.starts_with("HTTP/1.1 503"), "{reply}");
    assert!(reply.contains("has no address yet"), "{reply}");
}
