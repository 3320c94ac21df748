//! Simulation of one scenario: both ends, the path between them, and the transactions that result.

pub(crate) mod application;
pub(crate) mod carried;
pub(crate) mod ladder;
pub(crate) mod response_clock;
pub(crate) mod scenario;
pub(crate) mod simulated;
pub(crate) mod simulator;
pub(crate) mod start;
pub(crate) mod stopwatch;
pub(crate) mod totals;
pub(crate) mod trace;
pub(crate) mod transaction;
pub(crate) mod witness;
