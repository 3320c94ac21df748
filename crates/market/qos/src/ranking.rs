//! Order of adequate offers.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::document::Offer;
use super::matching::World;

/// Rule to choose among adequate offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// The cheapest, as in the thesis. Of equal prices, the one with the latest expiry.
    #[default]
    Cheapest,
    /// The best weighted sum, with each metric scaled from the worst to the best of the offers.
    Weighted(Weights),
    /// All offers that no other dominates (better in one metric, at least as good in all others), the cheapest first.
    Skyline,
}

/// Weights of the metrics. Only their ratios matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Weights {
    /// Weight of a low price.
    pub price: f64,
    /// Weight of a short processing time.
    pub processing_time: f64,
    /// Weight of many requests per second.
    pub requests_per_second: f64,
    /// Weight of the reliability.
    pub reliability: f64,
    /// Weight of the availability.
    pub availability: f64,
}

/// Values of an offer by metric. More is better, and a value that is not stated is worst.
type Merits = [f64; 5];

impl Ranking {
    /// Orders `offers`, the best first. [`Ranking::Skyline`] keeps only offers that are not dominated.
    ///
    /// The order is stable: equal offers keep their order.
    pub fn rank<'o, T: AsRef<Offer>>(&self, offers: &'o [T], world: &World<'_>) -> Vec<&'o T> {
        let mut ranked: Vec<(&T, Merits)> = offers
            .iter()
            .map(|offer| (offer, merits(offer.as_ref(), world)))
            .collect();
        match self {
            Self::Cheapest => ranked.sort_by(cheapest),
            Self::Weighted(weights) => {
                let scores = weights.scores(ranked.iter().map(|(_, merits)| *merits));
                let mut scored: Vec<_> = ranked.into_iter().zip(scores).collect();
                scored.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| cheapest(a, b)));
                ranked = scored.into_iter().map(|(offer, _)| offer).collect();
            }
            Self::Skyline => {
                let all: Vec<Merits> = ranked.iter().map(|(_, merits)| *merits).collect();
                ranked.retain(|(_, merits)| !all.iter().any(|other| surpasses(other, merits)));
                debug_assert_eq!(
                    ranked.is_empty(),
                    offers.is_empty(),
                    "dominance is a strict order, so that some offer is not dominated"
                );
                ranked.sort_by(cheapest);
            }
        }
        ranked.into_iter().map(|(offer, _)| offer).collect()
    }
}

impl Weights {
    fn scores(&self, merits: impl Iterator<Item = Merits> + Clone) -> Vec<f64> {
        let weights = [
            self.price,
            self.processing_time,
            self.requests_per_second,
            self.reliability,
            self.availability,
        ];
        let finite = |metric: usize| {
            merits
                .clone()
                .map(move |m| m[metric])
                .filter(|v| v.is_finite())
        };
        let range = |metric| {
            let low = finite(metric).fold(f64::INFINITY, f64::min);
            let high = finite(metric).fold(f64::NEG_INFINITY, f64::max);
            (low, high)
        };
        let ranges: Vec<(f64, f64)> = (0..weights.len()).map(range).collect();
        let score = |merits: Merits| {
            let parts = merits.iter().zip(&ranges).zip(weights);
            parts
                .map(|((value, (low, high)), weight)| {
                    let share = match (value.is_finite(), high > low) {
                        (false, _) => 0.0,
                        (true, false) => 1.0,
                        (true, true) => (value - low) / (high - low),
                    };
                    weight * share
                })
                .sum()
        };
        merits.clone().map(score).collect()
    }
}

fn merits(offer: &Offer, world: &World<'_>) -> Merits {
    let server = &offer.qos.default.server;
    let price = offer.qos.price.and_then(|price| world.rates.in_base(price));
    let worst = f64::NEG_INFINITY;
    [
        price.map_or(worst, |micros| -(micros as f64)),
        server
            .processing_time
            .map_or(worst, |time| -time.as_secs_f64()),
        server
            .requests_per_second
            .map_or(worst, |rate| rate.as_per_second()),
        server.reliability.map_or(worst, |share| share.get()),
        server.availability.map_or(worst, |share| share.get()),
    ]
}

fn cheapest<T: AsRef<Offer>>(a: &(&T, Merits), b: &(&T, Merits)) -> Ordering {
    let later = |a: &T, b: &T| b.as_ref().expires.cmp(&a.as_ref().expires);
    b.1[0].total_cmp(&a.1[0]).then_with(|| later(a.0, b.0))
}

fn surpasses(a: &Merits, b: &Merits) -> bool {
    let pairs = || a.iter().zip(b);
    pairs().all(|(a, b)| a >= b) && pairs().any(|(a, b)| a > b)
}

impl AsRef<Self> for Offer {
    fn as_ref(&self) -> &Self {
        self
    }
}
