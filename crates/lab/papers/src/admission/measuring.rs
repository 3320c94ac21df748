//! One run: the generators of both halves at the same time, and their results as numbers.

use std::sync::atomic::AtomicBool;

use posthaste_load::{Generator, Outcome, PartResults, Plan, Run, run};
use posthaste_stats::Histogram;
use posthaste_study::Failure;
use posthaste_units::Span;

use super::scenarios::{CLIENTS, DEADLINE, SLICE};
use crate::testbed::proxy::ProxyUnderTest;

/// Statuses with which proxies reject.
const REJECTIONS: [u16; 5] = [402, 429, 502, 503, 504];
/// Share of requests that may miss the deadline in normal load: those beyond p99.
const MISSED: f64 = 0.01;
/// Time in which no more than [`MISSED`] may miss the deadline, for the load to be normal again.
const STEADY: Span = Span::from_secs(1);

/// Results of one run.
pub(super) struct AdmissionRun {
    /// The reason of a void run: a generator was the limit.
    pub(super) void: Option<String>,
    /// Good replies within the deadline, and requests: important and other.
    pub(super) halves: [Counts; 2],
    /// The same of each client.
    pub(super) clients: Vec<Counts>,
    /// p99 of the good replies in ms. NaN without one.
    pub(super) p99_ms: f64,
    /// Seconds from the end of a storm until nearly all requests meet the deadline again. Infinite if they do not. NaN
    /// without a storm.
    pub(super) recovery_s: f64,
    /// Attempts that the proxy rejected.
    pub(super) rejected: u64,
    /// All attempts.
    pub(super) attempts: u64,
    /// Seconds of the proxy's CPU time.
    pub(super) cpu_s: f64,
    /// Requests that became due, and those with an outcome.
    pub(super) accounted: [u64; 2],
}

/// Requests, and the part of them with a good reply within the deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) good: u64,
    pub(super) requests: u64,
}

impl Counts {
    fn from_results(part: &PartResults) -> Self {
        Self {
            good: in_time(part.responses.ok()),
            requests: part.outcomes.total(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            good: self.good + other.good,
            requests: self.requests + other.requests,
        }
    }

    /// Share of the requests with a good reply in time.
    pub(super) fn share(self) -> f64 {
        self.good as f64 / self.requests as f64
    }
}

fn in_time(good: &Histogram) -> u64 {
    good.count() - good.count_above(DEADLINE)
}

/// Runs both plans through the proxy. After a storm, the last `after` steps show the recovery. `None` if stopped.
pub(super) fn measure(
    proxy: &ProxyUnderTest,
    plans: &[Plan; 2],
    after: usize,
    stop: &AtomicBool,
) -> Result<Option<AdmissionRun>, Failure> {
    let before = proxy.cpu_seconds()?;
    let runs = std::thread::scope(|scope| {
        let start = |plan| scope.spawn(move || run(plan, stop, &mut ()));
        let going: Vec<_> = plans.iter().map(start).collect();
        let ended = going.into_iter().map(|generator| {
            let run = generator.join().map_err(|_| "a generator has panicked")?;
            run.map_err(Failure::from)
        });
        ended.collect::<Result<Vec<Run>, Failure>>()
    })?;
    let cpu_s = proxy.cpu_seconds()? - before;
    if runs.iter().any(|run| run.stopped) {
        return Ok(None);
    }
    let mut result = evaluate(&runs, after);
    result.cpu_s = cpu_s;
    Ok(Some(result))
}

fn evaluate(runs: &[Run], after: usize) -> AdmissionRun {
    let half = |run: &Run| Counts {
        good: in_time(run.ok.histogram()),
        requests: run.intended,
    };
    let client = |number: usize| {
        let parts = runs
            .iter()
            .map(|run| Counts::from_results(&run.requests[number].part));
        parts.fold(Counts::default(), Counts::plus)
    };
    let mut good = Histogram::new();
    runs.iter().for_each(|run| good.merge(run.ok.histogram()));
    let sum = |count: &dyn Fn(&Run) -> u64| runs.iter().map(count).sum::<u64>();
    let rejected = |run: &Run| {
        let counts = REJECTIONS
            .iter()
            .filter_map(|status| run.statuses.get(status));
        counts.sum::<u64>()
    };
    let generators = runs.iter().map(Generator::check);
    AdmissionRun {
        void: generators.filter_map(|generator| generator.reason).next(),
        halves: [half(&runs[0]), half(&runs[1])],
        clients: (0..CLIENTS).map(client).collect(),
        p99_ms: match good.count() {
            0 => f64::NAN,
            _ => good.quantile(0.99).as_millis_f64(),
        },
        recovery_s: match after {
            0 => f64::NAN,
            _ => recovery(&courses(runs, after)),
        },
        rejected: sum(&rejected),
        attempts: sum(&|run| run.attempts.total()),
        cpu_s: f64::NAN,
        accounted: [
            sum(&|run| run.intended),
            sum(&|run| {
                Outcome::ALL
                    .into_iter()
                    .map(|outcome| run.outcomes[outcome])
                    .sum()
            }),
        ],
    }
}

/// The last `after` steps of all runs together.
fn courses(runs: &[Run], after: usize) -> Vec<Counts> {
    let step = |index: usize| {
        let parts = runs.iter().map(|run| {
            let first = run.steps.len() - after;
            Counts::from_results(&run.steps[first + index].part)
        });
        parts.fold(Counts::default(), Counts::plus)
    };
    (0..after).map(step).collect()
}

/// Seconds until nearly all requests of the next second meet the deadline. Infinite if that does not happen.
fn recovery(slices: &[Counts]) -> f64 {
    let window = (STEADY.as_nanos() / SLICE.as_nanos()) as usize;
    let is_normal = |slices: &[Counts]| {
        let sum = slices.iter().copied().fold(Counts::default(), Counts::plus);
        (sum.requests - sum.good) as f64 <= MISSED * sum.requests as f64
    };
    let first = slices.windows(window).position(is_normal);
    first.map_or(f64::INFINITY, |slice| slice as f64 * SLICE.as_secs_f64())
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one has everything (Jain, Chiu, Hawe 1984).
pub(super) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_a_tenth_for_one_of_ten() {
        assert!((jain(&[3.0; 10]) - 1.0).abs() < 1e-12);
        let mut one = [0.0; 10];
        one[0] = 5.0;
        assert!((jain(&one) - 0.1).abs() < 1e-12);
        assert!((jain(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_load_recovers_once_a_whole_second_meets_the_deadline() {
        let slice = |good| Counts {
            good,
            requests: 100,
        };
        let course =
            |goods: &[u64]| recovery(&goods.iter().copied().map(slice).collect::<Vec<_>>());
        assert_eq!(course(&[100; 8]), 0.0);
        assert_eq!(course(&[50, 80, 100, 100, 100, 99, 100, 100]), 0.5);
        // Four of 400 may miss it, and five may not.
        assert_eq!(course(&[95, 100, 100, 100, 100, 100, 100, 100]), 0.25);
        assert_eq!(course(&[96, 100, 100, 100]), 0.0);
        // A good slice is not a recovery.
        assert_eq!(course(&[0, 100, 0, 100, 0, 100, 0, 100]), f64::INFINITY);
    }
}
