//! Failures that a single trial shows, and trials that contradict them.

use posthaste_stats::RequestPart;

use super::trial::CompletedTrial;
use crate::objective::Objective;

/// Intervals with requests that a trial needs for a verdict about its whole course.
const PARTS: usize = 8;
/// Share of the intervals with bad requests: of all, and of the last quarter.
const LASTING: f64 = 0.5;
const AT_THE_END: f64 = 0.75;
/// Distance of the mean share of bad requests from the allowed one, in standard errors: 97.5 % of Student's distribution
/// with ten or more intervals.
const ERRORS: f64 = 2.2;
/// Requests of a trial that contradicts an earlier failure, and its share of bad requests as a share of the earlier one.
const CONTRADICTING: u64 = 100;
const FAR_FEWER: f64 = 0.25;

/// True if the trial by itself shows a failure: bad requests up to its end in at least half of its course, and no queue
/// that was getting shorter, as after a stall.
pub(super) fn is_failed(objective: &Objective, made: &CompletedTrial) -> bool {
    let evidence = &made.evidence;
    if made.spoilt(objective) {
        return false;
    }
    if evidence.unknown {
        return true;
    }
    if evidence.mean.is_some_and(|mean| mean.least() > 1.0) {
        return true;
    }
    let parts: Vec<&RequestPart> = evidence
        .parts
        .iter()
        .filter(|part| part.count > 0.0)
        .collect();
    if parts.len() < PARTS {
        return false;
    }
    let share = |part: &&RequestPart| part.bad / part.count;
    let count = parts.len() as f64;
    let mean = parts.iter().map(share).sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (share(part) - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let end = &parts[parts.len() * 3 / 4..];
    bad_share(&parts) >= LASTING
        && bad_share(end) >= AT_THE_END
        && mean - ERRORS * error > objective.allowed()
        && !is_draining(&parts, objective)
}

/// True if response times beyond the bound were falling at the end.
fn is_draining(parts: &[&RequestPart], objective: &Objective) -> bool {
    let bound = objective.bound.as_secs_f64();
    let mean = |parts: &[&RequestPart]| {
        parts.iter().map(|part| part.mean).sum::<f64>() / parts.len() as f64
    };
    let (half, rest) = (parts.len() / 2, parts.len() * 3 / 4);
    let (before, last) = (mean(&parts[half..rest]), mean(&parts[rest..]));
    // Fast failures have no queue.
    before.is_finite() && before > bound && last < before
}

/// The share of intervals with bad requests.
fn bad_share(parts: &[&RequestPart]) -> f64 {
    let bad = parts.iter().filter(|part| part.bad >= 0.5).count();
    bad as f64 / parts.len() as f64
}

/// True if `made` is not shorter than the earlier trial `old` and had far fewer bad requests.
pub(super) fn contradicts(made: &CompletedTrial, old: &CompletedTrial) -> bool {
    let is_longer = made.evidence.times >= old.evidence.times.max(CONTRADICTING);
    is_longer && made.evidence.bad_share() < FAR_FEWER * old.evidence.bad_share()
}
