//! The joint estimate from all trials of a search: a curve through those near the capacity, or bounds.

use posthaste_stats::isotonic::{self, Tried};
use posthaste_stats::{Anchor, BoundedStatistic, Curve, Fit, Observed};

use super::evidence::Evidence;
use super::objective::Objective;
use super::trial::{CompletedTrial, Purpose};

/// Two-sided 95 % of a normal distribution.
pub(super) const NORMAL: f64 = 1.96;
/// Standard deviation of the logarithm of the slope about the value from the saturation (a factor of 1.2). The line
/// through the saturation is exact for M/M/1 and holds within 10 % for M/D/1.
const ANCHOR_SPREAD: f64 = 0.15;
/// Trials beyond this rate, as a share of the saturation, have no stationary response time.
const STATIONARY: f64 = 0.97;
/// Trials that the fitted curve puts this far above the bound (in the logarithm of the share, or in multiples of the
/// mean's bound) are omitted, because the curve is a straight line only near the bound. The curve decides, not the
/// result of the trial: that would omit bad luck and keep good luck.
const FAR: f64 = 2.5;
/// Trials with a larger share beyond the bound are omitted, because the curve's logarithm is not straight there. A
/// central quantile has trials with large shares on both sides of its bound. Omitting the unlucky ones would bias it.
const SHARE: f64 = 0.7;
const CENTRAL: f64 = 0.1;
/// Dispersion assumed for errors. They come in clusters too: a full queue refuses several in a row.
const ERROR_DISPERSION: f64 = 5.0;
/// The same for a locating trial, which is as short as one such cluster.
const ERROR_DISPERSION_SHORT: f64 = 20.0;
/// Dispersion assumed if no trial has enough batches to estimate it.
const UNKNOWN_DISPERSION: f64 = 20.0;
/// Dispersion of the requests beyond a bound, as a share of the dispersion of all response times: 0.95 for reflected
/// Brownian motion at one in a hundred, with exponential times. It is lower if times vary less. With this factor and
/// power of their squared coefficient of variation, intervals cover for M/M/1 (1.0) and for M/D/1 (0.55 at a load of
/// 0.77). They are not used beyond these limits.
const RARE_DISPERSION: f64 = 1.08;
const RARE_POWER: f64 = 0.4;
const RARE_VARIATION: (f64, f64) = (0.3, 1.5);
/// Dispersions grow no faster than this power of the rate.
const STEEPEST_DISPERSION: f64 = 15.0;

/// True if more requests failed than the objective tolerates, while the others were in time.
fn sheds(objective: &Objective, evidence: &Evidence) -> bool {
    let in_time = (evidence.failed - evidence.censored) as f64 / evidence.requests.max(1) as f64;
    evidence.errors() >= objective.tolerance && in_time > evidence.share()
}

/// True if the objective fails by the statistic, or by failed requests.
pub(super) fn is_missed(objective: &Objective, evidence: &Evidence) -> bool {
    evidence.excess >= 1.0 || sheds(objective, evidence)
}

/// True if the errors of the server, not slow replies, miss the objective: errors come before long times.
pub(super) fn is_shedding(objective: &Objective, trials: &[CompletedTrial]) -> bool {
    let mut evidence = trials.iter().map(|made| &made.evidence);
    evidence.any(|evidence| sheds(objective, evidence) && evidence.excess < 1.0)
}

/// Reply rate of an overloaded server, and the number of replies. `None` if no trial showed it. A trial with unanswered
/// requests does not, because the server may have worked on them.
pub(super) fn saturation(trials: &[CompletedTrial]) -> Option<(f64, f64)> {
    let shown = trials
        .iter()
        .filter(|made| made.evidence.unanswered == 0 && !made.evidence.late && made.is_saturated());
    let clearest = shown.max_by(|a, b| a.proposal.rate.total_cmp(&b.proposal.rate))?;
    let rate = clearest.evidence.throughput;
    Some((rate, rate * clearest.proposal.length.as_secs_f64()))
}

/// Maximum distance, as a factor, between the curve's result and the nearest measuring trial.
const REACH: f64 = 1.15;

/// Returns the fit, unless the curve crosses its bound where nothing was measured.
pub(super) fn reliable_fit(objective: &Objective, trials: &[CompletedTrial]) -> Option<Fit> {
    let measuring = trials.iter().filter(|made| made.is_measurement());
    let rates = measuring.map(|made| made.proposal.rate);
    let (low, high) = rates.fold((f64::INFINITY, 0.0), |(low, high), rate| {
        (rate.min(low), rate.max(high))
    });
    fit(objective, trials).filter(|fit| (low / REACH..=high * REACH).contains(&fit.rate))
}

/// Fits the curve through the measuring trials. `None` without usable trials.
pub(super) fn fit(objective: &Objective, trials: &[CompletedTrial]) -> Option<Fit> {
    let law = objective.law()?;
    let saturation = saturation(trials);
    // The relative error of the spare capacity is twice that of the saturation at half load.
    let anchor = saturation.map(|(saturation, replies)| Anchor {
        saturation,
        spread: (ANCHOR_SPREAD.powi(2) + 2.0 / replies.max(1.0)).sqrt(),
    });
    let saturation = saturation.map(|(saturation, _)| saturation);
    let mut points = observed(law, trials, saturation);
    let mut fit = Curve::new(&points, law, anchor).fit()?;
    // Omitting far trials moves the curve a little, so a few rounds are needed.
    for _ in 0..3 {
        let curve = Curve::new(&[], law, None);
        let is_near = |point: &Observed| {
            let level = curve.level(point.rate, fit.slope, fit.rate);
            match law {
                BoundedStatistic::Share { allowed } => (level / allowed).ln() < FAR,
                BoundedStatistic::Mean => level < 1.0 + FAR,
            }
        };
        let near: Vec<Observed> = points.iter().copied().filter(is_near).collect();
        if near.is_empty() || near.len() == points.len() {
            break;
        }
        points = near;
        fit = Curve::new(&points, law, anchor).fit()?;
    }
    Some(fit)
}

/// Returns the trials that a curve may be fitted to, as observations.
fn observed(
    law: BoundedStatistic,
    trials: &[CompletedTrial],
    saturation: Option<f64>,
) -> Vec<Observed> {
    let used: Vec<&CompletedTrial> = trials
        .iter()
        .filter(|made| made.is_measurement())
        .filter(|made| made.evidence.requests > 0 && !made.evidence.late)
        .filter(|made| match law {
            BoundedStatistic::Share { allowed } => made.evidence.share() < share_limit(allowed),
            BoundedStatistic::Mean => made.evidence.excess < 5.0,
        })
        .filter(|made| saturation.is_none_or(|limit| made.proposal.rate < STATIONARY * limit))
        .collect();
    let smooth = dispersions(law, &used);
    let rare = rare_dispersion(&used);
    let observe = |(made, dispersion): (&&CompletedTrial, f64)| {
        let count = made.evidence.times as f64;
        Observed {
            rate: made.proposal.rate,
            level: match law {
                BoundedStatistic::Share { .. } => made.evidence.share(),
                BoundedStatistic::Mean => made.evidence.excess,
            },
            weight: match law {
                BoundedStatistic::Share { .. } => count / (rare * dispersion).max(1.0),
                BoundedStatistic::Mean => count / dispersion,
            },
        }
    };
    used.iter().zip(smooth).map(observe).collect()
}

/// Returns the largest share beyond the bound at which a trial is used.
fn share_limit(allowed: f64) -> f64 {
    SHARE.max(if allowed > CENTRAL {
        1.0 - CENTRAL * (1.0 - allowed)
    } else {
        0.0
    })
}

/// Dispersion of the requests beyond the bound as a share of the dispersion of all response times, derived from the
/// variation of the response times.
fn rare_dispersion(used: &[&CompletedTrial]) -> f64 {
    let (mut variation, mut requests) = (0.0, 0.0);
    for made in used {
        let dependence = &made.evidence.dependence;
        let of_mean = dependence
            .mean_relative_variance
            .zip(dependence.mean_dispersion);
        if let Some((variance, dispersion)) = of_mean {
            let count = made.evidence.times as f64;
            variation += count * (variance * count / dispersion);
            requests += count;
        }
    }
    if requests == 0.0 {
        return RARE_DISPERSION;
    }
    let (least, most) = RARE_VARIATION;
    RARE_DISPERSION * (variation / requests).clamp(least, most).powf(RARE_POWER)
}

/// Dispersion of each trial: for a share, the variance relative to that of independent requests; for a mean, the
/// relative variance of a single request times that ratio.
///
/// Two choices make intervals cover:
/// - The dispersion of rare requests is derived from the sum of all response times, not from the few rare ones. For
///   reflected Brownian motion, the limit of every single queue, both are equal to within a twentieth: the asymptotic
///   variance of the time above a level of probability p is `p(1-p) t (1 - p ln(1/p)/(1-p))`, that of the mean is `t`
///   times its variance, with one t, the relaxation time. Batches of 50 s hold thousands of response times, but perhaps
///   five independent exceedances.
/// - A power of the rate is fitted through the trials' dispersions. A trial with a rare long queue has a large share
///   and a large dispersion. Its own dispersion would reduce its weight for that reason.
fn dispersions(law: BoundedStatistic, used: &[&CompletedTrial]) -> Vec<f64> {
    let of = |made: &CompletedTrial| match law {
        BoundedStatistic::Share { .. } => made.evidence.dependence.mean_dispersion,
        BoundedStatistic::Mean => {
            let variance = made.evidence.dependence.mean_relative_variance;
            variance.map(|variance| variance * made.evidence.times as f64)
        }
    };
    let known: Vec<(f64, f64, f64)> = used
        .iter()
        .filter_map(|made| {
            let dispersion = of(made).filter(|dispersion| *dispersion > 0.0)?;
            let requests = made.evidence.times as f64;
            Some((made.proposal.rate.ln(), dispersion, requests))
        })
        .collect();
    let total: f64 = known.iter().map(|(_, _, weight)| weight).sum();
    if total == 0.0 {
        return vec![UNKNOWN_DISPERSION; used.len()];
    }
    let mean = |value: &dyn Fn(f64, f64) -> f64| {
        let sum: f64 = known
            .iter()
            .map(|(x, y, weight)| value(*x, *y) * weight)
            .sum();
        sum / total
    };
    let (x, y) = (mean(&|x, _| x), mean(&|_, y| y.ln()));
    let spread = mean(&|rate, _| (rate - x).powi(2));
    let joint = mean(&|rate, value| (rate - x) * (value.ln() - y));
    let power = if spread > 1e-6 { joint / spread } else { 0.0 };
    let power = power.clamp(0.0, STEEPEST_DISPERSION);
    // An average of logarithms is too small.
    let level = mean(&|rate, value| value * (-power * (rate - x)).exp());
    used.iter()
        .map(|made| level * (power * (made.proposal.rate.ln() - x)).exp())
        .collect()
}

/// The highest rate shown to hold and the lowest shown to fail, each by trials that are long enough to show it.
pub(super) fn bounds(objective: &Objective, trials: &[CompletedTrial]) -> [Option<f64>; 2] {
    let used: Vec<&CompletedTrial> = trials
        .iter()
        .filter(|made| made.proposal.purpose != Purpose::Recover)
        .filter(|made| made.evidence.requests > 0 && !made.evidence.late)
        .collect();
    let tried = |made: &&CompletedTrial, [beyond, count]: [u64; 2], dispersion: f64| Tried {
        rate: made.proposal.rate,
        count: count as f64 / dispersion,
        beyond: beyond as f64 / dispersion,
    };
    let errors: Vec<Tried> = used
        .iter()
        .map(|made| {
            let dispersion = match made.proposal.purpose {
                Purpose::Locate => ERROR_DISPERSION_SHORT,
                _ => ERROR_DISPERSION,
            };
            let counts = [made.evidence.failed, made.evidence.requests];
            tried(made, counts, dispersion)
        })
        .collect();
    let by_errors = isotonic::bounds(&errors, objective.tolerance);
    let late: Vec<Tried> = used
        .iter()
        .map(|made| {
            let known = made.evidence.dependence.dispersion();
            let dispersion = known.unwrap_or(UNKNOWN_DISPERSION);
            let counts = [made.evidence.beyond, made.evidence.times];
            tried(made, counts, dispersion)
        })
        .collect();
    let by_time = match objective.quantile {
        Some(share) => isotonic::bounds(&late, (1.0 - share).max(objective.tolerance.min(1e-3))),
        None => [by_errors[0], None],
    };
    let lower = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => None,
    };
    let failed = [by_errors[1], by_time[1]]
        .into_iter()
        .flatten()
        .reduce(f64::min);
    // By errors alone a slow rate may hold, and by times alone a rate with shed requests. Neither counts as held.
    let held =
        lower(by_errors[0], by_time[0]).filter(|held| failed.is_none_or(|failed| *held < failed));
    [held, failed]
}
