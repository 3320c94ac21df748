//! Scenarios from a few numbers.

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_quic_sim::{QuicOptions, QuicScenario, QuicSimulator};
use posthaste_sim::{SimulatedExchange, SimulatedService};
use posthaste_units::{BitRate, ResponseTime, Seed, Span};

pub(crate) const SEED: Seed = Seed(2003);

pub(crate) fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// The exchange of most figures.
pub(crate) fn author() -> Vec<SimulatedExchange> {
    SimulatedService::single(1438, ms(200), 12_974).exchanges
}

pub(crate) fn plan(kbit: Option<u64>, delay: u64) -> Plan {
    Plan {
        bandwidth: kbit.and_then(|kbit| BitRate::per_second(kbit * 1000)),
        delay: ms(delay),
        ..Plan::default()
    }
}

/// The links of both directions, with packets dropped as in `down:1`. An empty text drops none.
pub(crate) fn dropping(plan: &Plan, drop: &str) -> [Plan; 2] {
    let line = match drop {
        "" => String::new(),
        position => format!("{}\n", position.replacen(':', " drop ", 1)),
    };
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{line}end\n")).expect("a pattern");
    Direction::BOTH.map(|direction| Plan {
        script: Some(pattern.script(direction).clone()),
        ..plan.clone()
    })
}

pub(crate) fn scenario(
    options: QuicOptions,
    plans: [Plan; 2],
    exchanges: Vec<SimulatedExchange>,
) -> QuicScenario {
    QuicScenario {
        options,
        plans: plans.map(Arc::new),
        exchanges: exchanges.into(),
        behaviour: None,
    }
}

pub(crate) fn simulator(scenario: QuicScenario) -> QuicSimulator {
    QuicSimulator::new(scenario, SEED).expect("a scenario that can be played")
}

/// The total response time in ms of transaction 1.
pub(crate) fn response(scenario: QuicScenario) -> f64 {
    let mut simulator = simulator(scenario);
    let transaction = simulator.play(1);
    let times = transaction.responses.iter().map(ResponseTime::total);
    times.map(Span::as_millis_f64).sum()
}
