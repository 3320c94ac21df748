//! `[[route]]`: upstreams and rules for a host and a path prefix.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use http::header::{HeaderName, HeaderValue};
use posthaste_admission::RequestLimits;
use posthaste_compression::Wish;
use posthaste_http::path::{normalize_path, written_path};
use posthaste_units::{Dscp, Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::names::{check_host, check_path};
use crate::{Health, OfferRouting, Timeouts};

/// Upper bound on the attempts of one request.
const MAX_ATTEMPTS: u32 = 10;

/// Requests that a rate limit of a route admits at once.
const DEFAULT_BURST: u32 = 20;

/// Fields that frame messages or are for one hop. The gateway writes them.
const FRAMING: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Further fields of requests: the gateway answers an expectation itself.
const FIXED_IN_REQUESTS: [&str; 1] = ["expect"];

/// Further fields of replies that have to agree with the content, which the gateway compresses.
const FIXED_IN_REPLIES: [&str; 3] = ["accept-ranges", "content-range", "vary"];

/// Upstreams and rules for a host and a path prefix.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub struct RouteConfig {
    /// Host of the requests, without a port: `shop.example`, `*.shop.example` for every name below it, or an IP
    /// address. Case and the port of a request do not count. Without it, requests for hosts that no other route names.
    pub host: Option<String>,
    /// Path prefix of whole segments: `/shop` matches `/shop` and `/shop/1`, not `/shopping`. Starts with `/`.
    /// Without `*`: there are no wildcards. With `rewrite`, without backslashes.
    pub path: String,
    /// Path prefix that replaces `path` in requests to the upstream: with `path = "/shop"` and `rewrite = "/"`,
    /// `/shop/1` becomes `/1`. `Location` and `Content-Location` of replies are changed back, if they name the host of
    /// the request or no host. Paths of cookies stay. Starts with `/`, without backslashes. Without it, paths
    /// stay.
    pub rewrite: Option<String>,
    /// Addresses (`127.0.0.1:9000`) or URLs (`https://books.example:443`), each once. A name stands for all its
    /// addresses. A request goes to the address with the fewest requests in flight. With `offers`, these upstreams take
    /// the requests while there is no valid offer, and the list may be empty; otherwise it has at least one entry.
    #[serde(default)]
    pub upstream: Vec<String>,
    /// Upstreams from the offers at a broker.
    pub offers: Option<OfferRouting>,
    /// Version of HTTP spoken to the upstreams.
    #[serde(default)]
    pub protocol: UpstreamProtocol,
    /// PEM file with the certificates trusted for `https` upstreams. Without it, those of the system.
    pub authority: Option<PathBuf>,
    /// Protocols to which a connection may switch (RFC 9110, section 7.8; RFC 8441 over HTTP/2). Requests for other
    /// protocols are forwarded without their `Upgrade` field. An empty list forbids all. The upstream is asked over
    /// HTTP/1.1, whatever `protocol` is.
    #[serde(default = "websocket")]
    pub upgrade: Vec<String>,
    /// Health of the upstreams.
    #[serde(default)]
    pub health: Health,
    /// Temporary exclusion of upstream addresses that fail or are slow. Without this table only `health` excludes.
    pub ejection: Option<Ejection>,
    /// Further attempts of requests that failed.
    #[serde(default)]
    pub retry: Retry,
    /// Changes of header fields of requests to the upstream, after all other changes. `Host` can be set; if it is
    /// removed, the upstream gets its own name.
    #[serde(default)]
    pub request_headers: FieldEdits,
    /// Changes of header fields of replies to the client, after all other changes. They apply to error replies of the
    /// gateway for requests of this route, too.
    #[serde(default)]
    pub reply_headers: FieldEdits,
    /// Name of the service behind the route, for `protection`. Routes of one service share a limit, routes of others do not.
    /// Default: the addresses in `upstream`, so that routes with the same ones share it.
    pub service: Option<String>,
    /// True for requests that `protection.policy` never rejects, such as health checks or a log-in. They count among those
    /// in service. Limits of the route and of clients hold for them, too.
    #[serde(default)]
    pub exempt: bool,
    /// Limits on requests, instead of those in `limits`.
    #[serde(default)]
    pub limits: RouteLimits,
    /// Time limits, instead of those in `timeouts`.
    #[serde(default)]
    pub timeouts: RouteTimeouts,
    /// `false` disables compression below this path, in every spelling of the path. Required where a reply contains
    /// secrets next to data chosen by an attacker (BREACH).
    #[serde(default = "yes")]
    pub compression: bool,
    /// Service description with compression preferences for calls that state none.
    pub wsdl: Option<PathBuf>,
    /// Preference of clients that state none.
    #[serde(default, deserialize_with = "wish")]
    #[schemars(extend("default" = Wish::default().name()))]
    pub wish: Wish,
    /// Mark of replies for clients that request none.
    pub mark: Option<Dscp>,
}

/// Version of HTTP spoken to the upstreams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN over TLS, with prior knowledge otherwise. Required by gRPC.
    Http2,
    /// Over TLS, HTTP/2 if the upstream selects it by ALPN, otherwise HTTP/1.1. Without TLS, HTTP/1.1.
    Auto,
}

/// Temporary exclusion of upstream addresses that fail or are slow.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ejection {
    /// Consecutive replies with a status from 500 on, failed connections and timeouts that exclude an address. 0 means
    /// that none do.
    pub failures: u32,
    /// Exclude an address whose mean response time is more than this many times the median of the others', over
    /// windows of `interval` with at least 20 replies. Above 1. Without it, slow addresses stay.
    pub slow: Option<f64>,
    /// Window for the comparison of response times.
    pub interval: Span,
    /// Time of an exclusion, multiplied by the number of exclusions in a row, up to 10 times. Then the address gets
    /// requests again. The next exclusion is in the same row if the address was in service for less time than it was
    /// excluded before.
    pub time: Span,
    /// Maximum share of a route's addresses excluded at once. The last usable address always stays.
    pub max: Ratio,
}

/// Further attempts of idempotent requests without a body (RFC 9110, section 9.2.2) that failed. Each attempt has all
/// time limits for itself. A reply with `Retry-After` causes none: the upstream asks for a pause.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts after the first. 0 to 10. A request of which nothing was sent goes to the next upstream in any case.
    #[schemars(range(max = 10))]
    pub attempts: u32,
    /// Statuses that cause a further attempt, next to broken connections.
    pub statuses: Vec<u16>,
    /// Further attempts after `timeouts.reply`, too.
    pub timeouts: bool,
    /// Maximum share of further attempts in the requests of the last 10 s, so that retries do not multiply an overload.
    /// At least 10 in 10 s are permitted.
    pub budget: Ratio,
}

/// Changes of header fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FieldEdits {
    /// Fields removed.
    pub remove: Vec<String>,
    /// Fields set after that, each replacing all lines of its name.
    pub set: BTreeMap<String, String>,
}

/// Limits on the requests of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RouteLimits {
    /// Maximum size of a request body, as sent; beyond it 413.
    pub body: Option<Size>,
    /// Requests per second, above 0; beyond it 429.
    pub rate: Option<Rate>,
    /// Requests admitted at once by `rate`. 20 by default.
    #[schemars(range(min = 1))]
    pub burst: Option<u32>,
    /// Maximum number of requests in service or waiting; beyond it 503.
    #[schemars(range(min = 1))]
    pub concurrency: Option<u32>,
}

/// Time limits of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RouteTimeouts {
    /// Maximum time for connecting to an upstream.
    pub connect: Option<Span>,
    /// Maximum time without progress until the reply starts.
    pub reply: Option<Span>,
    /// Maximum time without progress of a reply body.
    pub reply_body: Option<Span>,
    /// Maximum time without data in either direction of a tunnel.
    pub tunnel: Option<Span>,
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            failures: 5,
            slow: None,
            interval: Span::from_secs(10),
            time: Span::from_secs(30),
            max: Ratio::new(0.5).expect("a share"),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 0,
            statuses: vec![502, 503, 504],
            timeouts: false,
            budget: Ratio::new(0.2).expect("a share"),
        }
    }
}

impl RouteConfig {
    /// The host in the form in which requests are compared with it: a name in lower case, or the usual notation of an
    /// address.
    pub fn normal_host(&self) -> Option<String> {
        let normal = |host: &String| match host.parse::<IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => host.to_ascii_lowercase(),
        };
        self.host.as_ref().map(normal)
    }

    /// Name of the route for display: its host, if it has one, and its path.
    pub fn label(&self) -> Cow<'_, str> {
        match &self.host {
            None => Cow::Borrowed(&self.path),
            Some(host) if host.contains(':') => Cow::Owned(format!("[{host}]{}", self.path)),
            Some(host) => Cow::Owned(format!("{host}{}", self.path)),
        }
    }

    /// Name of the service behind the route.
    pub fn service(&self) -> Cow<'_, str> {
        if let Some(name) = &self.service {
            return Cow::Borrowed(name);
        }
        if self.upstream.is_empty() {
            return self.label();
        }
        let mut addresses = self.upstream.clone();
        addresses.sort_unstable();
        Cow::Owned(addresses.join(","))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.service.as_ref().is_some_and(String::is_empty) {
            return Err("service is a name: write one, or leave the key out".to_owned());
        }
        if let Some(host) = &self.host {
            check_host("host", host)?;
        }
        if !self.path.starts_with('/') {
            return Err("a path begins with /".to_owned());
        }
        if let Some((prefix, _)) = self.path.split_once('*') {
            let path = &self.path;
            return Err(format!(
                "path is {path:?}: a path is a prefix and has no wildcards: write {prefix:?}"
            ));
        }
        if let Some(rewrite) = &self.rewrite {
            check_rewrite(rewrite)?;
            if self.path.contains('\\') {
                return Err("a path with rewrite has / instead of \\".to_owned());
            }
        }
        match &self.offers {
            Some(offers) => offers.check()?,
            None if self.upstream.is_empty() => {
                return Err(
                    "upstream needs at least one address, such as \"127.0.0.1:9000\"".to_owned(),
                );
            }
            None => {}
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.upstream.iter().find(|name| !names.insert(*name)) {
            return Err(format!("upstream names {twice:?} twice"));
        }
        check_upgrade(&self.upgrade)?;
        self.health.check()?;
        self.ejection.as_ref().map_or(Ok(()), Ejection::check)?;
        self.retry.check()?;
        self.request_headers
            .check("request_headers", &FIXED_IN_REQUESTS)?;
        self.reply_headers
            .check("reply_headers", &FIXED_IN_REPLIES)?;
        self.limits.check()?;
        self.timeouts.check()
    }
}

/// Accepts a path in its normal form. The gateway compares paths with it.
fn check_rewrite(path: &str) -> Result<(), String> {
    check_path("rewrite", path)?;
    if path.contains(['?', '#', ';', '\\']) {
        return Err(format!(
            "rewrite is {path:?}: write a path without ?, #, ; or \\"
        ));
    }
    let written = written_path(path);
    if normalize_path(path) != written {
        return Err(format!(
            "rewrite is {path:?}: write a path without empty segments, dot segments and encoded slashes"
        ));
    }
    Ok(())
}

fn check_upgrade(protocols: &[String]) -> Result<(), String> {
    for protocol in protocols {
        if protocol.eq_ignore_ascii_case("h2c") {
            return Err(
                "upgrade must not contain \"h2c\": requests inside the tunnel would pass the gateway unchecked"
                    .to_owned(),
            );
        }
        if protocol.parse::<HeaderName>().is_err() {
            return Err(format!("upgrade: {protocol:?} is no name of a protocol"));
        }
    }
    Ok(())
}

impl Ejection {
    fn check(&self) -> Result<(), String> {
        if self.slow.is_some_and(|slow| slow.is_nan() || slow <= 1.0) {
            return Err("ejection.slow is above 1".to_owned());
        }
        if self.interval < Span::from_millis(100) || self.time < Span::from_millis(100) {
            return Err("ejection.interval and ejection.time are at least 100ms".to_owned());
        }
        Ok(())
    }
}

impl Retry {
    fn check(&self) -> Result<(), String> {
        if self.attempts > MAX_ATTEMPTS {
            return Err(format!("retry.attempts is at most {MAX_ATTEMPTS}"));
        }
        if let Some(status) = self
            .statuses
            .iter()
            .find(|status| !(400..600).contains(*status))
        {
            return Err(format!(
                "retry.statuses has {status}: write statuses from 400 to 599"
            ));
        }
        Ok(())
    }
}

impl FieldEdits {
    /// `fixed` are fields that cannot be changed, next to [`FRAMING`] and the handshake of WebSocket.
    fn check(&self, key: &str, fixed: &[&str]) -> Result<(), String> {
        for name in self.remove.iter().chain(self.set.keys()) {
            if name.parse::<HeaderName>().is_err() {
                return Err(format!("{key}: {name:?} is not the name of a header field"));
            }
            let mut unchanged = FRAMING.iter().chain(fixed);
            let is_of_switch = name.to_ascii_lowercase().starts_with("sec-websocket-");
            if is_of_switch || unchanged.any(|field| name.eq_ignore_ascii_case(field)) {
                return Err(format!("{key}: {name} is written by the gateway"));
            }
        }
        let mut names = BTreeSet::new();
        for (name, value) in &self.set {
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(format!("{key}.set names {name} twice"));
            }
            if HeaderValue::from_str(value).is_err() {
                return Err(format!("{key}.set: {value:?} is no value of {name}"));
            }
        }
        Ok(())
    }
}

impl RouteLimits {
    /// The limits on the number of requests, as the rules of admission take them.
    pub fn requests(&self) -> RequestLimits {
        let burst = self.burst.unwrap_or(DEFAULT_BURST);
        RequestLimits {
            rate: self.rate.map(|rate| (rate.as_per_second(), burst)),
            concurrency: self.concurrency,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.rate.is_some_and(|rate| rate.as_per_second() <= 0.0) || self.burst == Some(0) {
            return Err("limits.rate and limits.burst are above 0".to_owned());
        }
        if self.burst.is_some() && self.rate.is_none() {
            return Err("limits.burst does nothing without limits.rate".to_owned());
        }
        match self.concurrency {
            Some(0) => Err("limits.concurrency is at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}

impl RouteTimeouts {
    /// These limits, and for those that are not set the ones in `all`.
    pub fn over(&self, all: &Timeouts) -> Timeouts {
        Timeouts {
            connect: self.connect.unwrap_or(all.connect),
            reply: self.reply.unwrap_or(all.reply),
            reply_body: self.reply_body.unwrap_or(all.reply_body),
            tunnel: self.tunnel.unwrap_or(all.tunnel),
            ..*all
        }
    }

    fn check(&self) -> Result<(), String> {
        let all = [
            ("connect", self.connect),
            ("reply", self.reply),
            ("reply_body", self.reply_body),
            ("tunnel", self.tunnel),
        ];
        for (name, limit) in all {
            if let Some(limit) = limit
                && limit < super::read::SHORTEST
            {
                return Err(format!(
                    "timeouts.{name}, {limit}, leaves no time: write 1ms or more"
                ));
            }
        }
        Ok(())
    }
}

fn websocket() -> Vec<String> {
    vec!["websocket".to_owned()]
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
