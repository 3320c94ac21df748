//! Simulation of a client, a server and the path between them in virtual time, to predict response times.
//!
//! A [`Scenario`] describes the ends, the links, and the requests and replies. A [`Simulator`] runs its transactions by
//! number: the same number and seed give the same packets, regardless of earlier transactions and of the thread.
//! [`Totals`] merged from shards, in any order, equal those of one run. A [`PacketTrace`] records every packet, for a
//! ladder.
//!
//! [`SimulationCases`] are the combinations of swept options and compared remedies. [`CaseResults`] give their results
//! as text or JSON. [`picture`] and [`ladder`](ladder()) draw them.
//!
//! A [`JobList`] divides a sweep into jobs for several machines. A [`Ledger`] merges their results.
//!
//! This crate has no threads, no clock and no files. Callers distribute the numbers of transactions, and write the
//! results.
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
mod case;
mod compare;
mod jobs;
mod ladder;
mod numbers;
pub mod picture;
mod scenario;
mod simulator;
mod stopwatch;
pub mod sweep;
mod totals;
mod trace;
mod transaction;
mod wire;
mod witness;

pub use application::{Closer, ProcessingClock, SimulatedExchange, SimulatedService};
pub use carried::Carried;
pub use case::{
    CaseError, CaseOptions, CasePath, DroppedPosition, DroppedPositions, PacketEffects,
    PositionError, Remedies, SimulationCase, SimulationCases,
};
pub use compare::comparison_text;
pub use jobs::{JobList, JobListError, JobResult, Ledger, LedgerError, ReceivedResult, SweepJob};
pub use ladder::ladder;
pub use numbers::{CaseNumbers, CaseResults, MissingPacket};
pub use scenario::{Scenario, ScenarioError};
pub use simulator::Simulator;
pub use totals::Totals;
pub use trace::{PacketTrace, TracedPacket};
pub use transaction::{Ending, Transaction};
pub use witness::{OfferedSegment, Witness};
