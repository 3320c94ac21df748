//! `never`: no compression, for comparison and as a fallback.

use super::Decision;
use crate::reason::Reason;

pub(super) const fn choose() -> Decision {
    Decision::plain(Reason::PolicyNever)
}
