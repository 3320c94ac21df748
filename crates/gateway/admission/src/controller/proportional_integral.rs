//! `proportional-integral`: holds the busy share at a target, from signals of fractions of a second.
//!
//! The busy share cannot exceed 1, so a small and a large overload look alike. The queueing delay tells them apart:
//! delay beyond the permitted value counts as error, too. A correction starts when the error leaves a band and ends
//! when the error crosses zero. The price moves in whole ticks, so a steady load has a steady price.
//!
//! The change of the error and the error itself are added to the price, which stays between 0 and `most`, so there is
//! no integral windup. Near `most` each tick drives away a larger part of the remaining clients, so the gains shrink
//! with the distance to it. They delay the fall from a high price by seconds, so the price has an upper bound that
//! falls to 0 as the service comes to rest ([`Rest`](crate::Rest)).

use posthaste_units::{Instant, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Observed, quantised, ticks};
use crate::Amount;
use crate::parameter::{WrongParameter, positive, within};

/// Parameters of `proportional-integral`. The gains are in shares of the highest price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProportionalIntegral {
    /// Busy share to hold.
    pub target: Ratio,
    /// Error at which a correction starts.
    pub band: Ratio,
    /// Permitted waiting time of requests: some service times. Above 0.
    pub delay: Span,
    /// Time constant of the smoothing of both signals. Longer for requests of 10 ms and more.
    pub memory: Span,
    /// Share of `most` that an error of 1 adds at once.
    #[schemars(range(min = 0, max = 100))]
    pub proportional: f64,
    /// Share of `most` that an error of 1 adds per second.
    #[schemars(range(min = 0, max = 100))]
    pub integral: f64,
    /// Prices are multiples of this amount. Above 0.
    pub tick: Amount,
    /// Maximum price. Above 0. At this price few enough clients should remain.
    pub most: Amount,
}

impl Default for ProportionalIntegral {
    fn default() -> Self {
        let share = |percent: f64| Ratio::new(percent * 0.01).unwrap_or_default();
        Self {
            target: share(75.0),
            band: share(5.0),
            delay: Span::from_millis(50),
            memory: Span::from_millis(500),
            proportional: 0.3,
            integral: 0.4,
            tick: Amount::from_micros(10_000),
            most: Amount::from_micros(1_000_000),
        }
    }
}

impl ProportionalIntegral {
    pub(super) fn check(&self) -> Result<(), WrongParameter> {
        positive("delay", !self.delay.is_zero())?;
        positive("tick", self.tick > Amount::ZERO)?;
        positive("most", self.most > Amount::ZERO)?;
        ticks(self.tick, self.most)?;
        within("proportional", self.proportional, 0.0, 100.0)?;
        within("integral", self.integral, 0.0, 100.0)
    }

    /// Error, -1 to 1: distance of the busy share from the target, plus the excess of the queueing delay.
    fn error(&self, busy: f64, delay: f64) -> f64 {
        let allowed = self.delay.as_secs_f64().max(1e-9);
        let late = ((delay - allowed) / allowed).clamp(0.0, 1.0);
        (busy - self.target.get() + late).clamp(-1.0, 1.0)
    }
}

/// Minimum factor of the gains near the maximum price. The price must be able to fall again.
const LEAST_GAIN: f64 = 0.2;

/// The controller in operation.
#[derive(Clone, Debug)]
pub(super) struct ProportionalIntegralState {
    parameters: ProportionalIntegral,
    last: Option<Instant>,
    /// Smoothed busy share and queueing delay in seconds.
    busy: f64,
    delay: f64,
    error: f64,
    /// The error has left the band and has not crossed zero since.
    corrects: bool,
    /// Price before rounding to ticks, as a share of the maximum.
    share: f64,
    price: Amount,
}

impl ProportionalIntegralState {
    pub(super) const fn new(parameters: ProportionalIntegral) -> Self {
        Self {
            parameters,
            last: None,
            busy: 0.0,
            delay: 0.0,
            error: 0.0,
            corrects: false,
            share: 0.0,
            price: Amount::ZERO,
        }
    }

    /// Continues at a price, with nothing known of the load.
    pub(super) fn at(parameters: ProportionalIntegral, price: Amount) -> Self {
        let price = price.min(parameters.most);
        Self {
            share: price.micros() as f64 / parameters.most.micros().max(1) as f64,
            price,
            ..Self::new(parameters)
        }
    }

    /// Bounds the price by the part of the load that may be left.
    pub(super) fn rest(&mut self, rest: Ratio) {
        let most = 1.0 - rest.get();
        self.share = self.share.min(most);
        if most == 0.0 {
            (self.busy, self.delay, self.corrects) = (0.0, 0.0, false);
            self.error = self.parameters.error(0.0, 0.0);
        }
    }

    pub(super) fn push(&mut self, seen: Observed) -> Amount {
        let Some(last) = self.last.filter(|last| *last < seen.at) else {
            self.last = self.last.or(Some(seen.at));
            return self.price;
        };
        self.last = Some(seen.at);
        // A process that was stopped has one sample for the whole pause. It must not count for all of it.
        let seconds = seen.at.since(last).as_secs_f64().min(1.0);
        let memory = self.parameters.memory.as_secs_f64().max(1e-9);
        let weight = 1.0 - (-seconds / memory).exp();
        self.busy += (seen.busy - self.busy) * weight;
        self.delay += (seen.delay.as_secs_f64() - self.delay) * weight;
        let error = self.parameters.error(self.busy, self.delay);
        self.correct(error, seconds);
        let wanted = self.share * self.parameters.most.micros() as f64;
        self.price = quantised(wanted, self.price, self.parameters.tick).min(self.parameters.most);
        self.price
    }

    /// Moves the price by the change of the error and by the error.
    fn correct(&mut self, error: f64, seconds: f64) {
        let before = std::mem::replace(&mut self.error, error);
        let has_crossed = error * before <= 0.0;
        self.corrects = error.abs() > self.parameters.band.get() || self.corrects && !has_crossed;
        if self.corrects {
            let ProportionalIntegral {
                proportional,
                integral,
                ..
            } = self.parameters;
            let change = proportional * (error - before) + integral * error * seconds;
            let gain = (1.0 - self.share).max(LEAST_GAIN);
            self.share = (self.share + gain * change).clamp(0.0, 1.0);
        }
    }
}
