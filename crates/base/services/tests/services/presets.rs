//! The presets: names, and truths as they are documented.

use std::collections::BTreeSet;

use posthaste_services::truth::{ArrivalProcess, Truth, lasting, simulated, steady};
use posthaste_services::{PRESETS, ServicePreset};
use posthaste_units::{Instant, Seed, Span};

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(names.len(), PRESETS.len());
    assert_eq!(PRESETS.len(), 14);
    for name in names {
        assert_eq!(ServicePreset::named(name).unwrap().name, name);
    }
    assert!(ServicePreset::named("nothing").is_none());
}

#[test]
fn each_preset_has_a_truth_except_two_in_a_hundred_hangs() {
    for preset in PRESETS {
        let last = preset.spec().at_age(preset.age);
        for arrivals in [ArrivalProcess::Poisson, ArrivalProcess::Constant] {
            let truth = simulated(&last, preset.bound(), arrivals, 5_000);
            assert_eq!(
                truth == Truth::None,
                preset.name == "hang-two",
                "{}",
                preset.name
            );
        }
    }
}

/// Prints the truths. `SERVICE_RUNS=20 cargo test -p posthaste-services --test services -- --nocapture truths_of` has
/// twenty runs for each truth of a limited time.
#[test]
fn truths_of_presets_are_printed() {
    let Some(runs) = std::env::var("SERVICE_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
    else {
        return;
    };
    println!("| preset | service | p99 | arrivals | steady | first 50 s | first 200 s |");
    println!("|---|---|---|---|---|---|---|");
    for preset in PRESETS {
        for arrivals in [ArrivalProcess::Constant, ArrivalProcess::Poisson] {
            let last = preset.spec().at_age(preset.age);
            let always = steady(&last, preset.bound(), arrivals);
            let [short, long] = [50, 200].map(|seconds| {
                let service = preset.service(Seed(1));
                let time = Span::from_secs(seconds);
                lasting(
                    &service,
                    Instant::ORIGIN,
                    preset.bound(),
                    arrivals,
                    time,
                    runs,
                )
            });
            let [always, short, long] = [always, short, long].map(|truth| match truth {
                Truth::None => "none".to_owned(),
                Truth::Any => "any".to_owned(),
                Truth::UpTo { rate, is_exact } => {
                    let mark = if is_exact { " (theory)" } else { "" };
                    format!("{:.1}{mark}", rate.as_per_second())
                }
            });
            let (name, text, p99) = (preset.name, preset.text, preset.p99);
            println!("| {name} | `{text}` | {p99} | {arrivals:?} | {always} | {short} | {long} |");
        }
    }
}
