//! `ladder`: `threshold` with more effort while CPU time is plentiful, and the cheapest step otherwise.
//!
//! The affordable effort follows from the cost of the cheapest step for all replies. That cost does not depend on the
//! chosen step, so choosing a higher step does not reduce the affordable effort.

use super::{AffordableStep, Decision, Question};
use crate::cpu_token_bucket::CpuTokenBucket;
use crate::reason::Reason;

/// Part of the allowance that more expensive steps may use. Beyond it, some replies would stay uncompressed so that
/// others are a little smaller.
const FILL: f64 = 0.8;

/// Maximum size of the result of a more expensive step, relative to a cheaper one.
const WORTH: f64 = 0.97;

pub(super) fn choose(question: &Question<'_>, bucket: &mut CpuTokenBucket) -> Decision {
    let Some(cheapest) = question.choices().min_by_key(|choice| choice.cpu) else {
        return Decision::plain(Reason::NotAcceptable);
    };
    let times = f64::from(question.estimate.plenty) * FILL;
    let most = (cheapest.cpu.as_nanos() as f64 * times) as u64;
    let fits = |choice: &AffordableStep| choice.cpu.as_nanos() <= most.max(cheapest.cpu.as_nanos());
    let out = |choice: &AffordableStep| choice.out.as_bytes() as f64;
    let affordable = || question.choices().filter(fits);
    let least = affordable()
        .map(|choice| out(&choice))
        .fold(f64::MAX, f64::min);
    let best = affordable()
        .filter(|choice| out(choice) * WORTH <= least)
        .min_by_key(|choice| choice.cpu)
        .unwrap_or(cheapest);
    question.settle(best, cheapest.cpu, Reason::Affordable, bucket)
}
