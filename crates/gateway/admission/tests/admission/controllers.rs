//! Controllers with a plant: settling time, stability, and the shapes of the thesis.

use posthaste_admission::controller::{ProportionalIntegral, Rajomon, Steps};
use posthaste_admission::{Controller, Observed, Pricing};
use posthaste_units::{Instant, Seed, Span};

use super::plant::{Budgets, Moment, Plant, PlantConfig, mean, price_variance, settling};

fn steps() -> PlantConfig {
    PlantConfig {
        controller: Controller::Steps(Steps::default()),
        budgets: Budgets::Four,
        staleness: Span::ZERO,
        sample: Span::from_millis(200),
        service: Span::from_millis(2),
        seed: Seed(1),
    }
}

fn proportional_integral() -> PlantConfig {
    let controller = Controller::ProportionalIntegral(ProportionalIntegral::default());
    PlantConfig {
        controller,
        ..steps()
    }
}

fn rajomon() -> PlantConfig {
    let controller = Controller::Rajomon(Rajomon::default());
    PlantConfig {
        controller,
        sample: Span::from_millis(10),
        ..steps()
    }
}

#[test]
fn proportional_integral_settles_within_5_s_of_a_doubled_load() {
    for budgets in [Budgets::Even, Budgets::Skewed] {
        for staleness in [0, 500].map(Span::from_millis) {
            for (before, after) in [(0.7, 1.4), (1.0, 2.0), (2.5, 5.0)] {
                for seed in (0..4).map(Seed) {
                    let world = PlantConfig {
                        budgets,
                        staleness,
                        seed,
                        ..proportional_integral()
                    };
                    let mut plant = Plant::new(world);
                    plant.run(before, 60.0);
                    let seen = plant.run(after, 45.0);
                    let took = settling(seen);
                    assert!(
                        took <= 5.0,
                        "{budgets:?}, {staleness} old, {before} to {after}: {took} s"
                    );
                    let busy = mean(&seen[25..], |moment| moment.busy);
                    assert!(
                        (0.70..0.80).contains(&busy),
                        "{budgets:?} {after}: busy {busy}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_steady_load_has_a_still_price_and_with_steps_it_has_none() {
    for budgets in [Budgets::Even, Budgets::Skewed] {
        for load in [1.4, 2.0, 5.0] {
            let variance = |world: PlantConfig| {
                let mut plant = Plant::new(PlantConfig { budgets, ..world });
                plant.run(load, 120.0);
                let turns = plant.turns();
                let variance = price_variance(plant.run(load, 300.0));
                (variance, plant.turns() - turns)
            };
            let (still, _) = variance(proportional_integral());
            let (stepped, turns) = variance(steps());
            assert!(
                still * 5.0 < stepped,
                "{budgets:?} {load}: {still} and {stepped}"
            );
            assert!(still.sqrt() < 0.02, "{budgets:?} {load}: {}", still.sqrt());
            // The mean of 30 s is too late for steps of 5 s, so the price visibly oscillates.
            assert!(turns >= 4, "{budgets:?} {load}: {turns} turns in 5 minutes");
        }
    }
}

/// Integral windup would keep the price high, or at 0, for minutes.
#[test]
fn nothing_is_to_be_unwound() {
    let mut plant = Plant::new(PlantConfig {
        budgets: Budgets::Rich,
        ..proportional_integral()
    });
    let overloaded = plant.run(1.5, 60.0);
    assert_eq!(
        overloaded.last().map(|moment| moment.price),
        Some(1.0),
        "nobody is kept away"
    );
    // The queue of that minute takes 30 s to drain.
    let seen = plant.run(0.3, 90.0);
    let empty = seen
        .iter()
        .position(|moment| moment.busy < 0.5)
        .expect("worked off");
    let down = seen
        .iter()
        .position(|moment| moment.price == 0.0)
        .expect("comes down");
    assert!(
        seen[down].at - seen[empty].at < 20.0,
        "{}",
        seen[down].at - seen[empty].at
    );

    let mut plant = Plant::new(PlantConfig {
        budgets: Budgets::Even,
        ..proportional_integral()
    });
    plant.run(0.2, 600.0);
    let seen = plant.run(2.0, 10.0);
    let up = seen
        .iter()
        .position(|moment| moment.price > 0.5)
        .expect("goes up");
    assert!(
        seen[up].at - seen[0].at < 3.0,
        "{}",
        seen[up].at - seen[0].at
    );
}

/// The mean busy share of the preceding 30 s.
fn mean_before(seen: &[Moment], index: usize) -> f64 {
    let from = seen[index].at - 30.0 + 1e-6;
    let first = seen.iter().position(|moment| moment.at > from).unwrap_or(0);
    mean(&seen[first..=index], |moment| moment.busy)
}

/// WS-QoS, figures 68 to 70: the load grows, is steady, and falls.
#[test]
fn steps_draw_the_thesis_s_figures() {
    let mut plant = Plant::new(steps());
    plant.run(0.7, 60.0);
    plant.run(1.2, 300.0);
    plant.run(0.5, 120.0);
    let seen = &plant.seen;
    assert!(
        seen[..300].iter().all(|moment| moment.price == 0.0),
        "below 80 % it costs nothing"
    );
    let rose = seen
        .iter()
        .position(|moment| moment.price > 0.0)
        .expect("it rises");
    let delay = seen[rose].at - 60.0;
    assert!(
        (5.0..25.0).contains(&delay),
        "the mean passes 80 % after {delay} s"
    );
    let highest = seen.iter().map(|moment| moment.price).fold(0.0, f64::max);
    assert!(highest >= 0.5, "{highest}");
    let steady: Vec<_> = seen[600..1800]
        .windows(2)
        .map(|two| two[1].price - two[0].price)
        .collect();
    assert!(steady.iter().any(|change| *change > 0.0) && steady.iter().any(|change| *change < 0.0));
    let fallen = &seen[1800..];
    assert_eq!(fallen.last().map(|moment| moment.price), Some(0.0));
    assert!(
        fallen[50..]
            .windows(2)
            .all(|two| two[1].price <= two[0].price),
        "step by step to 0"
    );

    let mut changed = f64::NEG_INFINITY;
    for index in 1..seen.len() {
        let change = seen[index].price - seen[index - 1].price;
        if change != 0.0 {
            assert!((change.abs() - 0.1).abs() < 1e-9, "a step of {change}");
            let mean = mean_before(seen, index);
            // Old values leave the window in slices of half a second.
            let fits = if change > 0.0 {
                mean > 0.785
            } else {
                mean < 0.715
            };
            assert!(fits, "{change} at a mean of {mean}");
            assert!(seen[index].at - changed >= 5.0 - 1e-6, "sooner than 5 s");
            changed = seen[index].at;
        }
    }
}

fn observed(ms: u64, busy: f64, delay: u64) -> Observed {
    let at = Instant::ORIGIN + Span::from_millis(ms);
    Observed {
        at,
        busy,
        delay: Span::from_millis(delay),
    }
}

fn pricing(controller: Controller) -> Pricing {
    Pricing::new(controller, "EUR".parse().expect("a currency"))
}

#[test]
fn rajomon_goes_by_the_queueing_delay() {
    let mut pricing = pricing(Controller::Rajomon(Rajomon::default()));
    let mut price = |ms, delay| pricing.push(observed(ms, 1.0, delay)).micros();
    assert_eq!(price(0, 100), 0, "the first begins the count");
    assert_eq!(price(10, 60), 10_000, "an excess of two thresholds");
    assert_eq!(price(50, 40), 30_000, "an excess of one, for four periods");
    assert_eq!(
        price(150, 20),
        20_000,
        "at the threshold it falls, by 0.001 a period"
    );
    assert_eq!(price(10_000, 0), 0);
    assert_eq!(price(20_000, 10_000), 1_000_000, "never above the highest");
}

#[test]
fn rajomon_bounds_the_wait_and_lets_go() {
    let mut plant = Plant::new(PlantConfig {
        budgets: Budgets::Even,
        ..rajomon()
    });
    plant.run(2.0, 30.0);
    let seen = plant.run(2.0, 60.0);
    let wait = seen.iter().map(|moment| moment.wait).fold(0.0, f64::max);
    assert!(wait < 0.15, "{wait}");
    assert!(mean(seen, |moment| moment.busy) > 0.85);
    let seen = plant.run(0.5, 15.0);
    assert_eq!(seen.last().map(|moment| moment.price), Some(0.0));
}

#[test]
fn odd_samples_do_no_harm() {
    for controller in [steps(), proportional_integral(), rajomon()].map(|world| world.controller) {
        let mut pricing = pricing(controller);
        for busy in [f64::NAN, f64::INFINITY, -3.0, 17.0] {
            let price = pricing.push(observed(1000, busy, 0)).micros();
            assert_eq!(price, 0, "no time has passed");
            pricing.push(observed(500, busy, 0));
        }
        let day = 86_400_000;
        for second in 1..200 {
            let at = if second % 50 == 0 {
                0
            } else {
                day + second * 1000
            };
            let price = pricing
                .push(observed(at, f64::NAN, u64::MAX / 2_000_000))
                .micros();
            assert!(price <= 1_000_000);
        }
        assert_eq!(
            pricing.price().micros(),
            1_000_000,
            "unknown counts as busy"
        );
    }
}
