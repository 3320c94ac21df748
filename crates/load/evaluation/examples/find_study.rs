//! `--find` in virtual time against services with a known truth.
//!
//! `find_study [--seeds FIRST COUNT] [--seconds S] [--service NAME] [--trace]` searches each preset of the model of
//! services, with constant and Poisson arrivals. It prints one JSON document per case. `--trace` prints the trials of
//! one search instead.

#[path = "../tests/find/world.rs"]
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use posthaste_services::truth::ArrivalProcess;
use posthaste_services::{PRESETS, ServicePreset};
use posthaste_units::Seed;
use serde_json::{Value, json};

use world::{World, objective};

/// Distance from the truth, as a share, beyond which an end is wrong.
const WRONG: f64 = 0.03;

struct StudyOptions {
    first: u64,
    count: u64,
    seconds: f64,
    service: Option<String>,
    trace: bool,
}

impl StudyOptions {
    /// The options of the command line. Panics with the option that is wrong.
    fn from_args() -> Self {
        let mut options = Self {
            first: 1,
            count: 100,
            seconds: 50.0,
            service: None,
            trace: false,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .unwrap_or_else(|| panic!("{arg} without a value"))
            };
            match arg.as_str() {
                "--seeds" => {
                    options.first = value().parse().expect("--seeds FIRST COUNT");
                    options.count = value().parse().expect("--seeds FIRST COUNT");
                }
                "--seconds" => options.seconds = value().parse().expect("--seconds S"),
                "--service" => options.service = Some(value()),
                "--trace" => options.trace = true,
                _ => panic!("{arg} is unknown"),
            }
        }
        options
    }
}

/// Results of the searches of one case.
#[derive(Default)]
struct SearchTally {
    low_above: u64,
    high_below: u64,
    no_low: u64,
    no_high: u64,
    no_truth: u64,
    changed: u64,
    longest: f64,
    lows: Vec<f64>,
    widths: Vec<f64>,
}

fn study(preset: &ServicePreset, process: ArrivalProcess, options: &StudyOptions) -> Value {
    let mut tally = SearchTally::default();
    for seed in options.first..options.first + options.count {
        let mut world = World::new(preset, process, Seed(seed));
        let answer = world.search(objective(preset), options.seconds, &mut |_, _, _| {});
        let truth = world.truth(preset, &answer);
        let limit = truth.unwrap_or(0.0);
        let (low, high) = (answer.held_at_per_s, answer.failed_at_per_s);
        tally.low_above += u64::from(low.is_some_and(|low| low > (1.0 + WRONG) * limit));
        tally.high_below += u64::from(high.is_some_and(|high| high < (1.0 - WRONG) * limit));
        tally.no_low += u64::from(low.is_none() && truth.is_some());
        tally.no_high += u64::from(high.is_none());
        tally.no_truth += u64::from(truth.is_none());
        tally.changed += u64::from(answer.changed);
        tally.longest = tally.longest.max(world.now());
        tally.lows.extend(low.map(|low| low / limit));
        tally.widths.extend(
            answer
                .capacity_interval
                .map(|[low, high]| (high - low) / limit),
        );
    }
    json!({
        "case": format!("{}, {process:?}", preset.name).to_lowercase(),
        "searches": options.count,
        "seconds": options.seconds,
        "low_above": tally.low_above,
        "high_below": tally.high_below,
        "no_low": tally.no_low,
        "no_high": tally.no_high,
        "no_truth": tally.no_truth,
        "changed": tally.changed,
        "longest_s": tally.longest,
        "median_low": median(tally.lows),
        "median_width": median(tally.widths),
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn trace(preset: &ServicePreset, process: ArrivalProcess, options: &StudyOptions) {
    let mut world = World::new(preset, process, Seed(options.first));
    let answer = world.search(
        objective(preset),
        options.seconds,
        &mut |now, proposal, evidence| {
            println!(
                "{now:>6.1} {:<8} {:>8.1}/s for {:>4.1} s: {:>6.1} bad of {}",
                format!("{:?}", proposal.purpose),
                proposal.rate,
                proposal.length.as_secs_f64(),
                evidence.bad(),
                evidence.times
            );
        },
    );
    let truth = world.truth(preset, &answer);
    println!("{}, {process:?}{answer}\ntruth {truth:?}", preset.name);
}

fn main() {
    let options = StudyOptions::from_args();
    let chosen = PRESETS.iter().filter(|preset| {
        let service = options.service.as_ref();
        service.is_none_or(|service| service == preset.name)
    });
    let cases: Vec<_> = chosen
        .flat_map(|preset| {
            [ArrivalProcess::Constant, ArrivalProcess::Poisson].map(|process| (preset, process))
        })
        .collect();
    if options.trace {
        for (preset, process) in cases {
            trace(preset, process, &options);
        }
        return;
    }
    let (next, done) = (
        AtomicUsize::new(0),
        Mutex::new(vec![Value::Null; cases.len()]),
    );
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((preset, process)) = cases.get(at) else {
                break;
            };
            let result = study(preset, *process, &options);
            done.lock().expect("no case panics")[at] = result;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    for line in done.into_inner().expect("no case panics") {
        println!("{line}");
    }
}
