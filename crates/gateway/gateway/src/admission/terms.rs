//! The terms of admission in a configuration.

use posthaste_admission::{RequestLimits, TierShare, TierTerms};
use posthaste_gateway_config::{AdmissionSettings, GatewayConfig, ProtectionPolicy, TierConfig};
use posthaste_units::{Ratio, Span};

use super::service_terms::{RouteTerms, ServiceTerms};

/// The terms of admission.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionTerms {
    pub(crate) policy: AdmissionSettings,
    pub(super) services: ServiceTerms,
    pub(super) routes: Vec<RouteTerms>,
    pub(super) client_limits: RequestLimits,
    /// Limits of the routes that have some, by their label.
    pub(super) route_limits: Vec<(String, RequestLimits)>,
}

impl AdmissionTerms {
    /// Returns the terms of a configuration.
    pub(crate) fn from_config(config: &GatewayConfig) -> Self {
        let protection = &config.protection;
        let has_accounts = config.accounts.is_some();
        let (tiers, wait) = match protection.policy {
            ProtectionPolicy::Limit => (of_tiers(&protection.tiers), protection.wait),
            ProtectionPolicy::Prices if has_accounts => (by_payment(), protection.wait),
            _ => (Vec::new(), Span::ZERO),
        };
        let (tier_names, shares): (_, Vec<TierShare>) = tiers.into_iter().unzip();
        let single = TierTerms::single(wait, protection.waiting as usize);
        let tiers = if shares.is_empty() {
            single
        } else {
            TierTerms { shares, ..single }
        };
        let policy = protection.settings(config.prices.as_ref());
        let limit = match &policy {
            AdmissionSettings::Limit(limit) | AdmissionSettings::Prices { limit, .. } => {
                Some(limit.clone())
            }
            AdmissionSettings::None | AdmissionSettings::Rate { .. } => None,
        };
        let limits = config.routes.iter().map(|route| {
            let limits = route.limits.requests();
            (route.label().into_owned(), limits)
        });
        let routes = config.routes.iter().map(|route| RouteTerms {
            label: route.label().into_owned(),
            service: route.service().into_owned(),
            is_exempt: route.exempt,
        });
        Self {
            policy,
            services: ServiceTerms {
                limit,
                is_dry: protection.dry_run,
                tiers,
                tier_names,
            },
            routes: routes.collect(),
            client_limits: protection.client_limits.limits(),
            route_limits: limits.filter(|(_, limits)| !limits.is_empty()).collect(),
        }
    }
}

fn of_tiers(tiers: &[TierConfig]) -> Vec<(String, TierShare)> {
    let share = |tier: &TierConfig| TierShare {
        share: tier.share,
        reserve: tier.reserve,
    };
    let named = |tier: &TierConfig| (tier.name.clone(), share(tier));
    tiers.iter().map(named).collect()
}

/// The tiers of prices with accounts: requests without payment get what those with payment leave.
fn by_payment() -> Vec<(String, TierShare)> {
    let all = Ratio::new(1.0).expect("a share");
    let tiers = [("paid", all), ("unpaid", Ratio::default())];
    tiers
        .map(|(name, share)| (name.to_owned(), TierShare::lent(share)))
        .into()
}
