//! What a gateway is told: `gateway.toml`, checked whole before anything starts.
//!
//! Every key has a default but `listen` and the routes. What is wrong is named with its line, its
//! column and the nearest key there is; the reading is in [`read`].

mod marking;
mod protection;
mod read;
mod traces;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use posthaste_units::{Dscp, Ratio, Size, Span};
use posthaste_wsqos::{Menu, Policy, Rules, Step, Threshold, Wish};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use self::marking::{MarkPolicy, Marking};
pub use self::protection::{Guard, Prices, Protection, Publish};
pub use self::traces::Traces;
pub use posthaste_serve::ConfigError;

/// A gateway's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where clients connect; port 0 takes any free one.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Where `/status`, `/metrics` and `/healthz` are; default any free port of 127.0.0.1, which the
    /// gateway prints.
    #[serde(default = "any_port", deserialize_with = "address")]
    pub admin: SocketAddr,
    /// A file to which a line of JSON is appended for each reply.
    pub access_log: Option<PathBuf>,
    /// Which requests are traced, for an OpenTelemetry collector. Default none.
    pub traces: Option<Traces>,
    /// Event loops, each with a thread of its own. Default 1.
    #[serde(default = "one")]
    pub threads: usize,
    /// Processors for those threads, in turn; empty leaves them free.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Connections that wait in the kernel to be accepted. Default 4096.
    #[serde(default = "backlog")]
    pub backlog: u32,
    /// Connections in service at most; default as many as there are descriptors.
    pub connections: Option<usize>,
    /// Certificate chain and key, for HTTPS and HTTP/2 by ALPN.
    pub tls: Option<Tls>,
    /// How long each phase may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How much a client may send.
    #[serde(default)]
    pub limits: Limits,
    /// Which replies are compressed, and how.
    #[serde(default)]
    pub compression: Compression,
    /// Which mark the packets of replies get.
    #[serde(default)]
    pub marking: Marking,
    /// What is protected.
    #[serde(default)]
    pub demand: Demand,
    /// Who is let in when more come than can be served.
    #[serde(default)]
    pub protection: Protection,
    /// Offers that follow the load; with `protection.policy = "prices"`.
    pub prices: Option<Prices>,
    /// A machine so many times slower than this one: each request costs this multiple of its own
    /// processor time. Default 1; for experiments, and not to be had from a file.
    #[serde(skip, default = "once")]
    pub slowdown: u32,
    /// Where requests go: the longest matching path decides.
    #[serde(rename = "route", default)]
    pub routes: Vec<Route>,
}

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// How long each phase may take. Those towards the client are judged four times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// A client's connection without a request. Default 60 s.
    pub idle: Span,
    /// A request's header, from its first byte. Default 10 s.
    pub head: Span,
    /// A request's body, without a byte of progress. Default 30 s.
    pub body: Span,
    /// A client that does not take its reply. Default 30 s.
    pub write: Span,
    /// Connecting to an upstream, TLS included. Default 1 s.
    pub connect: Span,
    /// An upstream that neither takes more of a request nor begins its reply: beyond it, 504. Default 30 s.
    pub reply: Span,
    /// A reply's body, without a byte of progress. Default 30 s.
    pub reply_body: Span,
    /// An unused connection to an upstream. Default 15 s.
    pub upstream_idle: Span,
    /// Requests in service when the gateway ends. Default 10 s.
    pub grace: Span,
}

/// How much a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A request's body: beyond it, 413. Default 1 GB.
    pub body: Size,
}

/// Which replies are compressed, and how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compression {
    /// `never`, `always`, `threshold` (the default), `ladder` or `link`.
    #[serde(deserialize_with = "spelled")]
    pub policy: Policy,
    /// Codings and levels on offer, the preferred first. Default `zstd-1`, `gzip-1`, `br-1`, `zstd-3`,
    /// `gzip-6`, `br-5`.
    #[serde(deserialize_with = "steps")]
    pub steps: Menu,
    /// Shorter replies stay as they are. Default 512 B.
    pub least: Size,
    /// Whether event streams are compressed, each event flushed. Default no.
    pub events: bool,
    /// How much is kept of replies that came before and of what became of them, so that they need not be
    /// compressed again; nothing with 0. Default 16 MB.
    pub cache: Size,
    /// The busy share up to which optional compression may fill the workers. Default 80 %.
    pub threshold: Ratio,
    /// The busy share below which demand is no longer called high: it moves what is reported, not what
    /// is compressed. Default 70 %.
    pub release: Ratio,
    /// The shortest time between two changes of that report. Default 5 s.
    pub dwell: Span,
}

/// What is protected: optional compression leaves it below the threshold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Demand {
    /// By default the gateway's own workers.
    pub watch: Watch,
}

/// Whose busy share is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// `"workers"`: each thread of the gateway watches itself.
    #[default]
    Workers,
    /// `{ process = "java" }` or `{ process = 4711 }`: every process of that name, or that one.
    Process(Process),
    /// `{ cgroup = "system.slice/shop.service" }`, below /sys/fs/cgroup.
    Cgroup(String),
    /// `{ cores = [2, 3] }`, whoever uses them.
    Cores(Vec<usize>),
    /// `{ upstream = "X-Busy" }`: what the upstreams' replies say in that field, as `0.83` or `83%`.
    /// It does not go on to the client.
    Upstream(String),
}

/// A process by its number or its name (`comm`, at most 15 bytes).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Process {
    /// Its number.
    Number(u32),
    /// Its name.
    Name(String),
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers => f.write_str("workers"),
            Self::Process(Process::Number(number)) => write!(f, "process {number}"),
            Self::Process(Process::Name(name)) => write!(f, "process {name}"),
            Self::Cgroup(path) => write!(f, "cgroup {path}"),
            Self::Cores(cores) => write!(f, "cores {cores:?}"),
            Self::Upstream(field) => write!(f, "upstreams by {field}"),
        }
    }
}

/// Where the requests below a path go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// A prefix in whole segments: `/shop` is for `/shop` and `/shop/1`, not for `/shopping`.
    pub path: String,
    /// Addresses (`127.0.0.1:9000`) or URLs (`https://books.example:443`); the least busy is asked.
    pub upstream: Vec<String>,
    /// A PEM file of those whom `https` upstreams are trusted by; default the machine's own.
    pub authority: Option<PathBuf>,
    /// How the upstreams' health is known.
    #[serde(default)]
    pub health: Health,
    /// Whether replies may be compressed. Default yes; no where secrets stand beside what an attacker
    /// chose (BREACH).
    #[serde(default = "yes")]
    pub compression: bool,
    /// The service's description: what it says of compression holds for calls that state no wish.
    pub wsdl: Option<PathBuf>,
    /// The wish of clients that state none: `never`, `always`, `if-possible` or `unstated`, the default.
    #[serde(default, deserialize_with = "wish")]
    pub wish: Wish,
    /// The mark of replies whose client states no priorities and asks for no mark.
    pub mark: Option<Dscp>,
}

/// How an upstream's health is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// A path to ask for; any status below 500 is healthy. Default none: connections tell.
    pub path: Option<String>,
    /// How often. Default 2 s.
    pub every: Span,
    /// Failures in a row that take an upstream out, of checks or of connections. Default 3.
    pub failures: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        let front = posthaste_serve::Timeouts::default();
        Self {
            idle: front.idle,
            head: front.head,
            body: front.body,
            write: front.write,
            connect: Span::from_secs(1),
            reply: Span::from_secs(30),
            reply_body: Span::from_secs(30),
            upstream_idle: Span::from_secs(15),
            grace: front.grace,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: Size::from_bytes(1_000_000_000),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: None,
            every: Span::from_secs(2),
            failures: 3,
        }
    }
}

impl Default for Compression {
    fn default() -> Self {
        let (rules, threshold) = (Rules::default(), Threshold::default());
        Self {
            policy: Policy::default(),
            steps: Menu::default(),
            least: rules.least,
            events: rules.events,
            cache: Size::from_bytes(16_000_000),
            threshold: threshold.high,
            release: threshold.low,
            dwell: threshold.dwell,
        }
    }
}

impl Compression {
    /// When demand is high.
    pub(crate) fn when(&self) -> Threshold {
        Threshold {
            high: self.threshold,
            low: self.release,
            dwell: self.dwell,
        }
    }
}

fn spelled<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    posthaste_serve::listen_address(&text).map_err(D::Error::custom)
}

fn steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Menu, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let steps: Result<Vec<Step>, _> = names.iter().map(|name| name.parse()).collect();
    match steps.map_err(D::Error::custom)?.as_slice() {
        [] => Err(D::Error::custom(
            "there is no step: policy = \"never\" compresses nothing",
        )),
        steps => Ok(Menu::new(steps)),
    }
}

fn wish<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Wish, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = Wish::ALL.into_iter().find(|wish| wish.name() == name);
    found.ok_or_else(|| {
        let all = Wish::ALL.map(Wish::name).join(", ");
        D::Error::custom(format!("there is no wish {name:?}: write one of {all}"))
    })
}

fn yes() -> bool {
    true
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn once() -> u32 {
    1
}

fn one() -> usize {
    1
}

fn backlog() -> u32 {
    4096
}
