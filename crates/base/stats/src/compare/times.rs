//! Verdicts on means and quantiles of response times, on the log scale.

use super::needed::{Needed, OpenComparison};
use super::spread::{Scatter, mean, normal, per_run, rescale};
use super::{ComparisonVerdict, EQUALITY, Judgement, JudgementReason, MeasuredStatistic, Rules};

/// Maximum plausible scatter between runs on a shared machine: five times the 5 % that the rules are tuned for.
/// Assumed, not measured. With one run per side the interval uses it, a factor of two each way at 95 %: the difference
/// of two runs has a standard deviation of 0.35, and 1.96 * 0.35 = ln 2.
pub(super) const PLAUSIBLE_SCATTER: f64 = 0.25;

/// A run's estimate on the log scale, with the half-widths of its own interval.
#[derive(Clone, Copy)]
struct Point {
    value: f64,
    own: Option<[f64; 2]>,
}

/// One side's runs by kind.
#[derive(Default)]
struct SideRuns {
    known: Vec<Point>,
    beyond: Vec<(f64, Option<f64>)>,
    absent: bool,
}

/// Compares a mean or a quantile of times over the runs of two sides.
///
/// Each end of the interval of the ratio of geometric means uses the larger of two half-widths on the log scale:
///
/// 1. Student's t with the scatter between runs pooled over both sides.
/// 2. The intervals of the runs themselves, combined in quadrature separately for each end (variance estimates
///    recovery: Zou and Donner, Statistics in Medicine 27, 2008), and with the scatter of `rules` if given.
///
/// With one run per side there is only the second. Unless a scatter is given, it uses 25 %, and the verdict is never
/// equal.
///
/// If the statistic is beyond any bound in more than half of the runs of one side and known in all of the other, the
/// former is worse if its bounds exceed the other side by more than the plausible scatter.
pub fn judge_times(
    before: &[MeasuredStatistic],
    after: &[MeasuredStatistic],
    rules: &Rules,
) -> Judgement {
    let (old, new) = (SideRuns::new(before), SideRuns::new(after));
    if old.absent || new.absent {
        return Judgement::unknown(JudgementReason::Absent, rules);
    }
    if !old.beyond.is_empty() || !new.beyond.is_empty() {
        return censored(&old, &new, rules);
    }
    known(&old.known, &new.known, rules)
}

impl SideRuns {
    fn new(runs: &[MeasuredStatistic]) -> Self {
        let mut side = Self {
            absent: runs.is_empty(),
            ..Self::default()
        };
        for run in runs {
            match *run {
                MeasuredStatistic::Known { value, interval } if is_time(value) => {
                    side.known.push(Point {
                        value: value.ln(),
                        own: interval.and_then(|ends| own(value, ends)),
                    });
                }
                MeasuredStatistic::Beyond { bound, low } => side.beyond.push((bound, low)),
                MeasuredStatistic::Known { .. } | MeasuredStatistic::Absent => side.absent = true,
            }
        }
        side
    }

    fn average(&self) -> Option<f64> {
        (self.beyond.is_empty() && !self.absent).then(|| average(&self.known).exp())
    }
}

impl MeasuredStatistic {
    /// Returns true if the run has no such number, or an invalid one.
    pub fn is_absent(self) -> bool {
        match self {
            Self::Known { value, .. } => !is_time(value),
            Self::Beyond { .. } => false,
            Self::Absent => true,
        }
    }

    /// Returns true if the number is known, and has no valid interval.
    pub fn lacks_interval(self) -> bool {
        match self {
            Self::Known { value, interval } if is_time(value) => {
                interval.and_then(|ends| own(value, ends)).is_none()
            }
            _ => false,
        }
    }
}

fn is_time(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Half-widths below and above on the log scale; `None` for invalid ends. The upper may be infinite.
fn own(value: f64, [low, high]: [f64; 2]) -> Option<[f64; 2]> {
    if low <= 0.0 || !low.is_finite() {
        return None;
    }
    let halves = [(value / low).ln(), (high / value).ln()];
    halves.iter().all(|half| *half >= 0.0).then_some(halves)
}

fn average(points: &[Point]) -> f64 {
    mean(&values(points))
}

fn values(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.value).collect()
}

/// Compares two sides that are known in all runs.
fn known(old: &[Point], new: &[Point], rules: &Rules) -> Judgement {
    let runs = [old.len(), new.len()];
    let scatter = Scatter::between(&values(old), &values(new));
    let unsteady = |side: &[Point]| side.iter().filter(|point| point.own.is_none()).count();
    let (unsteady_old, unsteady_new) = (unsteady(old), unsteady(new));
    let difference = average(new) - average(old);
    let mut judgement = Judgement {
        before: Some(average(old).exp()),
        after: Some(average(new).exp()),
        ratio: Some(difference.exp()),
        change: Some(difference.exp_m1()),
        scatter: scatter.map(|scatter| scatter.deviation.exp_m1()),
        ..Judgement::unknown(JudgementReason::Wide, rules)
    };
    // One run per side without its own interval proves nothing, unless the mean became unsteady.
    let growing = rules.steady && unsteady_old == 0;
    if scatter.is_none() && unsteady_old + unsteady_new > 0 && !growing {
        judgement.reason = Some(if rules.steady {
            JudgementReason::Grows
        } else {
            JudgementReason::NoInterval
        });
        return judgement;
    }
    let ends = |confidence| {
        let [below, above] = halves(old, new, scatter, confidence, rules);
        [difference - below, difference + above]
    };
    let [low, high] = ends(rules.confidence);
    judgement.interval = Some([low.exp_m1(), high.exp_m1()]);
    if rules.steady && unsteady_old + unsteady_new > 0 {
        judgement.reason = Some(JudgementReason::Grows);
        // The interval lacks the error of the unsteady runs. It can show a slowdown, but not its absence.
        if low > 0.0 && unsteady_old == 0 {
            judgement.verdict = ComparisonVerdict::Worse;
        }
        return judgement;
    }
    let sure = scatter.is_some() || rules.scatter.is_some();
    (judgement.verdict, judgement.reason) = verdict([low, high], ends(EQUALITY), sure, rules);
    if judgement.verdict == ComparisonVerdict::Unknown {
        let open = OpenComparison {
            change: difference.abs(),
            margin: rules.margin.ln_1p(),
            deviation: scatter.map(|scatter| scatter.deviation),
            within: error_of_a_run(old, new),
            runs,
        };
        judgement.needed = Some(Needed::estimate(&open, rules));
    }
    judgement
}

fn verdict(
    [low, high]: [f64; 2],
    [least, most]: [f64; 2],
    sure: bool,
    rules: &Rules,
) -> (ComparisonVerdict, Option<JudgementReason>) {
    let within = (-least).exp_m1().max(most.exp_m1());
    match () {
        () if low.is_nan() || high.is_nan() => {
            (ComparisonVerdict::Unknown, Some(JudgementReason::Absent))
        }
        () if low > 0.0 => (ComparisonVerdict::Worse, None),
        () if high < 0.0 => (ComparisonVerdict::Better, None),
        () if !sure => (ComparisonVerdict::Unknown, Some(JudgementReason::OneRun)),
        () if within <= rules.margin => (ComparisonVerdict::Equal { within }, None),
        () => (ComparisonVerdict::Unknown, Some(JudgementReason::Wide)),
    }
}

/// Half-widths of the difference, below and above.
fn halves(
    old: &[Point],
    new: &[Point],
    scatter: Option<Scatter>,
    confidence: f64,
    rules: &Rules,
) -> [f64; 2] {
    let runs = [old.len(), new.len()];
    let own = |side: &[Point], end: usize| -> f64 {
        let squares = side.iter().filter_map(|point| point.own);
        squares
            .map(|halves| halves[end].powi(2))
            .sum::<f64>()
            .sqrt()
            / side.len() as f64
    };
    let assumed = match scatter {
        None => rules.scatter.unwrap_or(PLAUSIBLE_SCATTER),
        Some(_) => rules.scatter.unwrap_or(0.0),
    };
    let assumed = normal(confidence) * assumed * per_run(runs);
    let measured = scatter.map_or(0.0, |scatter| scatter.half_width(confidence, runs));
    let scale = rescale(confidence);
    [0, 1].map(|end| {
        let own = own(new, end).hypot(own(old, 1 - end)) * scale;
        own.hypot(assumed).max(measured)
    })
}

/// Root mean square of the runs' own standard errors.
fn error_of_a_run(old: &[Point], new: &[Point]) -> f64 {
    let halves: Vec<f64> = old
        .iter()
        .chain(new)
        .filter_map(|point| point.own)
        .map(|[below, above]| f64::midpoint(below, above).powi(2))
        .collect();
    if halves.is_empty() {
        0.0
    } else {
        mean(&halves).sqrt() / normal(0.95)
    }
}

/// Compares two sides with at least one run beyond any bound.
fn censored(old: &SideRuns, new: &SideRuns, rules: &Rules) -> Judgement {
    let unknown = |reason| Judgement {
        before: old.average(),
        after: new.average(),
        ..Judgement::unknown(reason, rules)
    };
    let majority = |side: &SideRuns| side.beyond.len() > side.known.len();
    let (known, beyond, verdict) = match (old.beyond.is_empty(), new.beyond.is_empty()) {
        (true, false) if majority(new) => (old, new, ComparisonVerdict::Worse),
        (false, true) if majority(old) => (new, old, ComparisonVerdict::Better),
        _ if majority(old) && majority(new) => return unknown(JudgementReason::Censored),
        _ => return unknown(JudgementReason::CensoredInPart),
    };
    let one_each = known.known.len() + beyond.known.len() + beyond.beyond.len() == 2;
    let factor = normal(rules.confidence) * PLAUSIBLE_SCATTER * per_run([1, 1]);
    let shortest = beyond.beyond.iter().map(|(bound, low)| {
        if one_each {
            // A single run can be beyond the bound by chance, so its interval must be beyond, too.
            low.unwrap_or(f64::NAN)
        } else {
            *bound
        }
    });
    let longest = known.known.iter().map(|point| match (one_each, point.own) {
        (false, _) => point.value,
        (true, Some([_, above])) => point.value + above,
        (true, None) => f64::INFINITY,
    });
    let shortest = shortest.map(f64::ln).fold(f64::INFINITY, least);
    let longest = longest.fold(f64::NEG_INFINITY, f64::max);
    if shortest - longest > factor {
        Judgement {
            verdict,
            ..unknown(JudgementReason::CensoredOnOneSide)
        }
    } else {
        unknown(JudgementReason::CensoredOnOneSide)
    }
}

/// The smaller number; NaN if either is NaN.
fn least(one: f64, other: f64) -> f64 {
    if one.is_nan() || other.is_nan() {
        f64::NAN
    } else {
        one.min(other)
    }
}

#[cfg(test)]
mod tests;
