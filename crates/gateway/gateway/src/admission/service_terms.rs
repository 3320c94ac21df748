//! The terms of services in a configuration, and the service of each route.

use posthaste_admission::{Limit, TierTerms};

/// A route of the configuration.
#[derive(Clone, Debug)]
pub(super) struct RouteTerms {
    /// Label of the route.
    pub(super) label: String,
    /// Name of its service.
    pub(super) service: String,
    pub(super) is_exempt: bool,
}

/// The terms of every service.
#[derive(Clone, Debug)]
pub(super) struct ServiceTerms {
    /// The limit at its start. `None` without one.
    pub(super) limit: Option<Limit>,
    /// The limit is computed and not applied.
    pub(super) is_dry: bool,
    pub(super) tiers: TierTerms,
    /// Names of the tiers. Empty without tiers.
    pub(super) tier_names: Vec<String>,
}
