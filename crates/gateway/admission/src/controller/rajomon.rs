//! `rajomon`: after RAJOMON (Xing et al., NSDI 2025), for comparison.
//!
//! From the paper and its published implementation:
//!
//! - The signal is the queueing delay alone, read every 10 ms.
//! - Above a threshold the price rises in proportion to the excess. The step is 1 token for 10 ms of excess.
//! - Each service has its threshold. A price falls by 1 token at a time (simplest rule) or in proportion (another).
//!
//! Changed here: money instead of tokens, the amounts, a maximum price, and the default threshold. Chains of services
//! and prices per operation are absent.

use posthaste_units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Observed, quantised, ticks};
use crate::Amount;
use crate::parameter::{WrongParameter, positive};

/// Parameters of `rajomon`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rajomon {
    /// Waiting time above which the price rises. Above 0.
    pub threshold: Span,
    /// Time unit of `up` and `down`. Samples that come less often count as several. Above 0.
    pub period: Span,
    /// Rise per period for an excess of one threshold. Above 0.
    pub up: Amount,
    /// Fall per period below the threshold. Above 0.
    pub down: Amount,
    /// Prices are multiples of this amount. Above 0.
    pub tick: Amount,
    /// Maximum price. Above 0.
    pub most: Amount,
}

impl Default for Rajomon {
    fn default() -> Self {
        Self {
            threshold: Span::from_millis(20),
            period: Span::from_millis(10),
            up: Amount::from_micros(5_000),
            down: Amount::from_micros(1_000),
            tick: Amount::from_micros(10_000),
            most: Amount::from_micros(1_000_000),
        }
    }
}

impl Rajomon {
    pub(super) fn check(&self) -> Result<(), WrongParameter> {
        positive("threshold", !self.threshold.is_zero())?;
        positive("period", !self.period.is_zero())?;
        positive("up", self.up > Amount::ZERO)?;
        positive("down", self.down > Amount::ZERO)?;
        positive("tick", self.tick > Amount::ZERO)?;
        positive("most", self.most > Amount::ZERO)?;
        ticks(self.tick, self.most)
    }
}

/// The controller in operation.
#[derive(Clone, Debug)]
pub(super) struct RajomonState {
    parameters: Rajomon,
    last: Option<Instant>,
    /// Price before rounding to ticks, in millionths.
    exact: f64,
    price: Amount,
}

impl RajomonState {
    pub(super) const fn new(parameters: Rajomon) -> Self {
        Self {
            parameters,
            last: None,
            exact: 0.0,
            price: Amount::ZERO,
        }
    }

    /// Continues at a price.
    pub(super) fn at(parameters: Rajomon, price: Amount) -> Self {
        let price = price.min(parameters.most);
        Self {
            exact: price.micros() as f64,
            price,
            ..Self::new(parameters)
        }
    }

    pub(super) fn push(&mut self, seen: Observed) -> Amount {
        let Some(last) = self.last.filter(|last| *last < seen.at) else {
            self.last = self.last.or(Some(seen.at));
            return self.price;
        };
        self.last = Some(seen.at);
        let Rajomon {
            threshold,
            period,
            up,
            down,
            tick,
            most,
        } = self.parameters;
        let periods = seen.at.since(last).as_secs_f64().min(1.0) / period.as_secs_f64().max(1e-9);
        let excess = seen.delay.saturating_sub(threshold).as_secs_f64();
        let change = if excess > 0.0 {
            up.micros() as f64 * excess / threshold.as_secs_f64().max(1e-9)
        } else {
            -(down.micros() as f64)
        };
        self.exact = (self.exact + change * periods).clamp(0.0, most.micros() as f64);
        self.price = quantised(self.exact, self.price, tick).min(most);
        self.price
    }
}
