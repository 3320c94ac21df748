//! Effects of a link on packets by chance: losses, jitter, reordering.

pub(crate) mod jitter;
pub mod loss;
pub(crate) mod reordering;
