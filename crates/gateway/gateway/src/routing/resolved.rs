//! Resolved configurations: names of upstreams resolved and files read.

use std::path::Path;
use std::sync::Arc;

use posthaste_compression::Described;
use posthaste_gateway_config::{GatewayConfig, MarkPolicy, RouteConfig};
use posthaste_units::{Instant, Span};

use crate::admission::offering::Offering;
use crate::error::{DescriptionError, ResolveError};
use crate::offers::shared::RouteOffers;
use crate::record::times::RouteTimes;
use crate::upstream::names::{Names, UnresolvedName};
use crate::upstream::resolution::HostName;
use crate::upstream::route_upstreams::RouteUpstreams;
use crate::upstream::target::UpstreamTarget;

/// Validity of an upstream's report of its busy share.
const REPORT: Span = Span::from_secs(5);

/// A configuration with names resolved and files read. Shared by all threads.
pub(crate) struct ResolvedConfig {
    pub(crate) config: GatewayConfig,
    pub(crate) offering: Offering,
    upstreams: Vec<RouteUpstreams>,
    offers: Vec<Option<Arc<RouteOffers>>>,
    described: Vec<Arc<Described>>,
    times: Vec<Arc<RouteTimes>>,
}

/// A configured route with its resolved parts.
pub(crate) struct ResolvedRoute<'a> {
    pub(crate) config: &'a RouteConfig,
    /// Name of the route for display: [`RouteConfig::label`].
    pub(crate) label: &'a str,
    pub(crate) upstreams: &'a RouteUpstreams,
    pub(crate) targets: &'a [Arc<UpstreamTarget>],
    pub(crate) offers: Option<&'a Arc<RouteOffers>>,
    pub(crate) described: &'a Arc<Described>,
    pub(crate) times: &'a Arc<RouteTimes>,
}

impl ResolvedConfig {
    /// Resolves a first configuration. Blocks while names are looked up, for at most a few seconds.
    pub(crate) fn new(config: GatewayConfig) -> Result<Self, ResolveError> {
        let resolved = Self::resolve(config, std::iter::empty())?;
        resolved.follow_names();
        Ok(resolved)
    }

    /// Resolves a configuration that follows `before`. Names that both have keep their addresses, so that a failing
    /// name server does not prevent a change; they are looked up again soon.
    pub(crate) fn following(config: GatewayConfig, before: &Self) -> Result<Self, ResolveError> {
        let mut resolved = Self::resolve(config, before.host_names())?;
        resolved.remember(before);
        resolved.follow_names();
        resolved.host_names().for_each(|host| host.request());
        Ok(resolved)
    }

    fn resolve(
        config: GatewayConfig,
        known: impl IntoIterator<Item = Arc<HostName>>,
    ) -> Result<Self, ResolveError> {
        let mut names = Names::new(&config.resolver, known);
        let upstreams = config.routes.iter().map(|route| {
            RouteUpstreams::new(route, &mut names).map_err(|error| ResolveError::Target {
                route: route.label().into_owned(),
                error,
            })
        });
        let upstreams = upstreams.collect::<Result<_, _>>()?;
        for UnresolvedName { name, error } in names.look_up_new() {
            tracing::warn!(name, %error, "it cannot be resolved: requests for it get 503 until a lookup succeeds");
        }
        let offers = config.routes.iter().map(|route| {
            let offers = route.offers.as_ref();
            let offers = offers.map(|offers| RouteOffers::new(route, offers).map(Arc::new));
            offers.transpose()
        });
        let offers = offers.collect::<Result<_, _>>()?;
        let described = config
            .routes
            .iter()
            .map(|route| describe(route.wsdl.as_deref()));
        let times = config
            .routes
            .iter()
            .map(|route| Arc::new(RouteTimes::new(route)));
        let offering = config.prices.as_ref().map(Offering::new);
        let offering = offering.transpose()?.unwrap_or_default();
        if offering.priorities.is_some() && config.marking.policy == MarkPolicy::Never {
            tracing::warn!(
                "offers promise priorities in the network, and nothing is marked: set marking.policy = \"asked\""
            );
        }
        Ok(Self {
            offering,
            upstreams,
            offers,
            described: described.collect::<Result<_, _>>()?,
            times: times.collect(),
            config,
        })
    }

    /// Takes over health and reports of upstreams from `before`, for routes with the same host, path, checks
    /// and authority, and the offers of routes whose rules for them stay. Times continue for routes with the same host
    /// and path.
    fn remember(&mut self, before: &Self) {
        for times in &mut self.times {
            if let Some(known) = before.times.iter().find(|known| known.name == times.name) {
                *times = known.clone();
            }
        }
        for offers in self.offers.iter_mut().flatten() {
            let mut known = before.offers.iter().flatten();
            if let Some(known) = known.find(|known| known.serves(offers)) {
                *offers = known.clone();
            }
        }
        for (route, upstreams) in self.config.routes.iter().zip(&mut self.upstreams) {
            let stays = |known: &RouteConfig| {
                known.normal_host() == route.normal_host()
                    && known.path == route.path
                    && known.health == route.health
                    && known.authority == route.authority
                    && known.protocol == route.protocol
            };
            let known = before.routes().find(|known| stays(known.config));
            if let Some(known) = known {
                upstreams.remember(known.upstreams);
            }
        }
    }

    fn follow_names(&self) {
        self.upstreams.iter().for_each(RouteUpstreams::follow_names);
    }

    /// The names of upstreams, once for each upstream.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = Arc<HostName>> {
        let targets = self.upstreams.iter().flat_map(|route| &route.targets);
        targets.filter_map(|target| target.host_name.clone())
    }

    /// Every route, with its upstreams and its description.
    pub(crate) fn routes(&self) -> impl Iterator<Item = ResolvedRoute<'_>> {
        let described = self.described.iter().zip(&self.times);
        let parts = self.upstreams.iter().zip(&self.offers).zip(described);
        let routes = self.config.routes.iter().zip(parts);
        routes.map(
            |(config, ((upstreams, offers), (described, times)))| ResolvedRoute {
                config,
                label: &times.name,
                upstreams,
                targets: &upstreams.targets,
                offers: offers.as_ref(),
                described,
                times,
            },
        )
    }

    /// Mean of the recent reports of the upstreams. `None` without a report.
    pub(crate) fn reported_busy(&self, now: Instant) -> Option<f64> {
        let targets = self.upstreams.iter().flat_map(|route| &route.targets);
        let shares = targets.filter_map(|target| target.reported.within(REPORT, now));
        let shares: Vec<f64> = shares.collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

/// Reads a route's description of compression preferences. Empty without a file.
fn describe(file: Option<&Path>) -> Result<Arc<Described>, ResolveError> {
    let Some(file) = file else {
        return Ok(Arc::default());
    };
    read_description(file).map_err(|reason| ResolveError::Wsdl {
        file: file.to_owned(),
        reason,
    })
}

fn read_description(file: &Path) -> Result<Arc<Described>, DescriptionError> {
    let description = posthaste_soap::wsdl::read(&std::fs::read(file)?)?;
    let described = Described::from_description(&description);
    if described.unknown() > 0 {
        return Err(DescriptionError::Unknown);
    }
    Ok(Arc::new(described))
}
