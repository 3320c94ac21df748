//! Searches in virtual time against services whose truth is known.

mod world;

use posthaste_evaluation::Assertion;
use posthaste_evaluation::find::{
    BoundedFigure, Capacity, Effort, Evidence, FindVerdict, LimitedBy, Objective, Purpose, Search,
};
use posthaste_services::truth::ArrivalProcess;
use posthaste_services::{PRESETS, ServicePreset};
use posthaste_stats::Recorder;
use posthaste_units::{Seed, Span};

use crate::world::{World, objective};

const PROCESSES: [ArrivalProcess; 2] = [ArrivalProcess::Constant, ArrivalProcess::Poisson];
const SECONDS: f64 = 50.0;

fn preset(name: &str) -> &'static ServicePreset {
    PRESETS.iter().find(|preset| preset.name == name).unwrap()
}

/// The answer of a search of 50 s, with the world after it.
fn search(preset: &ServicePreset, process: ArrivalProcess, seed: u64) -> (Capacity, World) {
    search_for(preset, process, seed, objective(preset))
}

fn search_for(
    preset: &ServicePreset,
    process: ArrivalProcess,
    seed: u64,
    objective: Objective,
) -> (Capacity, World) {
    let mut world = World::new(preset, process, Seed(seed));
    let answer = world.search(objective, SECONDS, &mut |_, _, _| {});
    assert!(world.now() < 1.1 * SECONDS, "{}: {answer}", preset.name);
    (answer, world)
}

/// The study has a thousand searches of each kind: `cargo xtask bench find-virtual`.
#[test]
fn ends_agree_with_the_truth_of_every_service() {
    let (mut searches, mut above, mut below, mut absent) = (0, 0, 0, 0);
    for preset in PRESETS {
        for process in PROCESSES {
            for seed in 1..=4 {
                let (answer, world) = search(preset, process, seed);
                let truth = world.truth(preset, &answer);
                let limit = truth.unwrap_or(0.0);
                let (low, high) = (answer.held_at_per_s, answer.failed_at_per_s);
                searches += 1;
                above += u32::from(low.is_some_and(|low| low > 1.03 * limit));
                below += u32::from(high.is_some_and(|high| high < 0.97 * limit));
                absent += u32::from(low.is_none() && truth.is_some());
                if let Some((low, high)) = low.zip(high) {
                    assert!(low < high, "{}: {answer}", preset.name);
                }
            }
        }
    }
    assert!(25 * above <= searches, "{above} of {searches} lower ends");
    assert!(25 * below <= searches, "{below} of {searches} upper ends");
    assert!(5 * absent <= searches, "{absent} of {searches} have none");
}

#[test]
fn no_rate_holds_where_every_fiftieth_request_hangs() {
    for process in PROCESSES {
        for seed in 1..=10 {
            let (answer, _) = search(preset("hang-two"), process, seed);
            assert_ne!(answer.verdict(), FindVerdict::Holds, "{answer}");
            assert!(answer.failed_at_per_s.is_some(), "{answer}");
        }
    }
}

#[test]
fn a_service_that_becomes_faster_is_said_to_change() {
    for seed in 1..=5 {
        let (answer, _) = search(preset("doubling"), ArrivalProcess::Constant, seed);
        assert!(answer.changed, "{answer}");
        assert!(answer.held_at_per_s.unwrap() > 250.0, "{answer}");
        assert!(answer.to_string().contains("changed during"), "{answer}");
    }
}

#[test]
fn a_cold_start_does_not_decide() {
    for process in PROCESSES {
        let (answer, _) = search(preset("cold-start"), process, 1);
        assert!(answer.held_at_per_s.unwrap() > 100.0, "{answer}");
        assert!(answer.failed_at_per_s.unwrap() > 150.0, "{answer}");
    }
}

#[test]
fn rejections_by_status_bound_a_limited_service() {
    let (answer, _) = search(preset("limiter"), ArrivalProcess::Constant, 1);
    assert_eq!(answer.limited_by, LimitedBy::Service);
    let [low, high] = answer.capacity_interval.unwrap();
    assert!(low > 80.0 && (97.0..125.0).contains(&high), "{answer}");
}

#[test]
fn the_answer_says_how_long_it_looked() {
    let (answer, _) = search(preset("stall"), ArrivalProcess::Constant, 1);
    assert!((5.0..SECONDS).contains(&answer.looked_s), "{answer}");
    let text = answer.to_string();
    let looked = text.contains("rarer events are not in this answer")
        || text.contains("give a longer --duration");
    assert!(looked, "{text}");
}

#[test]
fn the_capacity_is_asserted_by_its_lower_end() {
    let (mut answer, _) = search(preset("md1"), ArrivalProcess::Constant, 1);
    let held = answer.held_at_per_s.unwrap();
    let assertion = |rate: f64| -> Assertion { format!("capacity>{rate:.1}/s").parse().unwrap() };
    answer.check(&[assertion(held - 1.0), assertion(held + 1.0)]);
    let holds: Vec<Option<bool>> = answer
        .assertions
        .iter()
        .map(|result| result.holds)
        .collect();
    assert_eq!(holds, [Some(true), Some(false)], "{answer}");
    let (mut answer, _) = search(preset("hang-two"), ArrivalProcess::Constant, 1);
    answer.check(&[assertion(1.0)]);
    let [result] = &answer.assertions[..] else {
        panic!("{answer}")
    };
    assert_eq!(result.holds, None);
    assert!(result.found.starts_with("unknown"), "{result:?}");
}

#[test]
fn a_mean_is_searched_too() {
    // The mean of M/M/1 with 5 ms is 20 ms at 150/s.
    let preset = preset("mm1");
    let mean = Objective {
        quantile: None,
        bound: Span::from_millis(20),
        ..objective(preset)
    };
    let mut above = 0;
    for seed in 1..=10 {
        let (answer, _) = search_for(preset, ArrivalProcess::Poisson, seed, mean);
        above += u32::from(answer.held_at_per_s.is_some_and(|low| low > 155.0));
        let high = answer.failed_at_per_s;
        assert!(high.is_none_or(|high| high > 145.0), "{answer}");
    }
    assert!(above <= 1, "{above} of 10 lower ends are too high");
}

#[test]
fn no_request_at_all_may_exceed_a_maximum() {
    let preset = preset("md1");
    let maximum = Objective {
        quantile: Some(1.0),
        tolerance: f64::MIN_POSITIVE,
        ..objective(preset)
    };
    let (answer, _) = search_for(preset, ArrivalProcess::Constant, 1, maximum);
    assert!(answer.held_at_per_s.unwrap() > 100.0, "{answer}");
    assert!(answer.failed_at_per_s.unwrap() > 195.0, "{answer}");
    assert_eq!(answer.bursts, 0);
}

#[test]
fn an_objective_that_fails_at_the_lowest_rate_ends_there() {
    let preset = preset("md1");
    let impossible = Objective {
        bound: Span::from_millis(1),
        ..objective(preset)
    };
    let (answer, _) = search_for(preset, ArrivalProcess::Constant, 1, impossible);
    assert_eq!(answer.failed_at_per_s, Some(20.0), "{answer}");
    assert_eq!(answer.held_at_per_s, None);
}

#[test]
fn a_late_generator_is_the_limit() {
    const LIMIT: f64 = 900.0;
    let objective = objective(preset("md1"));
    let mut search = Search::new(objective, Effort::default());
    while let Some(proposal) = search.propose() {
        let is_late = proposal.rate > LIMIT;
        let response = Span::from_millis(if is_late { 500 } else { 2 });
        let mut times = Recorder::new();
        let count = (proposal.rate * proposal.length.as_secs_f64()) as u64;
        for index in 0..count {
            let due = Span::from_secs_f64(index as f64 / proposal.rate);
            times.record(due, response);
        }
        let mut evidence = Evidence::of_responses(&objective, &times, &times);
        evidence.throughput = proposal.rate;
        evidence.elapsed = proposal.settle + proposal.length;
        evidence.late = is_late;
        search.record(proposal, evidence);
    }
    let answer = search.answer(String::new());
    assert_eq!(answer.limited_by, LimitedBy::Generator, "{answer}");
    assert_eq!(answer.failed_at_per_s, None);
    let held = answer.held_at_per_s.unwrap();
    assert!((600.0..=LIMIT).contains(&held), "{answer}");
    assert!(answer.to_string().contains("the generator is the limit"));
}

#[test]
fn figures_of_events_settle_for_a_stream() {
    let objective = Objective {
        figure: BoundedFigure::Gap,
        ..objective(preset("md1"))
    };
    let mut search = Search::new(objective, Effort::default());
    let mut spent = Span::ZERO;
    while let Some(proposal) = search.propose() {
        let settles = proposal.settle > Span::from_millis(500);
        assert_ne!(settles, proposal.purpose == Purpose::Recover);
        let mut gaps = Recorder::new();
        let count = (3.0 * proposal.rate * proposal.length.as_secs_f64()) as u64;
        for index in 0..count {
            let due = Span::from_secs_f64(index as f64 / proposal.rate / 3.0);
            gaps.record(due, Span::from_millis(10));
        }
        let mut evidence = Evidence::of_responses(&objective, &gaps, &gaps);
        evidence.requests = count / 3;
        evidence.stream = 0.5;
        evidence.throughput = proposal.rate;
        evidence.elapsed = proposal.settle + proposal.length + Span::from_millis(500);
        spent += evidence.elapsed;
        search.record(proposal, evidence);
        assert!(spent < Span::from_secs(60), "the search takes {spent}");
    }
    let answer = search.answer(String::new());
    assert!(answer.held_at_per_s.is_some(), "{answer}");
}
