//! Resolved configurations and the routes of one thread.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_compression::{Described, Menu, Policy, Rules, Wish};
use posthaste_qos::marking::Marks;
use posthaste_units::{Dscp, Size};
use thiserror::Error;

use crate::cache::Cache;
use crate::config::{self, Config, MarkPolicy};
use crate::context::GatewayContext;
use crate::protection::Offering;
use crate::spelling::{normal, written};
use crate::upstream::{Checks, Target, TargetError, Upstreams};

/// A configuration with names resolved and files read. Shared by all threads.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) offering: Offering,
    targets: Vec<Vec<Arc<Target>>>,
    described: Vec<Arc<Described>>,
}

/// Errors of a configuration.
#[derive(Debug, Error)]
pub enum PlanError {
    /// An upstream is unusable.
    #[error("route {route:?}: {error}")]
    Target {
        /// Path of the route.
        route: String,
        /// The reason.
        error: TargetError,
    },
    /// A service description is unusable.
    #[error("the description {} cannot be used: {reason}", file.display())]
    Wsdl {
        /// Path of the file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Offers cannot be made or published.
    #[error("{0}")]
    Prices(String),
}

impl Plan {
    pub(crate) fn new(config: Config) -> Result<Self, PlanError> {
        let targets = config.routes.iter().map(|route| {
            Target::all(route).map_err(|error| PlanError::Target {
                route: route.path.clone(),
                error,
            })
        });
        let described = config
            .routes
            .iter()
            .map(|route| describe(route.wsdl.as_deref()));
        let offering = config.prices.as_ref().map(Offering::new);
        let offering = offering.transpose().map_err(PlanError::Prices)?;
        let offering = offering.unwrap_or_default();
        if offering.priorities.is_some() && config.marking.policy == MarkPolicy::Never {
            tracing::warn!(
                "offers promise priorities in the network, and nothing is marked: set marking.policy = \"asked\""
            );
        }
        Ok(Self {
            offering,
            targets: targets.collect::<Result<_, _>>()?,
            described: described.collect::<Result<_, _>>()?,
            config,
        })
    }

    /// Takes over health and reports of upstreams from `before`, for routes with the same path, checks and authority.
    pub(crate) fn remember(&mut self, before: &Self) {
        for (route, targets) in self.config.routes.iter().zip(&mut self.targets) {
            let stays = |known: &config::Route| {
                known.path == route.path
                    && known.health == route.health
                    && known.authority == route.authority
            };
            let known = before.routes().find(|(known, _)| stays(known));
            for target in targets.iter_mut().filter_map(Arc::get_mut) {
                let mut known = known.iter().flat_map(|(_, known)| known.iter());
                if let Some(known) = known.find(|known| known.is_same(target)) {
                    target.health = known.health.clone();
                    target.reported = known.reported.clone();
                }
            }
        }
    }

    /// Every configured route, with its upstreams.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (&config::Route, &[Arc<Target>])> {
        let targets = self.targets.iter().map(Vec::as_slice);
        self.config.routes.iter().zip(targets)
    }

    /// Every upstream of every route.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.targets.iter().flatten()
    }
}

/// Reads a route's description of compression preferences. Empty without a file.
fn describe(file: Option<&Path>) -> Result<Arc<Described>, PlanError> {
    let Some(file) = file else {
        return Ok(Arc::default());
    };
    let wrong = |reason: String| PlanError::Wsdl {
        file: file.to_owned(),
        reason,
    };
    let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let description =
        posthaste_soap::wsdl::read(&text).map_err(|error| wrong(error.to_string()))?;
    let described = Described::of(&description);
    if described.unknown() > 0 {
        let words = "it has a word about compression that is none of never, always, if-possible";
        return Err(wrong(words.to_owned()));
    }
    Ok(Arc::new(described))
}

/// The routes of one thread.
pub(crate) struct Site {
    pub(crate) plan: Arc<Plan>,
    /// Longest path first: the first match is the route.
    routes: Vec<Route>,
    /// `None` if marking is off.
    pub(crate) marks: Option<Marks>,
    /// Repeated replies since this configuration took effect.
    pub(crate) cache: RefCell<Cache>,
    _checks: Checks,
}

/// Reasons why a path has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Astray {
    /// No route matches.
    Nowhere,
    /// The path as written and its normal form lead to different routes, or only one of them has a route.
    InDoubt,
}

/// Destination of the requests below a path.
pub(crate) struct Route {
    /// Without a trailing slash.
    path: String,
    pub(crate) upstreams: Upstreams,
    pub(crate) policy: Policy,
    pub(crate) menu: Menu,
    rules: Rules,
    /// Preferences of calls that state none, by their action; `wish` applies to all others.
    pub(crate) described: Arc<Described>,
    pub(crate) wish: Wish,
    pub(crate) mark: Option<Dscp>,
}

impl Route {
    /// True if the path is the route's own or below it.
    fn is_above(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Site {
    /// Builds the routes. With `checks`, this thread runs the health checks of the upstreams.
    pub(crate) fn new(context: &Arc<GatewayContext>, plan: Arc<Plan>, checks: bool) -> Self {
        let compression = &plan.config.compression;
        let routes = plan
            .config
            .routes
            .iter()
            .zip(&plan.targets)
            .zip(&plan.described);
        let mut routes: Vec<_> = routes
            .map(|((route, targets), described)| Route {
                path: normal(&route.path).trim_end_matches('/').to_owned(),
                upstreams: Upstreams::new(context, targets, &plan.config.timeouts),
                policy: compression.policy,
                menu: compression.steps,
                rules: Rules {
                    least: compression.least,
                    events: compression.events,
                    opted_out: !route.compression,
                },
                described: described.clone(),
                wish: route.wish,
                mark: route.mark,
            })
            .collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        let mut asking = Checks::default();
        if checks {
            for (route, targets) in plan.routes() {
                asking.add(&route.health, targets);
            }
        }
        let room = compression.cache.as_bytes() / plan.config.threads as u64;
        Self {
            cache: RefCell::new(Cache::new(Size::from_bytes(room))),
            marks: plan.config.marking.marks(),
            plan,
            routes,
            _checks: asking,
        }
    }

    /// Finds the route of a path's normal form, and its rules. The path as written must lead to the same route.
    pub(crate) fn route(&self, path: &str) -> Result<(&Route, Rules), Astray> {
        let find = |path: &str| self.routes.iter().find(|route| route.is_above(path));
        let normal = normal(path);
        let route = find(&normal);
        let is_plain = matches!(normal, Cow::Borrowed(_));
        let is_same = |other: &Route| route.is_some_and(|route| std::ptr::eq(route, other));
        if !is_plain && !find(&written(path)).map_or(route.is_none(), is_same) {
            return Err(Astray::InDoubt);
        }
        let route = route.ok_or(Astray::Nowhere)?;
        Ok((route, route.rules))
    }

    /// Closes connections that have been unused too long.
    pub(crate) fn close_unused(&self) {
        for route in &self.routes {
            route.upstreams.close_unused();
        }
    }
}
