//! The configuration of a gateway: `gateway.toml`, checked completely before the start.
//!
//! Every key except `listen` and `route` has a default. Errors name the line, the column and the nearest key; the
//! reading is in [`read`]. The doc comments of keys are the descriptions in [`schema`] and in
//! docs/reference/gateway-config.md. Defaults come from the types and are not repeated in comments.

mod accounts;
mod allowed_hosts;
mod drain;
mod health;
mod listener;
mod log;
mod marking;
mod names;
mod offers;
mod protection;
mod read;
mod resolver;
mod route;
mod schema;
mod tier;
mod traces;
mod trust;
mod warnings;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use posthaste_compression::{Menu, Policy, Rules, Step, Threshold};
use posthaste_units::{Ratio, Size, Span};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::accounts::{AccountsBroker, AccountsConfig, ConfiguredAccount};
pub use self::allowed_hosts::{AllowedError, AllowedHosts};
pub use self::drain::DrainConfig;
pub use self::health::{Health, StatusRanges};
pub use self::listener::{CertificateFiles, ClientAuth, PlainHttp, PlainMode, Tls};
pub use self::log::{Log, LogFormat, QueryLogging};
pub use self::marking::{MarkPolicy, Marking};
pub use self::offers::{OfferReport, OfferRouting};
pub use self::protection::{AdmissionSettings, Prices, Protection, ProtectionPolicy, Publish};
pub use self::resolver::Resolver;
pub use self::route::{
    Ejection, FieldEdits, Retry, RouteConfig, RouteLimits, RouteTimeouts, UpstreamProtocol,
};
pub use self::schema::schema;
pub use self::tier::{ClientLimitsConfig, TierConfig, TierRule};
pub use self::traces::Traces;
pub use self::trust::{ForwardingField, Trust};
pub use posthaste_serve::ConfigError;

/// Configuration of `posthaste gateway`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// Address for clients: an IP address and a port, `localhost:PORT` or `:PORT`. Port 0 takes any free port; the
    /// gateway prints it.
    #[serde(deserialize_with = "address")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Address of `/status`, `/status.json`, `/metrics` and `/healthz`. Port 0 takes any free port; the gateway
    /// prints it.
    #[serde(default = "any_port", deserialize_with = "address")]
    #[schemars(with = "String")]
    pub admin: SocketAddr,
    /// Host names under which `admin` answers, without ports, next to IP addresses and names without a dot. Others get
    /// 421, so that no page in a browser reads it by a name of its own (DNS rebinding). `/healthz` answers under any
    /// name.
    #[serde(default)]
    pub admin_hosts: Vec<String>,
    /// Plain HTTP next to HTTPS, on another address. Only with `tls`.
    pub http: Option<PlainHttp>,
    /// File for the access log, one line per reply, appended. Opened again at SIGHUP, as after a rotation. Without it
    /// there is no access log.
    pub access_log: Option<PathBuf>,
    /// Format of the access log.
    #[serde(default)]
    pub log: Log,
    /// Trace spans for an OpenTelemetry collector. Without this table nothing is traced.
    pub traces: Option<Traces>,
    /// Event loops, one thread each. A request stays on its thread.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub threads: usize,
    /// CPUs for these threads, assigned in turn. An empty list leaves the threads on any CPU.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Connections that wait in the kernel to be accepted.
    #[serde(default = "backlog")]
    pub backlog: u32,
    /// Maximum connections in service. Without it, the hard limit of open files.
    #[schemars(range(min = 1))]
    pub connections: Option<usize>,
    /// Certificates of the gateway. Enables HTTPS, and HTTP/2 by ALPN. Without this table the gateway speaks plain
    /// HTTP.
    pub tls: Option<Tls>,
    /// Networks whose statements about clients are believed.
    #[serde(default)]
    pub trust: Trust,
    /// Resolution of the names of upstreams.
    #[serde(default)]
    pub resolver: Resolver,
    /// Time limits of each phase of a request. At least 1 ms, except `grace`; no value means "unlimited". Limits towards
    /// clients are checked four times per second.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The time between a signal to stop and the end of service.
    #[serde(default)]
    pub drain: DrainConfig,
    /// Limits on requests.
    #[serde(default)]
    pub limits: RequestLimits,
    /// Compression of replies.
    #[serde(default)]
    pub compression: Compression,
    /// DiffServ marks of the packets of replies.
    #[serde(default)]
    pub marking: Marking,
    /// Measurement of the load.
    #[serde(default)]
    pub demand: Demand,
    /// Admission of requests.
    #[serde(default)]
    pub protection: Protection,
    /// Prices and offers. Only with `protection.policy = "prices"`.
    pub prices: Option<Prices>,
    /// Accounts of clients. With policy `prices`, a request pays from the budget of its account, and its own statements
    /// about prices buy nothing without one.
    pub accounts: Option<AccountsConfig>,
    /// Multiple of its CPU time that each request costs, to emulate a slower machine. 1 except in experiments; not
    /// readable from a file.
    #[serde(skip, default = "once")]
    pub slowdown: u32,
    /// Routes by host and path. Of the routes whose host matches, those with the most specific host count, and of these
    /// the one with the longest matching path. Two routes must not have the same host and the same normal form of the
    /// path.
    #[serde(rename = "route", default)]
    #[schemars(length(min = 1))]
    pub routes: Vec<RouteConfig>,
}

/// Time limits of each phase of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Maximum time of a client connection without a request; then it is closed. Buffers are released after 0.5 s.
    pub idle: Span,
    /// Maximum time for a request head, from its first byte; then the connection is closed.
    pub head: Span,
    /// Maximum time without progress of a request body; then the connection is closed.
    pub body: Span,
    /// Maximum time in which a client takes nothing of the available reply; then the connection is closed. A slow
    /// client that makes progress may take any time.
    pub write: Span,
    /// Maximum time for connecting to an address of an upstream, including TLS; then the next address, or 504.
    pub connect: Span,
    /// Maximum time without progress while sending the request or waiting for the reply to start; then 504. Time spent
    /// waiting for the client is not counted. Calls of gRPC over HTTP/2 have `tunnel`, if that is longer.
    pub reply: Span,
    /// Maximum time without progress of a reply body; then 504 if nothing was sent to the client yet, otherwise the
    /// client connection is reset. Event streams (`text/event-stream`) and gRPC have `tunnel`, if that is longer.
    pub reply_body: Span,
    /// Time after which an unused connection to an upstream is closed.
    pub upstream_idle: Span,
    /// Maximum time without data in either direction of a tunnel (`route.upgrade`), of an event stream, of a call of
    /// gRPC, or of an HTTP/2 stream to an upstream whose client still sends; then both connections or streams are closed.
    /// A call of gRPC ends with status 14 (unavailable).
    pub tunnel: Span,
    /// Time for requests in service during shutdown; then they are cut off.
    pub grace: Span,
}

/// Limits on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub struct RequestLimits {
    /// Maximum size of a request body, as sent; beyond it 413.
    pub body: Size,
    /// Maximum number of fields of a request head; beyond it 431. Also of a reply head of an upstream by HTTP/1.1; beyond
    /// it 502. A value other than the default costs memory for each message.
    #[schemars(range(min = 1, max = 1000))]
    pub fields: usize,
}

/// Compression of replies.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compression {
    /// Rule that decides about compression.
    #[serde(deserialize_with = "spelled")]
    #[schemars(extend("default" = Policy::default().name()))]
    pub policy: Policy,
    /// Offered codings and levels, preferred first.
    #[serde(deserialize_with = "steps")]
    #[schemars(with = "Vec<Step>", length(min = 1), extend("default" = names(&Menu::default())))]
    pub steps: Menu,
    /// Shorter replies are not compressed.
    pub least: Size,
    /// Compress event streams, with a flush after each event.
    pub events: bool,
    /// Memory of the cache of compressed replies. `0B` disables it.
    pub cache: Size,
    /// Name `prefer` and `save-data` in `Vary` of every reply that may be compressed. By default they are named only in
    /// replies to requests that have these fields, because some caches keep no reply that varies by them.
    pub vary_always: bool,
    /// Busy share up to which optional compression may fill the protected resource.
    pub threshold: Ratio,
    /// Busy share below which demand is no longer reported as high. It has no effect on decisions. At most
    /// `threshold`.
    pub release: Ratio,
    /// Minimum time between two changes of the reported demand.
    pub dwell: Span,
    /// Decide and count, but forward every reply as it is, also to clients that ask for compression. CPU time and the
    /// cache stay unused, so decisions use the estimated cost of each step.
    pub dry_run: bool,
}

/// Measurement of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Demand {
    /// Resource with a busy share that optional compression keeps below `compression.threshold`, and that the prices
    /// follow.
    pub watch: Watch,
}

/// Resource with a measured busy share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Watch {
    /// Per gateway thread: time at work, and time spent waiting for a CPU.
    #[default]
    Workers,
    /// CPU time of all processes of a name of at most 15 bytes (`ps -o comm`), or of the process of a number, over all
    /// CPUs.
    Process(Process),
    /// CPU time of a cgroup below `/sys/fs/cgroup`, for example `system.slice/shop.service`.
    Cgroup(String),
    /// CPU time of these CPUs, for all users of them.
    Cores(#[schemars(length(min = 1))] Vec<usize>),
    /// Value of this field in upstream replies, as `0.83` or `83%`. The field is removed from the reply.
    Upstream(String),
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Process {
    /// Process number.
    Number(u32),
    /// Process name of at most 15 bytes, as printed by `ps -o comm`.
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
            tunnel: Span::from_secs(300),
            grace: front.grace,
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            body: Size::from_bytes(1_000_000_000),
            fields: posthaste_serve::MAX_FIELDS,
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
            vary_always: false,
            threshold: threshold.high,
            release: threshold.low,
            dwell: threshold.dwell,
            dry_run: false,
        }
    }
}

impl Compression {
    /// The busy shares between which demand is high.
    pub fn high_demand(&self) -> Threshold {
        Threshold {
            high: self.threshold,
            low: self.release,
            dwell: self.dwell,
        }
    }
}

/// The names of the steps in `menu`.
fn names(menu: &Menu) -> Vec<&'static str> {
    menu.steps().iter().map(|step| step.name()).collect()
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
