//! `ladder`: `threshold` with better steps while there is plenty, and the cheapest when there is not.
//!
//! Which step can be afforded is asked of what the cheapest would take for everybody, which does not
//! depend on the step that is taken: climbing never makes the ladder shorter.

use super::{Choice, Decision, Question};
use crate::purse::Purse;
use crate::reason::Reason;

/// The part of the allowance that dearer steps may fill: beyond it, replies would go plain so that others
/// are a little smaller.
const FILL: f64 = 0.8;

/// A dearer step must leave at most this part of the bytes of a cheaper one.
const WORTH: f64 = 0.97;

pub(super) fn choose(question: &Question<'_>, purse: &mut Purse) -> Decision {
    let Some(cheapest) = question.choices().min_by_key(|choice| choice.cpu) else {
        return Decision::plain(Reason::NotAcceptable);
    };
    let times = f64::from(question.outlook.plenty) * FILL;
    let most = (cheapest.cpu.as_nanos() as f64 * times) as u64;
    let fits = |choice: &Choice| choice.cpu.as_nanos() <= most.max(cheapest.cpu.as_nanos());
    let out = |choice: &Choice| choice.out.as_bytes() as f64;
    let affordable = || question.choices().filter(fits);
    let least = affordable()
        .map(|choice| out(&choice))
        .fold(f64::MAX, f64::min);
    let best = affordable()
        .filter(|choice| out(choice) * WORTH <= least)
        .min_by_key(|choice| choice.cpu)
        .unwrap_or(cheapest);
    question.settle(best, cheapest.cpu, Reason::Affordable, purse)
}
