//! The routes of one thread.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, HeaderName};
use posthaste_compression::{Described, Wish};
use posthaste_gateway_config::{GatewayConfig, RouteConfig};
use posthaste_http::path::{normalize_path, written_path};
use posthaste_qos::marking::Marks;
use posthaste_units::{Dscp, Size};

use super::field_changes::FieldChanges;
use super::hosts::HostIndex;
use super::resolved::{ResolvedConfig, ResolvedRoute};
use crate::accounts::payment::Paying;
use crate::admission::AdmissionSubject;
use crate::admission::tier_rules::TierRules;
use crate::error::Rejection;
use crate::offers::thread::OfferUpstreams;
use crate::record::metrics::GatewayMetrics;
use crate::record::times::RouteTimes;
use crate::request::client::ClientIdentity;
use crate::request::rewrite::{LocationReversal, PathRewrite};
use crate::request::trailers::RemovedTrailers;
use crate::response::cache::ReplyCache;
use crate::response::route_compression::RouteCompression;
use crate::tunnel::SwitchRules;
use crate::upstream::Upstreams;
use crate::upstream::known_pools::KnownPools;

/// The routes of one thread, and what its requests share under one configuration.
pub(crate) struct Router {
    pub(crate) resolved: Arc<ResolvedConfig>,
    /// By host, and for each host the longest path first: the first match is the route.
    routes: Vec<Route>,
    /// `None` if no route has a host.
    hosts: Option<HostIndex>,
    pub(crate) tiers: TierRules,
    /// `None` if marking is off.
    pub(crate) marks: Option<Marks>,
    /// Repeated replies since this configuration took effect.
    pub(crate) cache: RefCell<ReplyCache>,
}

/// Destination of the requests for a host below a path.
pub(crate) struct Route {
    /// In the form of [`RouteConfig::normal_host`](posthaste_gateway_config::RouteConfig::normal_host).
    host: Option<String>,
    /// Without a trailing slash.
    path: String,
    pub(crate) upstreams: Upstreams,
    /// Upstreams from offers. Those above then take the requests while there is no valid offer.
    pub(crate) offers: Option<OfferUpstreams>,
    pub(crate) compression: RouteCompression,
    /// Preferences of calls that state none, by their action; `wish` applies to all others.
    pub(crate) described: Arc<Described>,
    pub(crate) wish: Wish,
    pub(crate) mark: Option<Dscp>,
    pub(crate) switches: SwitchRules,
    /// Maximum size of a request body.
    pub(crate) body_limit: Size,
    /// The number of requests is limited.
    is_limited: bool,
    pub(crate) rewrite: Option<PathRewrite>,
    pub(crate) fields: RouteFields,
    pub(crate) times: Arc<RouteTimes>,
    /// The log says that the route has no HTTP/2 for calls of gRPC.
    pub(super) has_reported_call: Cell<bool>,
}

/// The changes of a route to fields and trailers.
pub(crate) struct RouteFields {
    request: Option<FieldChanges>,
    pub(crate) reply: Option<Rc<FieldChanges>>,
    pub(crate) removed_request_trailers: RemovedTrailers,
    pub(crate) removed_reply_trailers: RemovedTrailers,
}

/// Reasons why a path has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteError {
    /// No route matches.
    NotFound,
    /// The path as written and its normal form lead to different routes, or only one of them has a route.
    Ambiguous,
}

impl Route {
    fn new(
        route: &ResolvedRoute<'_>,
        resolved: &ResolvedConfig,
        metrics: &Arc<GatewayMetrics>,
        pools: &KnownPools,
    ) -> Self {
        let config = &route.config;
        let timeouts = config.timeouts.over(&resolved.config.timeouts);
        let rewrite = |to: &String| PathRewrite::new(&config.path, to);
        let mut upstreams = Upstreams::new(metrics, route.upstreams, &timeouts, pools);
        let fields = RouteFields::new(config, &resolved.config);
        upstreams.limit_fields(resolved.config.limits.fields);
        upstreams.forward_hints(&fields.removed_reply_trailers);
        Self {
            host: config.normal_host(),
            path: normalize_path(&config.path)
                .trim_end_matches('/')
                .to_owned(),
            upstreams,
            offers: route
                .offers
                .map(|offers| OfferUpstreams::new(metrics, offers, &timeouts, pools)),
            compression: RouteCompression::new(&resolved.config.compression, !config.compression),
            described: route.described.clone(),
            wish: config.wish,
            mark: config.mark,
            switches: SwitchRules {
                protocols: config.upgrade.clone(),
                idle: config.timeouts.tunnel.unwrap_or(timeouts.tunnel).into(),
            },
            is_limited: !config.limits.requests().is_empty(),
            body_limit: config.limits.body.unwrap_or(resolved.config.limits.body),
            rewrite: config.rewrite.as_ref().map(rewrite),
            fields,
            times: route.times.clone(),
            has_reported_call: Cell::new(false),
        }
    }

    /// True if the path is the route's own or below it.
    fn is_above(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns a request of this route for admission.
    pub(crate) fn subject<'a>(
        &'a self,
        identity: &'a ClientIdentity,
        tier: usize,
        paying: Paying<'a>,
    ) -> AdmissionSubject<'a> {
        AdmissionSubject {
            identity,
            route: &self.times.name,
            is_limited: self.is_limited,
            codings: self.compression.menu.codings(),
            tier,
            paying,
        }
    }

    /// Applies the configured changes to the fields of a request to the upstream. If paths are rewritten, returns the
    /// reversal for the reply.
    pub(crate) fn change_request(
        &self,
        headers: &mut HeaderMap,
    ) -> Option<Box<LocationReversal<'_>>> {
        let named = self
            .rewrite
            .as_ref()
            .and_then(|_| headers.get(HOST).cloned());
        if let Some(changes) = &self.fields.request {
            changes.apply(headers);
        }
        let rewrite = self.rewrite.as_ref()?;
        Some(Box::new(rewrite.reversal(named, headers)))
    }
}

impl RouteFields {
    fn new(config: &RouteConfig, gateway: &GatewayConfig) -> Self {
        let request = FieldChanges::new(&config.request_headers);
        let reply = FieldChanges::new(&config.reply_headers);
        let request_names = request.iter().flat_map(FieldChanges::names);
        let reply_names = reply.iter().flat_map(FieldChanges::names);
        Self {
            removed_request_trailers: removed(request_names.chain(key_field(gateway))),
            removed_reply_trailers: removed(reply_names),
            request,
            reply: reply.map(Rc::new),
        }
    }
}

impl Router {
    /// Builds the routes. Addresses that `before` has, too, keep their connections.
    pub(crate) fn new(
        metrics: &Arc<GatewayMetrics>,
        resolved: Arc<ResolvedConfig>,
        before: Option<&Self>,
    ) -> Self {
        let mut pools = KnownPools::default();
        for route in before.iter().flat_map(|before| &before.routes) {
            route.upstreams.add_pools(&mut pools);
            route
                .offers
                .iter()
                .for_each(|offers| offers.add_pools(&mut pools));
        }
        let routes = resolved.routes();
        let mut routes: Vec<_> = routes
            .map(|route| Route::new(&route, &resolved, metrics, &pools))
            .collect();
        routes.sort_by_cached_key(|route| (route.host.clone(), Reverse(route.path.len())));
        let config = &resolved.config;
        assert!(config.threads > 0, "a gateway has no thread");
        let cache_bytes = config.compression.cache.as_bytes() / config.threads as u64;
        Self {
            cache: RefCell::new(ReplyCache::new(Size::from_bytes(cache_bytes))),
            tiers: TierRules::new(&config.protection.tiers),
            marks: config.marking.marks(),
            resolved,
            hosts: HostIndex::new(routes.iter().map(|route| route.host.as_deref())),
            routes,
        }
    }

    /// Finds the route of a path's normal form, for the host in `headers`. The path as written must lead to the same
    /// route.
    pub(crate) fn route(&self, headers: &HeaderMap, path: &str) -> Result<&Route, RouteError> {
        let routes = match &self.hosts {
            None => &*self.routes,
            Some(hosts) => {
                let host = headers.get(HOST).and_then(|host| host.to_str().ok());
                &self.routes[hosts.find(host)]
            }
        };
        let find = |path: &str| routes.iter().find(|route| route.is_above(path));
        let normal = normalize_path(path);
        let route = find(&normal);
        let is_plain = matches!(normal, Cow::Borrowed(_));
        let is_same = |other: &Route| route.is_some_and(|route| std::ptr::eq(route, other));
        if !is_plain && !find(&written_path(path)).map_or(route.is_none(), is_same) {
            return Err(RouteError::Ambiguous);
        }
        route.ok_or(RouteError::NotFound)
    }

    /// Closes the connections that no later configuration uses: unused ones now, the others after their request.
    pub(crate) fn retire(&self) {
        for route in &self.routes {
            route.upstreams.retire();
            route.offers.iter().for_each(OfferUpstreams::retire);
        }
    }

    /// Closes connections that have been unused too long.
    pub(crate) fn close_unused(&self) {
        for route in &self.routes {
            route.upstreams.close_unused();
            route.offers.iter().for_each(OfferUpstreams::close_unused);
        }
    }
}

/// Trailers with these names, or `None` for no name.
fn removed(names: impl Iterator<Item = HeaderName>) -> RemovedTrailers {
    let names: Rc<[HeaderName]> = names.collect();
    Some(names).filter(|names| !names.is_empty())
}

/// The field with the key of an account, if it is removed from requests.
fn key_field(config: &GatewayConfig) -> Option<HeaderName> {
    let accounts = config.accounts.as_ref();
    let accounts = accounts.filter(|accounts| !accounts.forward_key)?;
    accounts.key_field.parse().ok()
}

impl From<RouteError> for Rejection {
    fn from(error: RouteError) -> Self {
        match error {
            RouteError::NotFound => Self::new(StatusCode::NOT_FOUND, "no route leads there"),
            RouteError::Ambiguous => Self::new(
                StatusCode::BAD_REQUEST,
                "the path leads to different routes as it is written and in its normal form: send the normal form",
            ),
        }
    }
}
