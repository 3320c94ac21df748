//! A client, a server and the path between them in virtual time: what a response time will be.
//!
//! A [`Scenario`] says who stands at the ends, what the links between them do and what is asked and
//! answered. A [`Simulator`] plays its transactions, each by its number: the same number and seed
//! give the same packets, whatever was played before and on whichever thread. [`Totals`] of shards
//! that are merged, in any order, equal those of one run. A [`Trace`] writes down every packet, for
//! a ladder.
//!
//! There is no thread here, no clock and no drawing: callers spread the numbers and draw the packets.

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
