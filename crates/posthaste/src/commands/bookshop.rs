//! `posthaste bookshop`: the reference service in the foreground, until a signal.

use std::net::SocketAddr;
use std::path::PathBuf;

use posthaste_bookshop::{BookshopConfig, LAWS, MISBEHAVIOURS, ServiceSpec, start};
use posthaste_serve::{Signals, listen_address};
use posthaste_units::Seed;

use super::{Failure, log_to_stderr, print};

/// Serve books as SOAP, page, JSON, gRPC and streams, with a capacity that can be set.
///
/// Prints the address once it listens. SIGTERM or Ctrl-C finishes replies under way and ends.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  The shop on a port of its own, and what it offers:
    posthaste bookshop --listen 127.0.0.1:8080 &
    curl http://127.0.0.1:8080/
  One core, and a queue that fills as a small server's does:
    posthaste bookshop --cpus 0 --backlog 128 --concurrency 384
  The same on a machine 20 times slower, so that a generator next to it can overload it:
    posthaste bookshop --cpus 0 --backlog 128 --concurrency 384 --slowdown 20
  A queue with a known answer (M/D/1, 5 ms a request), to check a load generator against:
    posthaste bookshop --service md1:5ms
  The same, but it pauses for 300 ms every 30 s, and 1 % of its replies are errors:
    posthaste bookshop --service md1:5ms,stall=300ms/30s,error=1%:500
  HTTPS with HTTP/1.1, HTTP/2 and HTTP/3 on one port, and a load over HTTP/3:
    posthaste bookshop --listen 127.0.0.1:8443 --cert cert.pem --key key.pem --http3 &
    posthaste load https://127.0.0.1:8443/ --http 3 --insecure --rate 100/s --duration 10s
  A call of gRPC, by server reflection:
    posthaste bookshop &
    ISBN=$(curl -s http://127.0.0.1:8080/isbns.csv | sed -n 2p)
    grpcurl -plaintext -d '{\"isbn\": \"'$ISBN'\"}' 127.0.0.1:8080 bookshop.v1.Bookshop/GetBook
  Twenty events, one every 50 ms, each with the time at which it was sent:
    curl -N 'http://127.0.0.1:8080/orders?events=20&gap=50ms'
  Fifty tokens of a chat, at gaps of 20 ms on average:
    curl -N 'http://127.0.0.1:8080/v1/chat/completions?gap=exp:20ms' -d \\
      '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}], \"max_tokens\": 50, \"stream\": true}'")]
pub(crate) struct Args {
    /// Address of the shop; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = listen_address)]
    listen: SocketAddr,
    /// Event loops, each with a thread of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: usize,
    /// Cores for those threads, for example 0 or 2,3
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Connections that wait in the kernel to be accepted; more are not answered
    #[arg(long, value_name = "N", default_value_t = 1024)]
    backlog: u32,
    /// Connections in service at most; others wait in the backlog
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    concurrency: Option<usize>,
    #[arg(long, value_name = "SERVICE", help = service_help())]
    service: Option<ServiceSpec>,
    /// Emulate a machine N times slower: each request takes this multiple of its processor time
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "service"
    )]
    slowdown: u32,
    /// Books in the catalogue
    #[arg(long, value_name = "N", default_value_t = 1000)]
    books: usize,
    /// Compress replies for clients that accept gzip, at this level (1 to 9)
    #[arg(long, value_name = "LEVEL")]
    gzip: Option<u32>,
    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Serve HTTP/3 as well, on the UDP port with the same number; needs --cert and --key. Other replies announce it
    /// (Alt-Svc). One event loop serves all connections of HTTP/3
    #[arg(long, requires_all = ["cert", "key"])]
    http3: bool,
    /// Seed of the catalogue and of drawn service times
    #[arg(long, value_name = "N", default_value_t = Seed::default())]
    seed: Seed,
}

/// The help of `--service`, with an example of each law and misbehaviour.
fn service_help() -> String {
    let laws: Vec<_> = LAWS.iter().map(|law| law.example).collect();
    let (last, laws) = laws.split_last().expect("the table has laws");
    let misbehaviours: Vec<_> = MISBEHAVIOURS.iter().map(|known| known.example).collect();
    format!(
        "A known service instead of the machine's speed: a law, {} or {last}, then misbehaviours after commas: {}. It \
         holds for every path but /healthz and /metrics, and for calls of gRPC but those of health and reflection. \
         Replies then say how busy its servers are (X-Busy)",
        laws.join(", "),
        misbehaviours.join(", ")
    )
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        log_to_stderr();
        let scheme = if self.cert.is_some() { "https" } else { "http" };
        let running = start(BookshopConfig {
            listen: self.listen,
            threads: self.threads,
            cpus: self.cpus,
            backlog: self.backlog,
            concurrency: self.concurrency,
            service: self.service,
            slowdown: self.slowdown,
            books: self.books,
            seed: self.seed,
            compression: self.gzip,
            tls: self.cert.zip(self.key),
            http3: self.http3,
            ..BookshopConfig::default()
        })
        .map_err(|error| match error {
            posthaste_bookshop::BookshopError::Listen(_)
            | posthaste_bookshop::BookshopError::Start(_) => Failure::run(error),
            _ => Failure::usage(error),
        })?;
        let mut signals = Signals::take().map_err(Failure::run)?;
        print(&format!("listening on {scheme}://{}\n", running.addr))?;
        signals.wait();
        running.stop();
        running.join();
        Ok(())
    }
}
