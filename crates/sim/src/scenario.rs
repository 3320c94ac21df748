//! What is simulated, as data: the ends, the links, the service.

use std::sync::Arc;

use posthaste_link::{Direction, Plan, PlanError};
use posthaste_tcp::Profile;
use thiserror::Error;

use crate::Service;

/// Everything that a transaction depends on, but for its number and the seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The client's TCP.
    pub client: Arc<Profile>,
    /// The server's TCP.
    pub server: Arc<Profile>,
    /// What the links do: up, down.
    pub plans: [Arc<Plan>; 2],
    /// What is asked and answered.
    pub service: Arc<Service>,
}

/// Why a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// A link that cannot do what it is told.
    #[error("{direction}: {error}")]
    Plan {
        /// Which.
        direction: Direction,
        /// Why.
        error: PlanError,
    },
    /// Nothing is asked.
    #[error("a connection without a request has no response time: ask at least once")]
    NoExchange,
    /// A request or a reply without a byte.
    #[error("{what} {number} is empty: it needs at least one byte to be seen")]
    Empty {
        /// `request` or `reply`.
        what: &'static str,
        /// Which on its connection, from 1.
        number: usize,
    },
}

impl Scenario {
    /// Says what cannot be played.
    pub fn check(&self) -> Result<(), ScenarioError> {
        for (direction, plan) in Direction::BOTH.into_iter().zip(&self.plans) {
            let named = |error| ScenarioError::Plan { direction, error };
            plan.check().map_err(named)?;
        }
        if self.service.exchanges.is_empty() {
            return Err(ScenarioError::NoExchange);
        }
        for (index, exchange) in self.service.exchanges.iter().enumerate() {
            for (what, bytes) in [("request", exchange.request), ("reply", exchange.reply)] {
                if bytes == 0 {
                    let number = index + 1;
                    return Err(ScenarioError::Empty { what, number });
                }
            }
        }
        Ok(())
    }
}
