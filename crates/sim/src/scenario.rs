//! Description of a simulation as data: the ends, the links, the service.

use std::sync::Arc;

use posthaste_link::{Direction, Plan, PlanError};
use posthaste_tcp::Profile;
use thiserror::Error;

use crate::SimulatedService;

/// All inputs of a transaction except its number and the seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The client's TCP.
    pub client: Arc<Profile>,
    /// The server's TCP.
    pub server: Arc<Profile>,
    /// Plans of the links: up, down.
    pub plans: [Arc<Plan>; 2],
    /// Requests and replies.
    pub service: Arc<SimulatedService>,
}

/// Reason for which a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// An invalid plan of a link.
    #[error("{direction}: {error}")]
    Plan {
        /// Direction of the link.
        direction: Direction,
        /// Error in the plan.
        error: PlanError,
    },
    /// A service without requests.
    #[error("a connection without a request has no response time: ask at least once")]
    NoExchange,
    /// A request or a reply without a byte.
    #[error("{what} {number} is empty: it needs at least one byte to be seen")]
    Empty {
        /// `request` or `reply`.
        what: &'static str,
        /// Number on its connection, from 1.
        number: usize,
    },
}

impl Scenario {
    /// Returns an error if the scenario cannot be simulated.
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
