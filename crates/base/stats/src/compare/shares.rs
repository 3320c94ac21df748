//! Verdicts on shares of requests: differences, on the scale of the shares themselves.
//!
//! The log scale is not possible, because most runs have no error at all.

use super::needed::{Needed, OpenComparison};
use super::spread::{Scatter, mean, normal, per_run};
use super::{ComparisonVerdict, EQUALITY, Judgement, JudgementReason, Rules};
use crate::Share;

/// With one run per side, the odds of errors must change by this factor for a verdict. Errors come in bursts, so their
/// number scatters between runs far more than times do.
const PLAUSIBLE_ODDS: f64 = 10.0;

/// Compares a share of requests, such as errors, over the runs of two sides.
///
/// Each end of the interval of the difference uses the larger of two half-widths:
///
/// 1. Student's t with the scatter between runs pooled over both sides.
/// 2. Wilson's intervals of each side's requests, combined in quadrature (Newcombe, Statistics in Medicine 17, 1998),
///    and with the scatter of `rules`, applied to the odds, if given.
///
/// With one run per side and no given scatter, the verdict is unknown unless the odds changed tenfold.
pub fn judge_shares(before: &[Share], after: &[Share], rules: &Rules) -> Judgement {
    let proper = |share: &Share| share.trials > 0 && share.hits <= share.trials;
    if before.is_empty() || after.is_empty() || !before.iter().chain(after).all(proper) {
        return Judgement::unknown(JudgementReason::Absent, rules);
    }
    let runs = [before.len(), after.len()];
    let values = |side: &[Share]| side.iter().map(|share| share.value()).collect::<Vec<_>>();
    let (old, new) = (values(before), values(after));
    let scatter = Scatter::between(&old, &new);
    let difference = mean(&new) - mean(&old);
    let ends = |confidence| {
        let sides = [
            Pooled::new(before, confidence),
            Pooled::new(after, confidence),
        ];
        let [below, above] = halves(&sides, scatter, runs, confidence, rules);
        [difference - below, difference + above]
    };
    let [low, high] = ends(rules.confidence);
    let mut judgement = Judgement {
        before: Some(mean(&old)),
        after: Some(mean(&new)),
        change: Some(difference),
        interval: Some([low, high]),
        scatter: scatter.map(|scatter| scatter.deviation),
        ..Judgement::unknown(JudgementReason::Wide, rules)
    };
    let sure = scatter.is_some() || rules.scatter.is_some();
    let [was, is] = [before, after].map(|side| Pooled::new(side, rules.confidence));
    (judgement.verdict, judgement.reason) = if sure {
        verdict([low, high], ends(EQUALITY), rules)
    } else {
        verdict_on_one_run(&was, &is)
    };
    if judgement.reason == Some(JudgementReason::Wide) {
        let own = is.half().hypot(was.half());
        let open = OpenComparison {
            change: difference.abs(),
            margin: rules.margin,
            deviation: scatter.map(|scatter| scatter.deviation),
            within: own / normal(rules.confidence) / per_run(runs),
            runs,
        };
        judgement.needed = Some(Needed::estimate(&open, rules));
    }
    judgement
}

/// Half-widths of the difference, below and above.
fn halves(
    sides: &[Pooled; 2],
    scatter: Option<Scatter>,
    runs: [usize; 2],
    confidence: f64,
    rules: &Rules,
) -> [f64; 2] {
    let assumed = rules.scatter.unwrap_or(0.0) * normal(confidence);
    let [old, new] = [0, 1].map(|side: usize| {
        let share = sides[side].share;
        assumed * share * (1.0 - share) / (runs[side] as f64).sqrt()
    });
    let measured = scatter.map_or(0.0, |scatter| scatter.half_width(confidence, runs));
    let [was, is] = sides;
    let below = is.below.hypot(was.above).hypot(old).hypot(new);
    let above = is.above.hypot(was.below).hypot(old).hypot(new);
    [below.max(measured), above.max(measured)]
}

/// All requests of a side, with the distances of Wilson's interval from their share.
struct Pooled {
    share: f64,
    below: f64,
    above: f64,
}

impl Pooled {
    fn new(runs: &[Share], confidence: f64) -> Self {
        let all = Share {
            hits: runs.iter().map(|run| run.hits).sum(),
            trials: runs.iter().map(|run| run.trials).sum(),
        };
        let (low, high) = all.interval(confidence);
        let share = all.value();
        Self {
            share,
            below: (share - low).max(0.0),
            above: (high - share).max(0.0),
        }
    }

    fn half(&self) -> f64 {
        f64::midpoint(self.below, self.above)
    }

    fn odds(share: f64) -> f64 {
        share / (1.0 - share)
    }
}

fn verdict(
    [low, high]: [f64; 2],
    [least, most]: [f64; 2],
    rules: &Rules,
) -> (ComparisonVerdict, Option<JudgementReason>) {
    let within = (-least).max(most);
    match () {
        () if low > 0.0 => (ComparisonVerdict::Worse, None),
        () if high < 0.0 => (ComparisonVerdict::Better, None),
        () if within <= rules.margin => (ComparisonVerdict::Equal { within }, None),
        () => (ComparisonVerdict::Unknown, Some(JudgementReason::Wide)),
    }
}

fn verdict_on_one_run(old: &Pooled, new: &Pooled) -> (ComparisonVerdict, Option<JudgementReason>) {
    let beyond = |less: &Pooled, more: &Pooled| {
        Pooled::odds(more.share - more.below)
            > PLAUSIBLE_ODDS * Pooled::odds(less.share + less.above)
    };
    match () {
        () if beyond(old, new) => (ComparisonVerdict::Worse, None),
        () if beyond(new, old) => (ComparisonVerdict::Better, None),
        () => (ComparisonVerdict::Unknown, Some(JudgementReason::OneRun)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        confidence: 0.99,
        margin: 0.01,
        scatter: None,
        steady: false,
    };

    fn shares(hits: &[u64], trials: u64) -> Vec<Share> {
        hits.iter().map(|&hits| Share { hits, trials }).collect()
    }

    fn judged(before: &[u64], after: &[u64], trials: u64) -> Judgement {
        judge_shares(&shares(before, trials), &shares(after, trials), &RULES)
    }

    #[test]
    fn no_errors_are_equal_within_what_the_requests_prove() {
        let ComparisonVerdict::Equal { within } = judged(&[0; 3], &[0; 3], 300).verdict else {
            panic!("0 of 900 exclude 0.4 %");
        };
        assert!(within > 0.002 && within < 0.005, "{within}");
        let few = judged(&[0; 3], &[0; 3], 30);
        assert_eq!(few.verdict, ComparisonVerdict::Unknown);
        let needed = few.needed.unwrap();
        assert!(
            needed.times_longer.is_some_and(|times| times >= 8),
            "{needed:?}"
        );
    }

    #[test]
    fn more_errors_are_worse_and_a_burst_is_not_known() {
        assert_eq!(
            judged(&[0; 3], &[100, 110, 90], 1000).verdict,
            ComparisonVerdict::Worse
        );
        assert_eq!(
            judged(&[100, 110, 90], &[0; 3], 1000).verdict,
            ComparisonVerdict::Better
        );
        assert_eq!(
            judged(&[0; 3], &[0, 0, 100], 1000).verdict,
            ComparisonVerdict::Unknown
        );
    }

    #[test]
    fn one_run_a_side_needs_ten_times_the_odds() {
        for (before, after, verdict) in [
            (0, 0, ComparisonVerdict::Unknown),
            (0, 40, ComparisonVerdict::Unknown),
            (50, 100, ComparisonVerdict::Unknown),
            (0, 530, ComparisonVerdict::Worse),
            (530, 0, ComparisonVerdict::Better),
            (0, 1000, ComparisonVerdict::Worse),
            (1000, 1000, ComparisonVerdict::Unknown),
        ] {
            assert_eq!(
                judged(&[before], &[after], 1000).verdict,
                verdict,
                "{before} {after}"
            );
        }
        let known = Rules {
            scatter: Some(0.05),
            ..RULES
        };
        let none = shares(&[0], 1000);
        let equal = judge_shares(&none, &none, &known).verdict;
        assert!(
            matches!(equal, ComparisonVerdict::Equal { .. }),
            "{equal:?}"
        );
    }

    #[test]
    fn impossible_counts_prove_nothing() {
        for bad in [shares(&[0], 0), shares(&[3], 2), Vec::new()] {
            assert_eq!(
                judge_shares(&bad, &shares(&[0], 100), &RULES).reason,
                Some(JudgementReason::Absent)
            );
            assert_eq!(
                judge_shares(&shares(&[0], 100), &bad, &RULES).verdict,
                ComparisonVerdict::Unknown
            );
        }
    }
}
