//! Offers distributed like the QWS list of 2,507 measured services, which may not be passed on. Response time p50 227
//! ms, p95 1,342; availability p50 87 %, p95 99; throughput p50 6.9/s, p95 24.6; reliability p50 73 %, p95 83.

use std::time::{Duration, SystemTime};

use posthaste_qos::{Currency, Money, Offer};
use posthaste_study::Failure;
use posthaste_units::{Rate, Ratio, Seed, Span};
use rand::{Rng, RngExt as _};
use rand_distr::{Distribution as _, LogNormal, Normal};

/// Lifetime of offers, longer than any study.
const HOLDS: Duration = Duration::from_secs(24 * 3_600);

/// The currency of all prices.
pub(super) fn euro() -> Result<Currency, Failure> {
    Ok("EUR".parse()?)
}

/// Creates `count` random offers. More reliable ones cost more.
pub(super) fn offers(count: usize, seed: Seed) -> Result<Vec<Offer>, Failure> {
    let euro = euro()?;
    let mut draws = seed.stream("offers in the shape of QWS");
    let shape = QwsShape::new()?;
    let expires = (SystemTime::now() + HOLDS).try_into()?;
    let offers = (0..count).map(|number| {
        let (mut offer, reliability) = shape.offer(&mut draws, expires);
        offer.name = format!("Gold {number}");
        let euros = 0.05 + (reliability - 0.33) * draws.random_range(0.5..1.5);
        offer.qos.price = Money::from_micros((euros * 1e6) as u64, euro);
        offer
    });
    Ok(offers.collect())
}

struct QwsShape {
    milliseconds: LogNormal<f64>,
    rate: LogNormal<f64>,
    availability: Normal<f64>,
    reliability: Normal<f64>,
}

impl QwsShape {
    fn new() -> Result<Self, Failure> {
        let log = |median: f64, p95: f64| LogNormal::new(median.ln(), (p95 / median).ln() / P95);
        let normal = |median: f64, p95: f64| Normal::new(median, (p95 - median) / P95);
        Ok(Self {
            milliseconds: log(227.0, 1_342.0)?,
            rate: log(6.9, 24.6)?,
            availability: normal(0.87, 0.99)?,
            reliability: normal(0.73, 0.83)?,
        })
    }

    /// An offer without name and price, and its reliability.
    fn offer(&self, draws: &mut impl Rng, expires: jiff::Timestamp) -> (Offer, f64) {
        let milliseconds = self.milliseconds.sample(draws).clamp(37.0, 4_990.0);
        let reliability = self.reliability.sample(draws).clamp(0.33, 0.89);
        let mut offer = Offer {
            name: String::new(),
            expires,
            endpoint: None,
            qos: Default::default(),
        };
        let server = &mut offer.qos.default.server;
        server.processing_time = Some(Span::from_secs_f64(milliseconds / 1e3));
        server.availability = Ratio::new(self.availability.sample(draws).clamp(0.07, 1.0));
        server.requests_per_second = Rate::per_second(self.rate.sample(draws).clamp(0.1, 43.0));
        server.reliability = Ratio::new(reliability);
        (offer, reliability)
    }
}

/// The 95th percentile of a normal distribution, in standard deviations.
const P95: f64 = 1.645;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_have_the_shape_of_the_list() {
        let offers = offers(20_000, Seed(1)).unwrap();
        let quantile = |share: f64, value: fn(&Offer) -> f64| {
            let mut values: Vec<f64> = offers.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[(values.len() as f64 * share) as usize]
        };
        let time = |offer: &Offer| {
            offer
                .qos
                .default
                .server
                .processing_time
                .unwrap()
                .as_secs_f64()
        };
        let rate = |offer: &Offer| {
            offer
                .qos
                .default
                .server
                .requests_per_second
                .unwrap()
                .as_per_second()
        };
        let share = |offer: &Offer| offer.qos.default.server.reliability.unwrap().get();
        for (found, wanted) in [
            (quantile(0.5, time), 0.227),
            (quantile(0.95, time), 1.342),
            (quantile(0.5, rate), 6.9),
            (quantile(0.95, rate), 24.6),
            (quantile(0.5, share), 0.73),
            (quantile(0.95, share), 0.83),
        ] {
            assert!((found / wanted - 1.0).abs() < 0.06, "{found} {wanted}");
        }
    }
}
