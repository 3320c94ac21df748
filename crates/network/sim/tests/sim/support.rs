//! Scenarios from a few numbers.

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_sim::{Scenario, SimulatedService, Simulator};
use posthaste_tcp::profile;
use posthaste_units::{BitRate, Seed, Span};

pub(crate) const SEED: Seed = Seed(2003);

pub(crate) fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// The service of most figures.
pub(crate) fn author() -> SimulatedService {
    SimulatedService::single(1438, ms(200), 12_974)
}

pub(crate) fn plan(kbit: Option<u64>, delay: u64) -> Plan {
    Plan {
        bandwidth: kbit.and_then(|kbit| BitRate::per_second(kbit * 1000)),
        delay: ms(delay),
        ..Plan::default()
    }
}

/// Returns the plan with packets of this direction dropped, such as `3, 8-9`.
pub(crate) fn dropping(plan: Plan, direction: Direction, places: &str) -> Plan {
    let text = format!("posthaste pattern 1\n{direction} drop {places}\nend\n");
    let pattern = Pattern::parse(&text).expect("a pattern");
    Plan {
        script: Some(pattern.script(direction).clone()),
        ..plan
    }
}

pub(crate) fn scenario(tcp: &str, plans: [Plan; 2], service: SimulatedService) -> Scenario {
    let profile = Arc::new(profile::named(tcp).expect("a profile"));
    Scenario {
        client: profile.clone(),
        server: profile,
        plans: plans.map(Arc::new),
        service: Arc::new(service),
    }
}

pub(crate) fn simulator(scenario: Scenario) -> Simulator {
    Simulator::new(scenario, SEED).expect("a scenario that can be played")
}
