//! The machine of a process: processors, descriptors and signals.

pub(crate) mod cpus;
pub(crate) mod descriptors;
#[cfg(feature = "server")]
pub(crate) mod signal;
