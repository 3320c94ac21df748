//! The routes of one thread.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use hyper::StatusCode;
use posthaste_compression::{Described, Menu, Policy, Rules, Wish};
use posthaste_qos::marking::Marks;
use posthaste_units::{Dscp, Size};

use super::resolved::{ResolvedConfig, ResolvedRoute};
use crate::error::Rejection;
use crate::observe::metrics::GatewayMetrics;
use crate::request::path::{normalize_path, written_path};
use crate::response::cache::ReplyCache;
use crate::tunnel::SwitchRules;
use crate::upstream::Upstreams;
use crate::upstream::health_check::HealthChecks;

/// The routes of one thread, and what its requests share under one configuration.
pub(crate) struct Router {
    pub(crate) resolved: Arc<ResolvedConfig>,
    /// Longest path first: the first match is the route.
    routes: Vec<Route>,
    /// `None` if marking is off.
    pub(crate) marks: Option<Marks>,
    /// Repeated replies since this configuration took effect.
    pub(crate) cache: RefCell<ReplyCache>,
    _checks: HealthChecks,
}

/// Destination of the requests below a path.
pub(crate) struct Route {
    /// Without a trailing slash.
    path: String,
    pub(crate) upstreams: Upstreams,
    pub(crate) policy: Policy,
    pub(crate) menu: Menu,
    pub(crate) rules: Rules,
    /// Preferences of calls that state none, by their action; `wish` applies to all others.
    pub(crate) described: Arc<Described>,
    pub(crate) wish: Wish,
    pub(crate) mark: Option<Dscp>,
    pub(crate) switches: SwitchRules,
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
    ) -> Self {
        let (config, compression) = (&route.config, &resolved.config.compression);
        let timeouts = &resolved.config.timeouts;
        Self {
            path: normalize_path(&config.path)
                .trim_end_matches('/')
                .to_owned(),
            upstreams: Upstreams::new(metrics, route.upstreams, timeouts),
            policy: compression.policy,
            menu: compression.steps,
            rules: Rules {
                least: compression.least,
                events: compression.events,
                opted_out: !config.compression,
            },
            described: route.described.clone(),
            wish: config.wish,
            mark: config.mark,
            switches: SwitchRules {
                protocols: config.upgrade.clone(),
                idle: config.timeouts.tunnel.unwrap_or(timeouts.tunnel).into(),
            },
        }
    }

    /// True if the path is the route's own or below it.
    fn is_above(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Router {
    /// Builds the routes. With `checks`, this thread runs the health checks of the upstreams.
    pub(crate) fn new(
        metrics: &Arc<GatewayMetrics>,
        resolved: Arc<ResolvedConfig>,
        checks: bool,
    ) -> Self {
        let routes = resolved.routes();
        let mut routes: Vec<_> = routes
            .map(|route| Route::new(&route, &resolved, metrics))
            .collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        let mut running = HealthChecks::default();
        if checks {
            for route in resolved.routes() {
                running.add(&route.config.health, route.targets);
            }
        }
        let config = &resolved.config;
        assert!(config.threads > 0, "a gateway has no thread");
        let cache_bytes = config.compression.cache.as_bytes() / config.threads as u64;
        Self {
            cache: RefCell::new(ReplyCache::new(Size::from_bytes(cache_bytes))),
            marks: config.marking.marks(),
            resolved,
            routes,
            _checks: running,
        }
    }

    /// Finds the route of a path's normal form. The path as written must lead to the same route.
    pub(crate) fn route(&self, path: &str) -> Result<&Route, RouteError> {
        let find = |path: &str| self.routes.iter().find(|route| route.is_above(path));
        let normal = normalize_path(path);
        let route = find(&normal);
        let is_plain = matches!(normal, Cow::Borrowed(_));
        let is_same = |other: &Route| route.is_some_and(|route| std::ptr::eq(route, other));
        if !is_plain && !find(&written_path(path)).map_or(route.is_none(), is_same) {
            return Err(RouteError::Ambiguous);
        }
        route.ok_or(RouteError::NotFound)
    }

    /// Closes connections that have been unused too long.
    pub(crate) fn close_unused(&self) {
        for route in &self.routes {
            route.upstreams.close_unused();
        }
    }
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
