//! Verdicts on given runs: known, unsteady, censored and impossible ones.

use super::*;

const RULES: Rules = Rules {
    confidence: 0.95,
    margin: 0.2,
    scatter: None,
    steady: true,
};

/// Runs with these values and this relative half-width.
fn runs(values: &[f64], noise: f64) -> Vec<MeasuredStatistic> {
    let known = |&value: &f64| MeasuredStatistic::Known {
        value,
        interval: Some([value / (1.0 + noise), value * (1.0 + noise)]),
    };
    values.iter().map(known).collect()
}

fn bare(values: &[f64]) -> Vec<MeasuredStatistic> {
    let known = |&value: &f64| MeasuredStatistic::Known {
        value,
        interval: None,
    };
    values.iter().map(known).collect()
}

fn beyond(count: usize, low: Option<f64>) -> Vec<MeasuredStatistic> {
    vec![MeasuredStatistic::Beyond { bound: 500.0, low }; count]
}

#[test]
fn scatter_between_runs_decides() {
    let before = runs(&[10.0, 10.4, 9.7], 0.01);
    let judged = |after: &[f64]| judge_times(&before, &runs(after, 0.01), &RULES);
    assert_eq!(
        judged(&[12.1, 12.5, 11.8]).verdict,
        ComparisonVerdict::Worse
    );
    assert_eq!(judged(&[8.1, 8.5, 8.3]).verdict, ComparisonVerdict::Better);
    let equal = judged(&[10.1, 9.8, 10.2]);
    let ComparisonVerdict::Equal { within } = equal.verdict else {
        panic!("{equal:?}");
    };
    assert!(within > 0.03 && within < 0.1, "{within}");
    // The mean rises by 20 % here as well, and one run in three is unchanged.
    let wide = judged(&[10.0, 12.0, 14.4]);
    assert_eq!(
        (wide.verdict, wide.reason),
        (ComparisonVerdict::Unknown, Some(JudgementReason::Wide))
    );
    let needed = wide.needed.unwrap();
    assert!(needed.runs.is_some_and(|runs| runs > 3), "{needed:?}");
}

#[test]
fn the_interval_is_students() {
    // Log deviations of -1, 0, 1 times 0.05: pooled 0.05, t with 4 degrees of freedom.
    let side = |middle: f64| [-0.05f64, 0.0, 0.05].map(|x| middle * x.exp());
    let judged = judge_times(&runs(&side(10.0), 0.0), &runs(&side(11.0), 0.0), &RULES);
    let half = 2.7764 * 0.05 * (2.0f64 / 3.0).sqrt();
    let [low, high] = judged.interval.unwrap();
    assert!((low - (1.1 * (-half).exp() - 1.0)).abs() < 1e-4, "{low}");
    assert!((high - (1.1 * half.exp() - 1.0)).abs() < 1e-4, "{high}");
    assert!((judged.scatter.unwrap() - 0.05f64.exp_m1()).abs() < 1e-9);
    assert!((judged.ratio.unwrap() - 1.1).abs() < 1e-9);
}

#[test]
fn an_interval_is_never_narrower_than_its_runs_know_themselves() {
    let (old, new) = (runs(&[10.0; 3], 0.3), runs(&[10.0; 3], 0.3));
    let [low, high] = judge_times(&old, &new, &RULES).interval.unwrap();
    let half = 1.3f64.ln() * (2.0f64 / 3.0).sqrt();
    assert!((high - half.exp_m1()).abs() < 1e-9, "{high}");
    assert!((low - (-half).exp_m1()).abs() < 1e-9, "{low}");
}

#[test]
fn exchanging_the_sides_inverts_the_ratio() {
    let (one, other) = (runs(&[9.0, 10.0], 0.2), runs(&[14.0, 13.0, 16.0], 0.1));
    let there = judge_times(&one, &other, &RULES).interval.unwrap();
    let back = judge_times(&other, &one, &RULES).interval.unwrap();
    assert!(((1.0 + there[0]) * (1.0 + back[1]) - 1.0).abs() < 1e-9);
    assert!(((1.0 + there[1]) * (1.0 + back[0]) - 1.0).abs() < 1e-9);
}

#[test]
fn one_run_a_side_is_unknown_at_best() {
    let before = runs(&[10.0], 0.02);
    let judged = |after: f64| judge_times(&before, &runs(&[after], 0.02), &RULES);
    for after in [10.0, 8.0, 12.0, 19.9] {
        let judged = judged(after);
        let judged_as = (judged.verdict, judged.reason);
        assert_eq!(
            judged_as,
            (ComparisonVerdict::Unknown, Some(JudgementReason::OneRun)),
            "{after}"
        );
        assert!(judged.needed.unwrap().assumed);
    }
    assert_eq!(judged(21.0).verdict, ComparisonVerdict::Worse);
    assert_eq!(judged(4.5).verdict, ComparisonVerdict::Better);
}

#[test]
fn a_scatter_that_is_known_decides_for_one_run() {
    let known = Rules {
        scatter: Some(0.03),
        ..RULES
    };
    let judged = |after: f64| judge_times(&runs(&[10.0], 0.02), &runs(&[after], 0.02), &known);
    assert_eq!(judged(12.0).verdict, ComparisonVerdict::Worse);
    assert!(matches!(
        judged(10.0).verdict,
        ComparisonVerdict::Equal { .. }
    ));
    // The given scatter is a lower bound for several runs.
    let alike = runs(&[10.0; 3], 0.0);
    let [low, _] = judge_times(&alike, &alike, &known).interval.unwrap();
    assert!(low < -0.04, "{low}");
}

#[test]
fn one_more_run_on_one_side_shows_the_scatter() {
    let judged = judge_times(
        &runs(&[10.0], 0.01),
        &runs(&[10.2, 10.0, 10.1], 0.01),
        &RULES,
    );
    assert!(
        matches!(judged.verdict, ComparisonVerdict::Equal { .. }),
        "{judged:?}"
    );
}

#[test]
fn a_mean_without_interval_never_passes() {
    let steady = runs(&[10.0, 10.1, 9.9], 0.01);
    let judged_as = |before: &[MeasuredStatistic], after: &[MeasuredStatistic]| {
        let judged = judge_times(before, after, &RULES);
        (judged.verdict, judged.reason)
    };
    let grows = Some(JudgementReason::Grows);
    for after in [[10.0, 10.1, 9.9], [8.0, 8.1, 7.9]] {
        let mut after = runs(&after, 0.01);
        after[1] = bare(&[10.0])[0];
        assert_eq!(
            judged_as(&steady, &after),
            (ComparisonVerdict::Unknown, grows)
        );
        assert_eq!(
            judged_as(&after, &steady),
            (ComparisonVerdict::Unknown, grows)
        );
    }
    assert_eq!(
        judged_as(&steady, &bare(&[15.0, 15.2, 14.9])),
        (ComparisonVerdict::Worse, grows)
    );
    assert_eq!(
        judged_as(&bare(&[15.0, 15.2, 14.9]), &steady),
        (ComparisonVerdict::Unknown, grows)
    );
    // One run per side: worse if no plausible scatter explains it.
    assert_eq!(
        judged_as(&steady[..1], &bare(&[15.0])),
        (ComparisonVerdict::Unknown, grows)
    );
    assert_eq!(
        judged_as(&steady[..1], &bare(&[25.0])),
        (ComparisonVerdict::Worse, grows)
    );
    assert_eq!(
        judged_as(&bare(&[10.0]), &steady[..1]),
        (ComparisonVerdict::Unknown, grows)
    );
}

#[test]
fn a_quantile_without_interval_is_judged_by_its_scatter() {
    let quantile = Rules {
        steady: false,
        ..RULES
    };
    let (old, new) = (bare(&[10.0, 10.4, 9.7]), bare(&[12.1, 12.5, 11.8]));
    assert_eq!(
        judge_times(&old, &new, &quantile).verdict,
        ComparisonVerdict::Worse
    );
    let one = judge_times(&old[..1], &bare(&[90.0]), &quantile);
    assert_eq!(
        (one.verdict, one.reason),
        (
            ComparisonVerdict::Unknown,
            Some(JudgementReason::NoInterval)
        )
    );
}

#[test]
fn invalid_or_absent_values_make_the_verdict_unknown() {
    let sure = runs(&[10.0, 10.1, 10.2], 0.01);
    let invalid = [0.0, -1.0, f64::NAN, f64::INFINITY].map(|value| MeasuredStatistic::Known {
        value,
        interval: Some([value, value]),
    });
    for bad in invalid.into_iter().chain([MeasuredStatistic::Absent]) {
        let mut other = sure.clone();
        other[2] = bad;
        for (before, after) in [(&sure, &other), (&other, &sure), (&other, &other)] {
            let judged = judge_times(before, after, &RULES);
            let judged_as = (judged.verdict, judged.reason);
            assert_eq!(
                judged_as,
                (ComparisonVerdict::Unknown, Some(JudgementReason::Absent)),
                "{bad:?}"
            );
        }
    }
    assert_eq!(
        judge_times(&[], &sure, &RULES).verdict,
        ComparisonVerdict::Unknown
    );
    assert_eq!(
        judge_times(&sure, &[], &RULES).verdict,
        ComparisonVerdict::Unknown
    );
}

#[test]
fn impossible_intervals_count_as_none() {
    let sure = runs(&[10.0, 10.1, 10.2], 0.01);
    for interval in [
        [11.0, 12.0],
        [8.0, 9.0],
        [f64::NAN, 11.0],
        [9.0, f64::NAN],
        [0.0, 11.0],
        [-1.0, 11.0],
    ] {
        let mut other = sure.clone();
        other[0] = MeasuredStatistic::Known {
            value: 10.0,
            interval: Some(interval),
        };
        let judged = judge_times(&sure, &other, &RULES);
        let judged_as = (judged.verdict, judged.reason);
        assert_eq!(
            judged_as,
            (ComparisonVerdict::Unknown, Some(JudgementReason::Grows)),
            "{interval:?}"
        );
    }
    // The upper end may fall among requests without a reply.
    let mut open = sure.clone();
    open[0] = MeasuredStatistic::Known {
        value: 10.0,
        interval: Some([9.0, f64::INFINITY]),
    };
    assert_eq!(
        judge_times(&sure, &open, &RULES).verdict,
        ComparisonVerdict::Unknown
    );
}

#[test]
fn no_reply_where_there_was_one_is_worse() {
    let known = runs(&[10.0, 10.1, 10.2], 0.01);
    let judged_as = |before: &[MeasuredStatistic], after: &[MeasuredStatistic]| {
        let judged = judge_times(before, after, &RULES);
        (judged.verdict, judged.reason)
    };
    let one_side = Some(JudgementReason::CensoredOnOneSide);
    let most = [beyond(2, None), runs(&[10.0], 0.01)].concat();
    assert_eq!(
        judged_as(&known, &beyond(3, None)),
        (ComparisonVerdict::Worse, one_side)
    );
    assert_eq!(
        judged_as(&known, &most),
        (ComparisonVerdict::Worse, one_side)
    );
    assert_eq!(
        judged_as(&most, &known),
        (ComparisonVerdict::Better, one_side)
    );
    // Times near the bound may have crossed it by chance.
    let near = runs(&[400.0, 410.0, 420.0], 0.01);
    assert_eq!(
        judged_as(&near, &beyond(3, None)),
        (ComparisonVerdict::Unknown, one_side)
    );
}

#[test]
fn no_reply_in_a_few_runs_or_on_both_sides_is_unknown() {
    let known = runs(&[10.0, 10.1, 10.2], 0.01);
    let judged_as = |before: &[MeasuredStatistic], after: &[MeasuredStatistic]| {
        let judged = judge_times(before, after, &RULES);
        (judged.verdict, judged.reason)
    };
    let in_part = (
        ComparisonVerdict::Unknown,
        Some(JudgementReason::CensoredInPart),
    );
    let few = [beyond(1, None), runs(&[10.0, 10.0], 0.01)].concat();
    assert_eq!(judged_as(&known, &few), in_part);
    assert_eq!(judged_as(&few, &beyond(3, None)), in_part);
    let both = (ComparisonVerdict::Unknown, Some(JudgementReason::Censored));
    assert_eq!(judged_as(&beyond(3, None), &beyond(3, None)), both);
}

#[test]
fn one_run_without_a_reply_is_worse_only_beyond_any_scatter() {
    let judged_as =
        |before: &[MeasuredStatistic], low| judge_times(before, &beyond(1, low), &RULES).verdict;
    let known = runs(&[10.0], 0.01);
    assert_eq!(judged_as(&known, Some(500.0)), ComparisonVerdict::Worse);
    assert_eq!(judged_as(&known, Some(15.0)), ComparisonVerdict::Unknown);
    assert_eq!(judged_as(&known, None), ComparisonVerdict::Unknown);
    assert_eq!(
        judged_as(&bare(&[10.0]), Some(500.0)),
        ComparisonVerdict::Unknown
    );
    let reaches = MeasuredStatistic::Known {
        value: 10.0,
        interval: Some([9.0, f64::INFINITY]),
    };
    assert_eq!(
        judged_as(&[reaches], Some(500.0)),
        ComparisonVerdict::Unknown
    );
}
