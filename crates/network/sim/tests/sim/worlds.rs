//! Random scenarios: every transaction ends, and its totals are consistent.

use std::sync::Arc;

use posthaste_link::{Plan, Reordering};
use posthaste_sim::{Ending, Scenario, SimulatedService, Simulator};
use posthaste_tcp::profile;
use posthaste_units::{Ratio, Seed};
use proptest::prelude::*;

use crate::support::{ms, plan};

fn share(share: f64) -> Ratio {
    Ratio::new(share).expect("a share")
}

prop_compose! {
    fn plans()(
        kbit in prop_oneof![Just(None), (50u64..20_000).prop_map(Some)],
        delay in 0u64..200,
        jitter in prop_oneof![Just(None), Just(Some("50%")), Just(Some("variance:50%"))],
        keeps_order in any::<bool>(),
        loss in 0.0..0.3,
        copies in prop_oneof![Just(0.0), 0.0..0.2],
        hold in prop_oneof![Just(None), (0.0..0.3, 1u32..5).prop_map(Some)],
        errors in prop_oneof![Just(0.0), 0.0..0.000_01],
    ) -> Plan {
        Plan {
            jitter: jitter.and_then(|jitter| jitter.parse().ok()),
            keeps_order,
            loss: format!("{}%", loss * 100.0).parse().ok(),
            duplication: share(copies),
            reordering: hold.map(|(part, places)| Reordering::Hold { share: share(part), places }),
            bit_error_rate: share(errors),
            ..plan(kbit, delay)
        }
    }
}

fn profiles() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(profile::names())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn everything_ends_and_adds_up(
        (client, server) in (profiles(), profiles()),
        (up, down) in (plans(), plans()),
        (request, reply) in (1u64..5000, 1u64..60_000),
        exchanges in 1usize..4,
        seed in any::<u64>(),
    ) {
        let mut service = SimulatedService::single(request, ms(5), reply);
        service.exchanges = vec![service.exchanges[0]; exchanges];
        let end = |name| Arc::new(profile::named(name).expect("a profile"));
        let scenario = Scenario {
            client: end(client),
            server: end(server),
            plans: [Arc::new(up), Arc::new(down)],
            service: Arc::new(service),
        };
        let mut simulator = Simulator::new(scenario, Seed(seed)).expect("played");
        let transaction = simulator.play(1);
        prop_assert_ne!(transaction.ending, Ending::Unfinished, "{:?}", transaction);
        if transaction.ending == Ending::Complete {
            prop_assert_eq!(transaction.responses.len(), exchanges);
        }
        for response in transaction.responses {
            prop_assert!(response.total() <= transaction.ended.since(transaction.began));
        }
        for link in transaction.links {
            prop_assert_eq!(link.inside(), 0, "nothing stays on a link");
        }
    }
}
