//! Many scenarios: sweeps over options, jobs that distribute them, and the figures of their results.

pub(crate) mod case;
pub(crate) mod compare;
pub(crate) mod jobs;
pub(crate) mod numbers;
pub(crate) mod paired;
pub mod picture;
pub mod sweep;
pub(crate) mod wire;
