//! `never`: the plain path, to compare with and to switch to.

use super::Decision;
use crate::reason::Reason;

pub(super) const fn choose() -> Decision {
    Decision::plain(Reason::PolicyNever)
}
