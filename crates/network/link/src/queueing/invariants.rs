//! Frequency of the checks of whole collections in debug builds.

/// Length up to which a collection is always checked.
const SHORT: usize = 64;

/// True if a collection of this length is checked. Long ones only at powers of two, so that tests stay fast.
pub(crate) const fn are_checked(length: usize) -> bool {
    cfg!(debug_assertions) && (length <= SHORT || length.is_power_of_two())
}
