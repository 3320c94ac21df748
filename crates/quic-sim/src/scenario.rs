//! Description of a simulation over QUIC as data: the ends, the links, the service.

use std::sync::Arc;

use posthaste_draw::Ladder;
use posthaste_link::Plan;
use posthaste_sim::{
    ScenarioError, SimulatedExchange, SimulatedScenario, Totals, TransactionSimulator,
    check_exchanges, check_plans,
};
use posthaste_units::{Seed, Span};

use crate::ladder::quic_ladder;
use crate::{QuicOptions, QuicSimulator};

/// Transactions of a batch: some ten milliseconds, because each has the cryptography of a handshake.
const BATCH: u64 = 32;

/// All inputs of a transaction except its number and the seed.
#[derive(Clone, Debug)]
pub struct QuicScenario {
    /// Options of both ends.
    pub options: QuicOptions,
    /// Plans of the links: up, down.
    pub plans: [Arc<Plan>; 2],
    /// Requests and their replies in sequence, each pair on its own stream.
    pub exchanges: Arc<[SimulatedExchange]>,
}

impl QuicScenario {
    /// Returns an error if the scenario cannot be simulated.
    pub fn check(&self) -> Result<(), ScenarioError> {
        check_plans(&self.plans)?;
        check_exchanges(&self.exchanges)?;
        self.options
            .check()
            .map_err(|error| ScenarioError::Transport {
                reason: error.to_string(),
            })
    }

    /// Longest time in which neither program acts.
    pub(crate) fn silence(&self) -> Span {
        let exchanges = self.exchanges.iter();
        let times = exchanges.map(|exchange| exchange.processing.max(exchange.pause));
        times.max().unwrap_or_default()
    }

    /// Bytes of all requests and replies.
    pub(crate) fn bytes(&self) -> u64 {
        let exchanges = self.exchanges.iter();
        exchanges.fold(0, |sum, exchange| {
            sum.saturating_add(exchange.request)
                .saturating_add(exchange.reply)
        })
    }
}

impl SimulatedScenario for QuicScenario {
    fn plans(&self) -> [&Plan; 2] {
        self.plans.each_ref().map(|plan| &**plan)
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    fn simulator(&self, seed: Seed) -> Result<Box<dyn TransactionSimulator>, ScenarioError> {
        Ok(Box::new(QuicSimulator::new(self.clone(), seed)?))
    }

    fn ladder(&self, seed: Seed, number: u64) -> Result<Ladder, ScenarioError> {
        quic_ladder(self, seed, number)
    }
}

impl TransactionSimulator for QuicSimulator {
    fn add_to(&mut self, totals: &mut Totals, number: u64) {
        totals.add_connection(&self.play(number).completed());
    }
}
