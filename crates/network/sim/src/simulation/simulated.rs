//! Interface between a transport and everything that runs and counts its transactions: sweeps, threads, agents.
//!
//! Cases hold their scenario behind [`SimulatedScenario`], so that tables, pictures and jobs are the same for every
//! transport. One dynamic call per transaction costs nothing next to its packets.

use std::fmt;

use posthaste_draw::Ladder;
use posthaste_link::Plan;
use posthaste_tcp::TimerClock;
use posthaste_units::Seed;

use crate::simulation::ladder::ladder;
use crate::{Scenario, ScenarioError, Simulator, Totals};

/// Transactions of a batch over TCP: some ten milliseconds, so that merging costs little.
const BATCH: u64 = 1 << 14;

/// A scenario of any transport.
pub trait SimulatedScenario: fmt::Debug + Send + Sync {
    /// Plans of the links: up, down.
    fn plans(&self) -> [&Plan; 2];

    /// True if an end's timers expire at ticks. The result then depends on the start time.
    fn has_ticks(&self) -> bool {
        false
    }

    /// Number of transactions after which a thread reports its totals: at least ten milliseconds of computing.
    fn batch(&self) -> u64;

    /// Creates a simulator of the transactions with this seed. Returns an error if the scenario cannot be simulated.
    fn simulator(&self, seed: Seed) -> Result<Box<dyn TransactionSimulator>, ScenarioError>;

    /// Simulates transaction `number` and draws its packets.
    fn ladder(&self, seed: Seed, number: u64) -> Result<Ladder, ScenarioError>;
}

/// A simulator of transactions by number.
pub trait TransactionSimulator {
    /// Simulates transaction `number`, from 1, and adds it to the totals.
    fn add_to(&mut self, totals: &mut Totals, number: u64);
}

impl SimulatedScenario for Scenario {
    fn plans(&self) -> [&Plan; 2] {
        self.plans.each_ref().map(|plan| &**plan)
    }

    fn has_ticks(&self) -> bool {
        let mut ends = [&self.client, &self.server].into_iter();
        ends.any(|end| end.clock != TimerClock::Exact)
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    fn simulator(&self, seed: Seed) -> Result<Box<dyn TransactionSimulator>, ScenarioError> {
        Ok(Box::new(Simulator::new(self.clone(), seed)?))
    }

    fn ladder(&self, seed: Seed, number: u64) -> Result<Ladder, ScenarioError> {
        ladder(self, seed, number)
    }
}

impl TransactionSimulator for Simulator {
    fn add_to(&mut self, totals: &mut Totals, number: u64) {
        totals.add(&self.play(number));
    }
}
