//! `--find` in virtual time against queues whose capacity is known.
//!
//! `find_study [--seeds FIRST COUNT] [--seconds T] [--quantile Q|0 for the mean] [--times N]` searches, for each of
//! M/D/1 and M/M/1 with services of 1 and 5 ms, the capacity for a bound of N services. It prints one JSON document per
//! case.

use posthaste_load::find::{BoundedFigure, Effort, Objective, Search, Simulated, SimulatedLaw};
use posthaste_stats::theory::{Md1, Mm1};
use posthaste_units::{Seed, Span};

/// The rate at which the objective is just met, by bisection.
fn truth(service: SimulatedLaw, mean: Span, objective: &Objective) -> f64 {
    let at = |load: f64| match (service, objective.quantile) {
        (SimulatedLaw::Exponential, Some(share)) => {
            Some(Mm1::new(load, mean)?.sojourn_quantile(share))
        }
        (SimulatedLaw::Exponential, None) => Some(Mm1::new(load, mean)?.mean_sojourn()),
        (_, Some(share)) => Some(Md1::new(load, mean)?.sojourn_quantile(share)),
        (_, None) => Some(Md1::new(load, mean)?.mean_sojourn()),
    };
    let (mut low, mut high) = (0.0, 0.99);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        match at(middle) {
            Some(time) if time < objective.bound => low = middle,
            _ => high = middle,
        }
    }
    low / mean.as_secs_f64()
}

/// Result of one search: relative error and interval, both relative to the truth, if the search found them.
type Found = (Option<f64>, [Option<f64>; 2], f64);

fn search(
    service: SimulatedLaw,
    mean: Span,
    objective: Objective,
    seconds: f64,
    truth: f64,
    seed: u64,
) -> Found {
    let mut server = Simulated::new(service, mean, Seed(seed)).with_timeout(objective.bound * 20);
    let effort = Effort {
        budget: Span::from_secs_f64(seconds),
        ..Effort::default()
    };
    let mut search = Search::new(objective, effort);
    let mut spent = 0.0;
    while let Some(proposal) = search.propose() {
        let evidence = server.trial(&proposal, &objective);
        spent += evidence.elapsed.as_secs_f64();
        search.record(proposal, evidence);
    }
    let answer = search.answer(String::new());
    let relative = |rate: f64| rate / truth - 1.0;
    (
        answer.capacity_per_s.map(relative),
        [answer.held_at_per_s, answer.failed_at_per_s].map(|end| end.map(relative)),
        spent,
    )
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, place: usize, default: f64| {
        let at = arguments.iter().position(|word| word == name);
        let word = at.and_then(|at| arguments.get(at + place));
        word.map_or(default, |word| word.parse().expect("a number"))
    };
    let first = number("--seeds", 1, 1.0) as u64;
    let count = number("--seeds", 2, 1000.0) as u64;
    let (seconds, times) = (number("--seconds", 1, 50.0), number("--times", 1, 10.0));
    let share = number("--quantile", 1, 0.99);
    for (service, name) in [
        (SimulatedLaw::Constant, "md1"),
        (SimulatedLaw::Exponential, "mm1"),
    ] {
        for millis in [1, 5] {
            let mean = Span::from_millis(millis);
            let objective = Objective {
                figure: BoundedFigure::Response,
                quantile: (share > 0.0).then_some(share),
                bound: Span::from_secs_f64(mean.as_secs_f64() * times),
                tolerance: 0.01,
            };
            let truth = truth(service, mean, &objective);
            let next = std::sync::atomic::AtomicU64::new(first);
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let work = || {
                let take = || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let seeds = std::iter::repeat_with(take).take_while(|seed| *seed < first + count);
                seeds
                    .map(|seed| search(service, mean, objective, seconds, truth, seed))
                    .collect::<Vec<Found>>()
            };
            let found: Vec<Found> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                let joined = threads
                    .into_iter()
                    .map(|thread| thread.join().expect("no panic"));
                joined.flatten().collect()
            });
            print(&format!("{name}:{millis}ms"), truth, &found);
        }
    }
}

fn print(case: &str, truth: f64, found: &[Found]) {
    let errors: Vec<f64> = found.iter().filter_map(|found| found.0).collect();
    let count = errors.len() as f64;
    let bias = errors.iter().sum::<f64>() / count;
    let deviation = (errors.iter().map(|e| (e - bias).powi(2)).sum::<f64>() / count).sqrt();
    let (mut widths, mut within, mut consistent) = (Vec::new(), 0, 0);
    for (rate, [low, high], _) in found {
        let truth_is_inside =
            low.is_none_or(|low| low <= 0.0) && high.is_none_or(|high| high >= 0.0);
        consistent += usize::from(truth_is_inside);
        if let (Some(_), Some(low), Some(high)) = (rate, low, high) {
            widths.push(high - low);
            within += usize::from(truth_is_inside);
        }
    }
    widths.sort_by(f64::total_cmp);
    let longest = found.iter().map(|found| found.2).fold(0.0, f64::max);
    println!(
        "{{\"case\": \"{case}\", \"truth_per_s\": {truth:.2}, \"searches\": {}, \"figures\": {}, \"bias\": {bias:.5}, \
         \"deviation\": {deviation:.5}, \"coverage\": {:.4}, \"bounds_true\": {:.4}, \"median_width\": {:.4}, \
         \"longest_s\": {longest:.1}}}",
        found.len(),
        errors.len(),
        within as f64 / widths.len() as f64,
        consistent as f64 / found.len() as f64,
        widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
    );
}
