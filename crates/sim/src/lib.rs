//! Simulation of a client, a server and the path between them in virtual time, to predict response times.
//!
//! A [`Scenario`] describes the ends, the links, and the requests and replies. A [`Simulator`] runs its transactions by
//! number: the same number and seed give the same packets, regardless of earlier transactions and of the thread.
//! [`Totals`] merged from shards, in any order, equal those of one run. A [`PacketTrace`] records every packet, for a ladder.
//!
//! This crate has no threads, no clock and no drawing. Callers distribute the numbers and draw the packets.
//!
//! # Events
//!
//! `simulator` is one loop over four kinds of events: a packet leaves the link up or down, or a timer of the client or
//! the server is due, in its TCP or its program. Within one instant TCP takes the segments that arrived and sends its
//! own before the program reads and writes, as in a kernel.
//!
//! # Transactions
//!
//! - The number of a transaction selects its seed. The seed gives its links, its first sequence numbers and its start.
//!   Any thread can run any transaction, and transaction N meets the delays of the emulated connection N.
//! - Links and endpoints restart in the memory that they have. A packet is a length and a segment, without bytes.
//! - `stopwatch` measures the parts of the response time, as defined by `posthaste_units::ResponseTime`.
//! - [`Totals`] are whole numbers, so that shards merge in any order.

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

pub use application::{Closer, ProcessingClock, SimulatedExchange, SimulatedService};
pub use carried::Carried;
pub use scenario::{Scenario, ScenarioError};
pub use simulator::Simulator;
pub use totals::Totals;
pub use trace::{PacketTrace, TracedPacket};
pub use transaction::{Ending, Transaction};
pub use witness::{OfferedSegment, Witness};
