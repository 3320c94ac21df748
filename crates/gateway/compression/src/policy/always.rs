//! `always`: uses the menu's first step at any cost, as other proxies do with gzip on.

use super::{Decision, Question};
use crate::reason::Reason;
use crate::wish::Wish;

pub(super) fn choose(question: &Question<'_>) -> Decision {
    let reason = match question.preference.wish {
        Wish::Always => Reason::Asked,
        _ => Reason::PolicyAlways,
    };
    match question.choices().next() {
        Some(choice) => Decision::compressed(choice.step, reason, None),
        None => Decision::plain(Reason::NotAcceptable),
    }
}
