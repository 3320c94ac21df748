//! The load controller with a server: shares, load, queues and changes of state.

use posthaste_compression::{Gate, LoadController, LoadEstimate, Policy, Sample, Threshold, Work};
use posthaste_units::{Instant, Seed, Span};
use proptest::prelude::*;

use crate::server::{SimulatedServer, SimulationConfig};

/// Time after which the controller has settled.
const SETTLED: Span = Span::from_secs(4);

/// Loads, relative to the server's capacity when it compresses every reply.
const LOADS: [f64; 9] = [0.2, 0.5, 0.7, 0.9, 1.1, 1.5, 2.0, 2.5, 3.0];

#[test]
fn demand_is_known_as_soon_as_something_was_measured() {
    let mut controller = LoadController::new(Threshold::default(), 1.0);
    let mut push = |millis| {
        let at = Instant::default() + Span::from_millis(millis);
        let (busy, work) = (0.1, Work::default());
        controller.push(Sample { at, busy, work })
    };
    // The first sample starts the count, and one that comes too soon is ignored.
    assert_eq!([push(0), push(10)], [LoadEstimate::UNKNOWN; 2]);
    let estimate = push(200);
    assert!(
        estimate.is_known && estimate.allowance > 0.6,
        "{estimate:?}"
    );
}

#[test]
fn the_share_falls_with_the_load_and_is_what_fits() {
    for policy in [Policy::Threshold, Policy::Ladder] {
        for slowness in [4.0, 10.0, 40.0] {
            let mut before = 1.0;
            for load in LOADS {
                let mut server = SimulatedServer::new(SimulationConfig {
                    policy,
                    slowness,
                    ..SimulationConfig::default()
                });
                let rate = server.capacity() * load;
                server.run(rate, SETTLED);
                let seen = server.run(rate, Span::from_secs(15));
                let (share, fits) = (seen.share(), server.fitting(rate));
                let case = format!("{policy}, {slowness}, {load}: {share:.3} where {fits:.3} fits");
                println!("{case}, busy {:.3}, p99 {}", seen.busy(), seen.p99());
                assert!(share <= before + 0.01, "{case}; {before} at a lower load");
                assert!(share >= fits * 0.9 - 0.01, "{case}");
                let plain = rate * server.plain();
                if plain < 0.78 {
                    assert!(seen.busy() < 0.8, "{case}, busy {}", seen.busy());
                }
                if plain > 0.82 {
                    assert!(share < 0.002, "{case}, plain load {plain}");
                }
                before = share;
            }
        }
    }
}

#[test]
fn a_leap_of_the_load_is_met_before_a_queue_builds_up() {
    for (slowness, bound) in [(4.0, 15), (10.0, 15), (40.0, 25)] {
        let mut server = SimulatedServer::new(SimulationConfig {
            slowness,
            ..SimulationConfig::default()
        });
        let capacity = server.capacity();
        server.run(capacity * 0.3, SETTLED);
        // A sudden load of 1.5 times the capacity when all replies are compressed.
        let leap = server.run(capacity * 1.5, Span::from_secs(2));
        println!("leap {slowness}: {}", leap.p99());
        assert!(leap.p99() < Span::from_millis(bound), "{:?}", leap.p99());
        assert!(leap.changes <= 1);
        let after = server.run(capacity * 1.5, Span::from_secs(10));
        let fits = server.fitting(capacity * 1.5);
        assert!(
            (after.share() - fits).abs() < 0.05,
            "{} of {fits}",
            after.share()
        );
        // And back: within a second or two all replies are compressed again.
        server.run(capacity * 0.3, Span::from_secs(2));
        let calm = server.run(capacity * 0.3, Span::from_secs(5));
        assert!(calm.share() > 0.99, "{}", calm.share());
    }
}

#[test]
fn a_server_that_plain_replies_fill_compresses_for_askers_alone() {
    let world = SimulationConfig {
        asking: 0.1,
        refusing: 0.3,
        ..SimulationConfig::default()
    };
    for load in [0.5, 1.2, 2.0] {
        let mut server = SimulatedServer::new(world.clone());
        let rate = server.capacity() * load;
        server.run(rate, SETTLED);
        let seen = server.run(rate, Span::from_secs(10));
        assert_eq!(
            seen.demanded_compressed, seen.demanded,
            "every asker is served"
        );
        assert_eq!(seen.refused_compressed, 0, "nobody who refuses is");
        let fits = server.fitting(rate);
        assert!(
            (seen.share() - fits).abs() < 0.06,
            "{} of {fits}",
            seen.share()
        );
    }
}

#[test]
fn at_saturation_next_to_nothing_is_lost_to_compression() {
    for policy in [Policy::Threshold, Policy::Ladder] {
        let world = SimulationConfig {
            policy,
            refusing: 0.5,
            ..SimulationConfig::default()
        };
        let mut server = SimulatedServer::new(world);
        server.run(server.capacity() * 0.3, SETTLED);
        // Includes the first second, in which the controller adapts.
        let seen = server.saturate(Span::from_secs(10));
        let plain = 10.0 / server.plain();
        let throughput = seen.replies as f64 / plain;
        assert!(throughput > 0.99, "{policy}: {throughput}");
        assert!(seen.changes <= 1);
    }
}

#[test]
fn the_ladder_takes_better_steps_while_there_is_plenty() {
    let bytes = |load: f64| {
        let mut server = SimulatedServer::new(SimulationConfig {
            policy: Policy::Ladder,
            ..SimulationConfig::default()
        });
        let rate = server.capacity() * load;
        server.run(rate, SETTLED);
        let seen = server.run(rate, Span::from_secs(5));
        seen.bytes_out / seen.replies as u64
    };
    let [idle, half, full, over] = [0.05, 0.4, 1.0, 2.0].map(bytes);
    assert!(
        idle < half && half < full && full < over,
        "{idle} {half} {full} {over}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Steady load with any noise: the state does not oscillate, and the server stays below its threshold.
    #[test]
    fn a_steady_load_changes_the_state_at_most_once_in_five_seconds(
        load in 0.1f64..2.5,
        noise in 0.0f64..0.1,
        slowness in 3.0f64..40.0,
        asking in 0.0f64..0.2,
        seed: u64,
    ) {
        let world = SimulationConfig { noise, slowness, asking, seed: Seed(seed), ..SimulationConfig::default() };
        let mut server = SimulatedServer::new(world);
        let rate = server.capacity() * load;
        server.run(rate, SETTLED);
        let seen = server.run(rate, Span::from_secs(20));
        prop_assert!(seen.changes <= 4, "{} changes in 20 s", seen.changes);
        let unavoidable = server.unavoidable(rate);
        prop_assert!(seen.busy() < unavoidable.max(0.8) + 0.02, "busy {}", seen.busy());
        let fits = server.fitting(rate);
        prop_assert!(seen.share() <= fits + 0.05, "{} where {} fits", seen.share(), fits);
        prop_assert!(seen.share() >= fits * 0.75 - 0.05, "{} where {} fits", seen.share(), fits);
    }

    #[test]
    fn a_gate_rests_and_keeps_its_state_between_its_bounds(
        loads in proptest::collection::vec((0.0f64..1.5, 1u64..3000), 1..200),
    ) {
        let threshold = Threshold::default();
        let mut gate = Gate::new(threshold);
        let (mut now, mut changed, mut is_high) = (Instant::default(), None, false);
        for (load, ms) in loads {
            now += Span::from_millis(ms);
            let is = gate.push(now, load);
            if is != is_high {
                let crossed = if is { load > 0.8 } else { load < 0.7 };
                prop_assert!(crossed, "at a load of {}", load);
                if let Some(changed) = changed {
                    prop_assert!(now.since(changed) >= threshold.dwell);
                }
                changed = Some(now);
            }
            is_high = is;
        }
    }
}
