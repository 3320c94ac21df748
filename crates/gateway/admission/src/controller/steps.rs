//! `steps`: the thesis's controller (WS-QoS, section 7.4).
//!
//! Uses the mean busy share of 30 s. The price rises by 0.10 above 80 %, falls by 0.10 below 70 % and never falls below
//! 0. A mean of half a minute is late: the price still rises after the load has fallen, and falls late, too. It
//! oscillates, as the thesis's own figures show.
//!
//! The thesis does not state the time between two steps. In its figure 70 the price passes 0.10, 0.40 and 0.50 within
//! 20 s, which is a step in about 5 s. Part II of the thesis states 50 % for the lower bound. It has no maximum price.

use posthaste_units::{Instant, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Observed;
use super::window::SampleWindow;
use crate::Amount;
use crate::parameter::{WrongParameter, positive};

/// Parameters of `steps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Steps {
    /// Mean busy share above which the price rises.
    pub high: Ratio,
    /// Mean busy share below which the price falls. At most `high`.
    pub low: Ratio,
    /// Step upwards. Above 0.
    pub up: Amount,
    /// Step downwards. Above 0.
    pub down: Amount,
    /// Averaging time. Above 0.
    pub window: Span,
    /// Minimum time between two steps.
    pub period: Span,
    /// Maximum price. Above 0.
    pub most: Amount,
}

impl Default for Steps {
    fn default() -> Self {
        let share = |percent: f64| Ratio::new(percent * 0.01).unwrap_or_default();
        Self {
            high: share(80.0),
            low: share(70.0),
            up: Amount::from_micros(100_000),
            down: Amount::from_micros(100_000),
            window: Span::from_secs(30),
            period: Span::from_secs(5),
            most: Amount::from_micros(1_000_000),
        }
    }
}

impl Steps {
    pub(super) fn check(&self) -> Result<(), WrongParameter> {
        let (low, high) = (self.low, self.high);
        if low > high {
            return Err(WrongParameter::Bounds { low, high });
        }
        positive("up", self.up > Amount::ZERO)?;
        positive("down", self.down > Amount::ZERO)?;
        positive("window", !self.window.is_zero())?;
        positive("most", self.most > Amount::ZERO)
    }
}

/// The controller in operation.
#[derive(Clone, Debug)]
pub(super) struct StepsState {
    steps: Steps,
    window: SampleWindow,
    last: Option<Instant>,
    /// Time of the last step, or of the first sample.
    stepped: Instant,
    price: u64,
}

impl StepsState {
    pub(super) fn new(steps: Steps) -> Self {
        Self {
            window: SampleWindow::new(steps.window),
            steps,
            last: None,
            stepped: Instant::ORIGIN,
            price: 0,
        }
    }

    /// Continues at a price.
    pub(super) fn at(steps: Steps, price: Amount) -> Self {
        Self {
            price: price.min(steps.most).micros(),
            ..Self::new(steps)
        }
    }

    pub(super) fn push(&mut self, seen: Observed) -> Amount {
        match self.last {
            None => (self.last, self.stepped) = (Some(seen.at), seen.at),
            Some(last) if seen.at > last => {
                self.last = Some(seen.at);
                let mean = self.window.push(seen.at, seen.at.since(last), seen.busy);
                self.step(seen.at, mean);
            }
            Some(_) => {}
        }
        Amount::from_micros(self.price)
    }

    fn step(&mut self, now: Instant, mean: f64) {
        let Steps { up, down, most, .. } = self.steps;
        if now.since(self.stepped) < self.steps.period {
            return;
        }
        let price = match () {
            () if mean > self.steps.high.get() => (self.price + up.micros()).min(most.micros()),
            () if mean < self.steps.low.get() => self.price.saturating_sub(down.micros()),
            () => return,
        };
        (self.price, self.stepped) = (price, now);
    }
}
