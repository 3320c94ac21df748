//! Description of a simulation as data: the ends, the links, the service.

use std::sync::Arc;

use posthaste_link::{Direction, Plan, PlanError};
use posthaste_tcp::Profile;
use thiserror::Error;

use crate::{SimulatedExchange, SimulatedService};

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
    /// A queue that marks packets. No simulated connection uses ECN.
    #[error(
        "{direction}: simulated connections have no ECN, so that the queue {queue} marks nothing: leave ecn or step \
         out, or run posthaste net"
    )]
    Marks {
        /// Direction of the link.
        direction: Direction,
        /// Its queue.
        queue: String,
    },
    /// A service without requests.
    #[error("a connection without a request has no response time: ask at least once")]
    NoExchange,
    /// A request or a reply without a byte.
    #[error("{message} {number} is empty: it needs at least one byte to be seen")]
    Empty {
        /// `request` or `reply`.
        message: &'static str,
        /// Number on its connection, from 1.
        number: usize,
    },
    /// An invalid option of the transport.
    #[error("{reason}")]
    Transport {
        /// Option, valid values and solution.
        reason: String,
    },
}

impl Scenario {
    /// Returns an error if the scenario cannot be simulated.
    pub fn check(&self) -> Result<(), ScenarioError> {
        check_plans(&self.plans)?;
        check_exchanges(&self.service.exchanges)
    }
}

/// Returns an error if one of the links, up and down, cannot be simulated.
pub fn check_plans(plans: &[Arc<Plan>; 2]) -> Result<(), ScenarioError> {
    for (direction, plan) in Direction::BOTH.into_iter().zip(plans) {
        let named = |error| ScenarioError::Plan { direction, error };
        plan.check().map_err(named)?;
        if plan.queue.discipline.marks() {
            let queue = plan.queue.to_string();
            return Err(ScenarioError::Marks { direction, queue });
        }
    }
    Ok(())
}

/// Returns an error if there is no exchange, or an empty request or reply.
pub fn check_exchanges(exchanges: &[SimulatedExchange]) -> Result<(), ScenarioError> {
    if exchanges.is_empty() {
        return Err(ScenarioError::NoExchange);
    }
    for (index, exchange) in exchanges.iter().enumerate() {
        for (message, bytes) in [("request", exchange.request), ("reply", exchange.reply)] {
            if bytes == 0 {
                let number = index + 1;
                return Err(ScenarioError::Empty { message, number });
            }
        }
    }
    Ok(())
}
