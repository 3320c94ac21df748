//! `threshold`: the papers' rule ("Performance Considerations for Mobile Web Services", section 5).
//!
//! At low demand all are compressed who did not refuse, at high demand only those who asked. The papers
//! switch between the two; here the purse lets through as many of the others as fit under the threshold.
//! The step is the menu's first.

use super::{Decision, Question};
use crate::purse::Purse;
use crate::reason::Reason;

pub(super) fn choose(question: &Question<'_>, purse: &mut Purse) -> Decision {
    match question.choices().next() {
        Some(first) => question.settle(first, first.cpu, Reason::Affordable, purse),
        None => Decision::plain(Reason::NotAcceptable),
    }
}
