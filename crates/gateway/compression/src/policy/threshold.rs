//! `threshold`: the papers' rule ("Performance Considerations for Mobile Web Services", section 5).
//!
//! Low demand: compresses for all clients that do not refuse. High demand: compresses only for those that ask. The
//! papers switch between the two. Here the CPU token bucket admits as many of the optional replies as fit under the
//! threshold. The step is the menu's first.

use super::{Decision, Question};
use crate::cpu_token_bucket::CpuTokenBucket;
use crate::reason::Reason;

pub(super) fn choose(question: &Question<'_>, bucket: &mut CpuTokenBucket) -> Decision {
    match question.choices().next() {
        Some(first) => question.settle(first, first.cpu, Reason::Affordable, bucket),
        None => Decision::plain(Reason::NotAcceptable),
    }
}
