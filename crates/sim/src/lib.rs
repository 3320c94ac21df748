//! Simulation of a client, a server and the path between them in virtual time, to predict response times.
//!
//! A [`Scenario`] describes the ends, the links, and the requests and replies. A [`Simulator`] runs its transactions by
//! number: the same number and seed give the same packets, regardless of earlier transactions and of the thread.
//! [`Totals`] merged from shards, in any order, equal those of one run. A [`Trace`] records every packet, for a ladder.
//!
//! This crate has no threads, no clock and no drawing. Callers distribute the numbers and draw the packets.

#![forbid(unsafe_code)]

mod application;
mod carried;
mod scenario;
mod simulator;
mod stopwatch;
mod totals;
mod trace;
mod transaction;
mod witness;

pub use application::{Closer, Exchange, ProcessingClock, Service};
pub use carried::Carried;
pub use scenario::{Scenario, ScenarioError};
pub use simulator::Simulator;
pub use totals::Totals;
pub use trace::{Packet, Trace};
pub use transaction::{Ending, Transaction};
pub use witness::{Sent, Witness};
