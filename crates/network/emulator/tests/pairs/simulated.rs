//! Response times in the simulator.

use std::sync::Arc;

use posthaste_sim::{Scenario, SimulatedService, Simulator};
use posthaste_units::Seed;

use crate::cell::{Cell, PROCESSING, REPLY, REQUEST, StackPair};

/// Transactions of a cell. They differ by the phase of the clocks.
const TRANSACTIONS: u64 = 100;

/// Simulates a cell. Returns the response times in ms.
pub(crate) fn simulate(pair: &StackPair, cell: Cell) -> Vec<f64> {
    let service = SimulatedService::single(u64::from(REQUEST), PROCESSING, u64::from(REPLY));
    let scenario = Scenario {
        client: pair.client.simulated(),
        server: pair.server.simulated(),
        plans: cell.plans(),
        service: Arc::new(service),
    };
    let mut simulator = Simulator::new(scenario, Seed::default()).expect("a scenario");
    let mut play = |number| {
        let transaction = simulator.play(number);
        let response = transaction.responses.first().expect("a reply");
        response.total().as_millis_f64()
    };
    (1..=TRANSACTIONS).map(&mut play).collect()
}
