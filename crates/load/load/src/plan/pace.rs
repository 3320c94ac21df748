//! Times at which requests are due. They are fixed before the first request, and replies never move them.
//!
//! An arrival process is a sequence of points on an axis of expected arrivals: the whole numbers for constant arrivals,
//! sums of exponential draws for Poisson. The plan of rates maps that axis to time by the inverse of its cumulative
//! rate. So every process works with every plan: steady, steps, ramps.

use std::sync::Arc;

use posthaste_units::{Rate, Seed, Span, Stream};
use rand_distr::{Distribution as _, Exp1};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::exact;

/// Maximum length of a run, with its warm-up: 31 days.
pub(crate) const LONGEST_RUN: Span = Span::from_secs(31 * 24 * 3_600);

/// Arrival process at a given rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Evenly spaced, starting at once.
    Constant,
    /// As a Poisson process: exponential gaps.
    Poisson,
    /// At these times after the start. Rates do not apply.
    Trace(#[serde(with = "exact::ascending_nanos")] Arc<[Span]>),
}

/// A stretch of the plan with a linear change of rate from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Rate at the beginning.
    #[serde(with = "exact::per_second")]
    pub from: Rate,
    /// Rate at the end. Equal to `from` for a constant rate.
    #[serde(with = "exact::per_second")]
    pub to: Rate,
    /// Duration.
    #[serde(with = "exact::nanos")]
    pub length: Span,
}

impl RateStep {
    /// A stretch at one rate.
    pub const fn steady(rate: Rate, length: Span) -> Self {
        Self {
            from: rate,
            to: rate,
            length,
        }
    }

    /// Expected number of arrivals.
    pub fn expected(&self) -> f64 {
        let mean = f64::midpoint(self.from.as_per_second(), self.to.as_per_second());
        mean * self.length.as_secs_f64()
    }

    /// Returns the time in the stretch by which `arrivals` are expected.
    fn time_of(&self, arrivals: f64) -> Span {
        let start = self.from.as_per_second();
        let slope = (self.to.as_per_second() - start) / self.length.as_secs_f64();
        // This form of the root of start*t + slope*t*t/2 = arrivals stays exact as slope goes to 0.
        let root = (start * start + 2.0 * slope * arrivals).max(0.0).sqrt();
        Span::from_secs_f64(2.0 * arrivals / (start + root))
    }
}

/// One request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledArrival {
    /// Number in the sequence of the whole run, independent of the number of threads.
    pub number: u64,
    /// Due time, from the start of the run.
    pub at: Span,
    /// Its step of the plan.
    pub step: usize,
}

/// Every arrival of an open-loop run, in order.
pub(crate) struct Schedule {
    steps: Arc<[RateStep]>,
    points: Points,
    number: u64,
    step: usize,
    step_starts: Span,
    expected_before: f64,
}

enum Points {
    Constant,
    Poisson { draws: Box<Stream>, next: f64 },
    Trace(Arc<[Span]>),
}

impl Schedule {
    /// Creates the schedule of a plan. Poisson arrivals draw from the stream `arrivals` of `seed`.
    pub(crate) fn new(arrivals: &Arrivals, steps: Arc<[RateStep]>, seed: Seed) -> Self {
        let points = match arrivals {
            Arrivals::Constant => Points::Constant,
            Arrivals::Poisson => {
                let mut draws = Box::new(seed.stream("arrivals"));
                let next = Exp1.sample(&mut draws);
                Points::Poisson { draws, next }
            }
            Arrivals::Trace(times) => {
                assert!(times.is_sorted(), "arrivals of a trace decrease");
                Points::Trace(times.clone())
            }
        };
        Self {
            steps,
            points,
            number: 0,
            step: 0,
            step_starts: Span::ZERO,
            expected_before: 0.0,
        }
    }

    /// Passes over every `stride`-th constant arrival from `next` on, which was the last to be taken, as long as they are in
    /// its step and due until `end`. Returns their number and the due time of the last one.
    ///
    /// # Panics
    /// If the arrivals are not constant, or `next` is due after `end`.
    pub(crate) fn skip_until(
        &mut self,
        next: ScheduledArrival,
        end: Span,
        stride: u64,
    ) -> (u64, Span) {
        assert!(
            matches!(self.points, Points::Constant) && next.at <= end && next.step == self.step
        );
        let step = self.steps[self.step];
        let number = |skipped: u64| next.number + skipped * stride;
        let at = |skipped: u64| {
            self.step_starts + step.time_of(number(skipped) as f64 - self.expected_before)
        };
        let step_end = self.expected_before + step.expected() * (1.0 - 1e-12);
        let is_skipped = |skipped: u64| (number(skipped) as f64) < step_end && at(skipped) <= end;
        // The first is skipped, and none beyond the expected number.
        let (mut skipped, mut kept) = (0, (step.expected() as u64).saturating_add(1) / stride + 2);
        while kept - skipped > 1 {
            let middle = u64::midpoint(skipped, kept);
            if is_skipped(middle) {
                skipped = middle;
            } else {
                kept = middle;
            }
        }
        let last = at(skipped);
        self.number = number(skipped) + 1;
        (skipped + 1, last)
    }

    /// Returns the next point on the axis of expected arrivals.
    fn take_point(&mut self) -> f64 {
        match &mut self.points {
            Points::Constant | Points::Trace(_) => self.number as f64,
            Points::Poisson { draws, next } => {
                let gap: f64 = Exp1.sample(draws);
                std::mem::replace(next, *next + gap)
            }
        }
    }
}

impl Iterator for Schedule {
    type Item = ScheduledArrival;

    fn nth(&mut self, skipped: usize) -> Option<ScheduledArrival> {
        if let Points::Poisson { .. } = self.points {
            for _ in 0..skipped {
                self.next()?;
            }
        } else {
            self.number += skipped as u64;
        }
        self.next()
    }

    fn next(&mut self) -> Option<ScheduledArrival> {
        let at = if let Points::Trace(times) = &self.points {
            *times.get(usize::try_from(self.number).ok()?)?
        } else {
            let point = self.take_point();
            loop {
                let step = self.steps.get(self.step)?;
                let expected = step.expected();
                // Slightly less than the whole, so that rounding never adds an arrival.
                if point < self.expected_before + expected * (1.0 - 1e-12) {
                    break self.step_starts + step.time_of(point - self.expected_before);
                }
                self.expected_before += expected;
                self.step_starts += step.length;
                self.step += 1;
            }
        };
        let arrival = ScheduledArrival {
            number: self.number,
            at,
            step: self.step,
        };
        self.number += 1;
        Some(arrival)
    }
}

/// Reasons why a file of arrival times cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line that is not a time.
    #[error("line {line}: {text:?} is not a time: write seconds (0.25) or a unit (250ms)")]
    NotATime {
        /// Line number from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A time before the previous one.
    #[error("line {line}: {text:?} is earlier than the line before: sort the file by time")]
    Backwards {
        /// Line number from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A time that no run reaches, such as a date in seconds since 1970.
    #[error(
        "line {line}: {text:?} is more than 31 days after the start: write times from the start of the run, for example by subtracting the first one from all"
    )]
    Late {
        /// Line number from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// No times.
    #[error("no arrival times in it: write one time a line, for example 0.25 or 250ms")]
    Empty,
}

/// Reads arrival times, one per line, in seconds or with a unit. `#` begins a comment. A byte-order mark is skipped.
pub fn read_trace(text: &str) -> Result<Arc<[Span]>, TraceError> {
    let mut times: Vec<Span> = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, raw) in text.lines().enumerate() {
        let entry = raw.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let (line, text) = (index + 1, entry.to_owned());
        let seconds = entry
            .parse::<f64>()
            .ok()
            .filter(|s| *s >= 0.0 && s.is_finite());
        let time = match seconds {
            Some(seconds) => Span::from_secs_f64(seconds),
            None => entry.parse().map_err(|_| TraceError::NotATime {
                line,
                text: text.clone(),
            })?,
        };
        if times.last().is_some_and(|last| time < *last) {
            return Err(TraceError::Backwards { line, text });
        }
        if time > LONGEST_RUN {
            return Err(TraceError::Late { line, text });
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err(TraceError::Empty);
    }
    Ok(times.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_stats::goodness;
    use proptest::prelude::*;

    fn rate(per_second: f64) -> Rate {
        Rate::per_second(per_second).unwrap()
    }

    fn times(arrivals: &Arrivals, steps: &[RateStep]) -> Vec<ScheduledArrival> {
        Schedule::new(arrivals, steps.into(), Seed(1)).collect()
    }

    #[test]
    fn constant_arrivals_are_exact() {
        let all = times(
            &Arrivals::Constant,
            &[RateStep::steady(rate(1000.0), Span::from_secs(10))],
        );
        assert_eq!(all.len(), 10_000);
        for (number, arrival) in all.iter().enumerate() {
            assert_eq!(arrival.at, Span::from_millis(number as u64));
        }
    }

    #[test]
    fn steps_follow_one_another() {
        let second = Span::from_secs(1);
        let plan = [
            RateStep::steady(rate(10.0), second),
            RateStep::steady(rate(30.0), second),
        ];
        let all = times(&Arrivals::Constant, &plan);
        let in_step = |step| all.iter().filter(|a| a.step == step).count();
        assert_eq!((in_step(0), in_step(1)), (10, 30));
        assert!(all.iter().all(|a| (a.at >= second) == (a.step == 1)));
    }

    #[test]
    fn a_ramp_holds_the_mean_of_its_ends_and_grows_denser() {
        let ramp = RateStep {
            from: rate(0.0),
            to: rate(100.0),
            length: Span::from_secs(10),
        };
        let all = times(&Arrivals::Constant, &[ramp]);
        assert_eq!(all.len(), 500);
        let first_half = all.iter().filter(|a| a.at < Span::from_secs(5)).count();
        assert_eq!(first_half, 125);
    }

    #[test]
    fn poisson_repeats_with_the_seed_only() {
        let plan: Arc<[RateStep]> = [RateStep::steady(rate(100.0), Span::from_secs(10))].into();
        let run =
            |seed| Schedule::new(&Arrivals::Poisson, plan.clone(), Seed(seed)).collect::<Vec<_>>();
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!((900..1100).contains(&run(1).len()));
    }

    /// Checks the first half of the claim. The second, that requests leave at these times, is measured on the wire
    /// (`cargo xtask bench arrivals`).
    #[test]
    fn poisson_gaps_are_exponential_and_independent() {
        let all = times(
            &Arrivals::Poisson,
            &[RateStep::steady(rate(1000.0), Span::from_secs(101))],
        );
        let gaps: Vec<Span> = all
            .windows(2)
            .map(|pair| pair[1].at.saturating_sub(pair[0].at))
            .collect();
        let gaps = &gaps[..100_000];
        let fit = goodness::exponential_gaps(gaps, Span::from_millis(1)).unwrap();
        assert!(fit.p_value > 0.05, "{fit:?}");
        let lag = goodness::lag_one_correlation(gaps).unwrap();
        assert!(lag.value.abs() < lag.bound, "{lag:?}");
    }

    #[test]
    fn traces_are_read_or_refused_by_line() {
        let read = read_trace("0\n# a comment\n250ms\n 0.5 # half\n").unwrap();
        let expected = [Span::ZERO, Span::from_millis(250), Span::from_millis(500)];
        assert_eq!(*read, expected);
        let all = times(&Arrivals::Trace(read), &[]);
        assert_eq!(all.iter().map(|a| a.at).collect::<Vec<_>>(), expected);
        let refused = |text| read_trace(text).unwrap_err().to_string();
        assert!(refused("0\nsoon").starts_with("line 2"));
        assert!(refused("2\n1").contains("earlier"));
        assert!(refused("1700000000.123\n1700000000.223").contains("from the start of the run"));
        assert_eq!(read_trace("\u{feff}0\n0.1").unwrap().len(), 2);
        assert!(refused("# nothing").contains("one time a line"));
        assert!(read_trace("-1").is_err() && read_trace("inf").is_err());
    }

    proptest! {
        #[test]
        fn time_never_runs_back(
            rates in proptest::collection::vec((0.0f64..500.0, 0.0f64..500.0, 1u64..3000), 1..5),
            poisson: bool,
        ) {
            let steps: Vec<RateStep> = rates
                .iter()
                .map(|&(from, to, ms)| RateStep { from: rate(from), to: rate(to), length: Span::from_millis(ms) })
                .collect();
            let process = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let all = times(&process, &steps);
            prop_assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at));
            let end: Span = steps.iter().map(|s| s.length).sum();
            prop_assert!(all.iter().all(|a| a.at <= end));
            if !poisson {
                let expected: f64 = steps.iter().map(RateStep::expected).sum();
                prop_assert!((all.len() as f64 - expected).abs() <= 1.0);
            }
        }
    }
}
