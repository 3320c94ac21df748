//! The terms of admission in a configuration.

use posthaste_admission::{RequestLimits, TierTerms};
use posthaste_units::{Ratio, Span};

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
        let has_accounts = config.accounts.is_some();
        let (tiers, wait) = match protection.policy {
            ProtectionPolicy::Limit => {
                let tiers = protection.tiers.iter();
                let tiers = tiers.map(|tier| (tier.name.clone(), tier.share));
                (tiers.collect(), protection.wait)
            }
            ProtectionPolicy::Prices if has_accounts => (by_payment(), protection.wait),
            _ => (Vec::new(), Span::ZERO),
        };
        let (names, shares): (_, Vec<Ratio>) = tiers.into_iter().unzip();
        let single = TierTerms::single(wait, protection.waiting as usize);
        let tiers = match shares.is_empty() {
            true => single,
            false => TierTerms { shares, ..single },
        };
        let routes = config.routes.iter().map(|route| {
            let limits = route.limits.requests();
            (route.label().into_owned(), limits)
        });
        Self {
            policy: protection.settings(config.prices.as_ref()),
            is_dry: protection.dry_run,
            tiers,
            tier_names: names,
            client_limits: protection.client_limits.limits(),
            route_limits: routes.filter(|(_, limits)| !limits.is_empty()).collect(),
        }
    }
}

/// The tiers of prices with accounts: requests without payment get what those with payment leave.
fn by_payment() -> Vec<(String, Ratio)> {
    let all = Ratio::new(1.0).expect("a share");
    let tiers = [("paid", all), ("unpaid", Ratio::default())];
    tiers.map(|(name, share)| (name.to_owned(), share)).into()
}
