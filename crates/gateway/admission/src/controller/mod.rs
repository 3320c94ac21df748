//! Price controllers by name: each turns samples into an amount.
//!
//! A controller knows its own parameters and history, and nothing about offers, quotes or clients. Its parameters stand
//! next to `policy = "..."` in the configuration.

mod proportional_integral;
mod rajomon;
mod steps;
mod window;

use posthaste_units::{Instant, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameter::within;
use crate::{Amount, WrongParameter};
use posthaste_qos::{Currency, Money};

use proportional_integral::ProportionalIntegralState;
use rajomon::RajomonState;
use steps::StepsState;

pub use proportional_integral::ProportionalIntegral;
pub use rajomon::Rajomon;
pub use steps::Steps;

/// Measurements of the protected resource since the last sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Time of the sample.
    pub at: Instant,
    /// Busy share since the last sample, 0 to 1. A value that is not finite counts as 1.
    pub busy: f64,
    /// Last measured queueing delay of requests; zero if not measured.
    pub delay: Span,
}

/// A controller's name and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "kebab-case")]
pub enum Controller {
    /// Steps after the mean busy share of half a minute, as in the WS-QoS thesis.
    Steps(Steps),
    /// Holds a busy share, from signals of fractions of a second.
    ProportionalIntegral(ProportionalIntegral),
    /// Rises with the excess of the waiting time, otherwise falls slowly, after RAJOMON (NSDI 2025).
    Rajomon(Rajomon),
}

/// A price controller in operation.
#[derive(Clone, Debug)]
pub struct Pricing {
    controller: Controller,
    running: ControllerState,
    currency: Currency,
    price: Amount,
    rises: bool,
    turns: u64,
}

#[derive(Clone, Debug)]
enum ControllerState {
    Steps(StepsState),
    ProportionalIntegral(ProportionalIntegralState),
    Rajomon(RajomonState),
}

impl Default for Controller {
    fn default() -> Self {
        Self::ProportionalIntegral(ProportionalIntegral::default())
    }
}

impl Controller {
    /// Its name in configurations and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Steps(_) => "steps",
            Self::ProportionalIntegral(_) => "proportional-integral",
            Self::Rajomon(_) => "rajomon",
        }
    }

    /// Fails if its parameters contradict each other.
    pub fn check(&self) -> Result<(), WrongParameter> {
        match self {
            Self::Steps(steps) => steps.check(),
            Self::ProportionalIntegral(controller) => controller.check(),
            Self::Rajomon(rajomon) => rajomon.check(),
        }
    }
}

impl Pricing {
    /// Starts at a price of 0.
    pub fn new(controller: Controller, currency: Currency) -> Self {
        Self {
            running: ControllerState::at(controller.clone(), Amount::ZERO),
            controller,
            currency,
            price: Amount::ZERO,
            rises: true,
            turns: 0,
        }
    }

    /// Replaces the controller. The price stays, as far as the new controller allows it. An equal controller keeps its
    /// history, too.
    pub fn change(&mut self, controller: Controller) {
        if controller == self.controller {
            return;
        }
        self.running = ControllerState::at(controller.clone(), self.price);
        self.controller = controller;
    }

    /// Bounds the next price by the part of the load that may be left: the price is 0 at a rest of 1. Only for
    /// `proportional-integral`; the others keep the rules that they reproduce.
    pub fn rest(&mut self, rest: Ratio) {
        if let ControllerState::ProportionalIntegral(running) = &mut self.running {
            running.rest(rest);
        }
    }

    /// Adds a sample and returns the new price. The first sample only starts the count. A sample that is not later than
    /// the last is ignored.
    pub fn push(&mut self, seen: Observed) -> Money {
        let busy = if seen.busy.is_finite() {
            seen.busy.clamp(0.0, 1.0)
        } else {
            1.0
        };
        let seen = Observed { busy, ..seen };
        let price = match &mut self.running {
            ControllerState::Steps(running) => running.push(seen),
            ControllerState::ProportionalIntegral(running) => running.push(seen),
            ControllerState::Rajomon(running) => running.push(seen),
        };
        if price != self.price {
            let rises = price > self.price;
            self.turns += u64::from(rises != self.rises);
            (self.price, self.rises) = (price, rises);
        }
        self.price()
    }

    /// The current price.
    pub fn price(&self) -> Money {
        self.price.to_money(self.currency)
    }

    /// Number of reversals of the price, up to down or down to up. A high count shows that the price oscillates.
    pub const fn turns(&self) -> u64 {
        self.turns
    }
}

impl ControllerState {
    /// Starts at a price, or at the highest one that the controller allows.
    fn at(controller: Controller, price: Amount) -> Self {
        match controller {
            Controller::Steps(steps) => Self::Steps(StepsState::at(steps, price)),
            Controller::ProportionalIntegral(controller) => {
                Self::ProportionalIntegral(ProportionalIntegralState::at(controller, price))
            }
            Controller::Rajomon(rajomon) => Self::Rajomon(RajomonState::at(rajomon, price)),
        }
    }
}

/// Fails if `tick` is larger than `most`: no price above 0 would be possible then.
fn ticks(tick: Amount, most: Amount) -> Result<(), WrongParameter> {
    let units = |amount: Amount| amount.micros() as f64 / 1e6;
    within("tick", units(tick), 1e-6, units(most))
}

/// Rounds `wanted` to a whole number of ticks if it differs from `present` by at least 0.75 ticks. Otherwise returns
/// `present`, so that a price between two ticks does not alternate.
fn quantised(wanted: f64, present: Amount, tick: Amount) -> Amount {
    debug_assert!(wanted.is_finite() && wanted >= 0.0, "a price of {wanted}");
    let tick = tick.micros().max(1) as f64;
    if (wanted - present.micros() as f64).abs() < 0.75 * tick {
        return present;
    }
    Amount::from_micros(((wanted / tick).round() * tick) as u64)
}
