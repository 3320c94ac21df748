//! The terms of admission in a configuration.

use posthaste_admission::{RequestLimits, TierTerms};
use posthaste_units::Span;

use crate::config::{AdmissionSettings, GatewayConfig, ProtectionPolicy};

/// The terms of admission.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionTerms {
    pub(crate) policy: AdmissionSettings,
    pub(super) is_dry: bool,
    pub(super) tiers: TierTerms,
    /// Names of the tiers. Empty without tiers.
    pub(super) tier_names: Vec<String>,
    pub(super) client_limits: RequestLimits,
    /// Limits of the routes that have some, by their label.
    pub(super) route_limits: Vec<(String, RequestLimits)>,
}

impl AdmissionTerms {
    /// Returns the terms of a configuration.
    pub(crate) fn of(config: &GatewayConfig) -> Self {
        let protection = &config.protection;
        let wait = match protection.policy {
            ProtectionPolicy::Limit => protection.wait,
            _ => Span::ZERO,
        };
        let tiers = match protection.tiers.as_slice() {
            [] => TierTerms::single(wait, protection.waiting as usize),
            tiers => TierTerms {
                shares: tiers.iter().map(|tier| tier.share).collect(),
                ..TierTerms::single(wait, protection.waiting as usize)
            },
        };
        let names = protection.tiers.iter().map(|tier| tier.name.clone());
        let routes = config.routes.iter().map(|route| {
            let limits = route.limits.requests();
            (route.label().into_owned(), limits)
        });
        Self {
            policy: protection.settings(config.prices.as_ref()),
            is_dry: protection.dry_run,
            tiers,
            tier_names: names.collect(),
            client_limits: protection.client_limits.limits(),
            route_limits: routes.filter(|(_, limits)| !limits.is_empty()).collect(),
        }
    }
}
