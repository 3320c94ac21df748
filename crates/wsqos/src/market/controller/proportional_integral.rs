//! `proportional-integral`: the busy share is held at a target, from a signal of fractions of a second.
//!
//! A busy share cannot pass 1, so twice too much looks like a little too much. What tells them apart is
//! the queue: the time that requests wait beyond what is allowed counts as error, too. Errors within a band
//! count as none and the price moves by whole ticks, so that a steady load has a still price. The integral
//! is kept within 0 and the highest price: it has nothing to unwind when the load turns.

use posthaste_units::{Instant, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::{Observed, WrongController, not_negative, positive, quantised};
use crate::market::Amount;

/// Parameters of `proportional-integral`. The gains are in shares of the highest price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProportionalIntegral {
    /// The busy share that is aimed at: 75 %.
    pub target: Ratio,
    /// How far from it is no error: 5 %.
    pub band: Ratio,
    /// How long requests may wait; what is above it is counted in multiples of it, one at most: 20 ms.
    pub delay: Span,
    /// Over how long the signals are smoothed, as the time constant of an exponential: 500 ms.
    pub memory: Span,
    /// What an error of 1 adds to the price at once: 0.2 of the highest.
    pub proportional: f64,
    /// What an error of 1 adds to the price within a second: 0.4 of the highest.
    pub integral: f64,
    /// Prices are multiples of this: 0.01.
    pub tick: Amount,
    /// The highest price: 1.00. At it nobody whom the service need serve should be left.
    pub most: Amount,
}

impl Default for ProportionalIntegral {
    fn default() -> Self {
        let share = |percent: f64| Ratio::new(percent * 0.01).unwrap_or_default();
        Self {
            target: share(75.0),
            band: share(5.0),
            delay: Span::from_millis(20),
            memory: Span::from_millis(500),
            proportional: 0.2,
            integral: 0.4,
            tick: Amount::from_micros(10_000),
            most: Amount::from_micros(1_000_000),
        }
    }
}

impl ProportionalIntegral {
    pub(super) fn check(&self) -> Result<(), WrongController> {
        positive("delay", !self.delay.is_zero())?;
        positive("tick", self.tick > Amount::ZERO)?;
        positive("most", self.most > Amount::ZERO)?;
        not_negative("proportional", self.proportional)?;
        not_negative("integral", self.integral)
    }

    /// How far off, -1 to 1; zero within the band.
    fn error(&self, busy: f64, delay: f64) -> f64 {
        let off = busy - self.target.get();
        let within = off.clamp(-self.band.get(), self.band.get());
        let allowed = self.delay.as_secs_f64().max(1e-9);
        let late = ((delay - allowed) / allowed).clamp(0.0, 1.0);
        (off - within + late).clamp(-1.0, 1.0)
    }
}

/// The controller at work.
#[derive(Clone, Debug)]
pub(super) struct Running {
    parameters: ProportionalIntegral,
    last: Option<Instant>,
    /// Smoothed: busy share, and waiting in seconds.
    busy: f64,
    delay: f64,
    /// Share of the highest price, 0 to 1.
    integral: f64,
    price: Amount,
}

impl Running {
    pub(super) const fn new(parameters: ProportionalIntegral) -> Self {
        Self {
            parameters,
            last: None,
            busy: 0.0,
            delay: 0.0,
            integral: 0.0,
            price: Amount::ZERO,
        }
    }

    pub(super) fn push(&mut self, seen: Observed) -> Amount {
        let Some(last) = self.last.filter(|last| *last < seen.at) else {
            self.last = self.last.or(Some(seen.at));
            return self.price;
        };
        self.last = Some(seen.at);
        // A process that was stopped for a while has one sample for it: it must not count for the whole while.
        let seconds = seen.at.since(last).as_secs_f64().min(1.0);
        let memory = self.parameters.memory.as_secs_f64().max(1e-9);
        let weight = 1.0 - (-seconds / memory).exp();
        self.busy += (seen.busy - self.busy) * weight;
        self.delay += (seen.delay.as_secs_f64() - self.delay) * weight;
        let error = self.parameters.error(self.busy, self.delay);
        let moved = self.integral + self.parameters.integral * error * seconds;
        self.integral = moved.clamp(0.0, 1.0);
        let share = (self.integral + self.parameters.proportional * error).clamp(0.0, 1.0);
        let wanted = share * self.parameters.most.micros() as f64;
        self.price = quantised(wanted, self.price, self.parameters.tick).min(self.parameters.most);
        self.price
    }
}
