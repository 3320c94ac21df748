//! Random losses and links: every transaction ends, and every datagram is accounted for.

use posthaste_link::{Plan, Reordering};
use posthaste_quic_sim::{QuicOptions, QuicSimulator};
use posthaste_sim::Ending;
use posthaste_units::{Ratio, Seed};
use proptest::prelude::*;

use crate::support::{author, dropping, ms, plan, scenario};

/// Seeds of random losses.
const SEEDS: u64 = 1000;

/// Simulates transaction 1, and checks that it has ended and that nothing is missing.
fn check(mut simulator: QuicSimulator) -> Ending {
    let transaction = simulator.play(1);
    let ending = transaction.ending;
    assert_ne!(ending, Ending::Unfinished, "{transaction:?}");
    // A client that sends to a server after its idle timeout gets a stateless reset.
    assert!(
        matches!(ending.name(), "complete" | "timed-out" | "reset"),
        "{transaction:?}"
    );
    let ends = [transaction.client, transaction.server];
    for (way, link) in transaction.links.into_iter().enumerate() {
        let (sent, received) = (ends[way].sent, ends[1 - way].received);
        let copies = link.copied.packets;
        let missing = link.dropped_in_all().packets + link.corrupted.packets;
        assert_eq!(sent + copies, received + missing, "{transaction:?}");
        assert_eq!(link.inside(), 0, "nothing stays on a link");
    }
    for response in transaction.responses {
        assert!(response.total() <= transaction.ended.since(transaction.began));
    }
    ending
}

#[test]
fn a_thousand_patterns_of_loss_end() {
    let mut complete = 0;
    for seed in 0..SEEDS {
        let mut plans = dropping(&plan(Some(2000), 10 + seed % 60), "");
        for plan in &mut plans {
            let loss = format!("{}%", 2 + seed % 40);
            plan.loss = Some(loss.parse().expect("a loss"));
        }
        let lossy = scenario(QuicOptions::default(), plans, author());
        let simulator = QuicSimulator::new(lossy, Seed(seed)).expect("played");
        complete += u64::from(check(simulator) == Ending::Complete);
    }
    // Under a loss of 20 % on average, most handshakes and replies succeed.
    assert!(complete > SEEDS * 8 / 10, "{complete}");
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
        let share = |share: f64| Ratio::new(share).expect("a share");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn everything_ends_and_adds_up(
        (up, down) in (plans(), plans()),
        (request, reply) in (1u64..5000, 1u64..60_000),
        exchanges in 1usize..4,
        (datagram, certificate) in (1200u16..3000, 260u32..5000),
        (ack_delay, ack_frequency) in (any::<Option<bool>>(), proptest::option::of(1u32..20)),
        seed in any::<u64>(),
    ) {
        let mut all = author();
        all[0].request = request;
        all[0].reply = reply;
        all[0].processing = ms(5);
        let options = QuicOptions {
            datagram,
            certificate,
            ack_delay: ack_delay.map(|long| ms(if long { 100 } else { 1 })),
            ack_frequency,
            ..QuicOptions::default()
        };
        let world = scenario(options, [up, down], vec![all[0]; exchanges]);
        check(QuicSimulator::new(world, Seed(seed)).expect("played"));
    }
}
