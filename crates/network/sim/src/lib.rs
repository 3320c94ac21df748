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
//! # Other transports
//!
//! Everything that is not TCP is shared with the simulators of other transports: the cases and their results
//! ([`SimulatedScenario`]), [`ResponseClock`], [`Totals::add_connection`], the start ([`drawn_start`]) and the checks of
//! inputs.
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
//! - [`ResponseClock`] measures the parts of the response time, as defined by `posthaste_units::ResponseTime`.
//!   `stopwatch` detects their moments in TCP.
//! - [`Totals`] are whole numbers, so that shards merge in any order.

#![forbid(unsafe_code)]

mod cases;
mod simulation;

pub use cases::case::{
    CaseError, CaseLinks, CaseOptions, CasePath, DroppedPosition, DroppedPositions, PacketEffects,
    PositionError, Remedies, SimulationCase, SimulationCases, exchanges_title,
};
pub use cases::compare::comparison_text;
pub use cases::jobs::{
    JobList, JobListError, JobResult, Ledger, LedgerError, ReceivedResult, SweepJob,
};
pub use cases::numbers::{CaseNumbers, CaseResults, MissingPacket};
pub use cases::{picture, sweep};
pub use simulation::application::{Closer, ProcessingClock, SimulatedExchange, SimulatedService};
pub use simulation::carried::Carried;
pub use simulation::ladder::{LadderOptions, LadderPacket, ladder};
pub use simulation::response_clock::ResponseClock;
pub use simulation::scenario::{Scenario, ScenarioError, check_exchanges, check_plans};
pub use simulation::simulated::{SimulatedScenario, TransactionSimulator};
pub use simulation::simulator::Simulator;
pub use simulation::start::{DrawnStart, drawn_start};
pub use simulation::totals::{CompletedConnection, ConnectionTally, Totals};
pub use simulation::trace::{PacketTrace, TracedPacket};
pub use simulation::transaction::{Ending, Transaction};
pub use simulation::witness::{OfferedSegment, Witness};
