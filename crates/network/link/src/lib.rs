//! A network path in virtual time: decides the fate and the departure of packets, equal for equal seeds and inputs.
//!
//! A [`Link`] is one direction. Packets are pushed on arrival, and each comes out of `pop` once, with its fate and its
//! exact departure time. A [`Plan`] describes a link as data. A [`pattern`] sets the effect on single packets. A
//! [`Network`] gives connections their own links, or one for all; [`Sharing::resolve`] is the rule of the command. A
//! [`record`] of the inputs replays to the same decisions. A [`change`] gives a running link other values. [`quic`]
//! names the packets of a QUIC connection for traces. Sockets, other headers and the real clock are left to the crates
//! above.
//!
//! # Order of decisions
//!
//! 1. `chance` and the pattern decide on arrival: loss, duplication, effects on single packets.
//! 2. `pipe` (order of dummynet: queue, bandwidth, delay) or `netem` (delay, bandwidth) computes the times.
//!    Both send with `transmitter`, at a rate or at delivery opportunities.
//! 3. `exit` applies bit errors and the order of departures.
//!
//! Each kind of chance has its own random stream and draws for every packet. One more drop in a pattern therefore
//! changes no other packet's delay.
//!
//! # Time of decisions
//!
//! - **Drop-tail**: the whole path of a packet is decided when it arrives, ahead of time. The result cannot depend on
//!   the times of calls. An arrival before the time of the last `pop` still counts.
//! - **CoDel, drop-head, classes, changeable plans**: the queue must wait before it decides. Departures are then final, and a later push
//!   counts from that moment. [`Link::push`] returns the arrival as it counted. A [`record`] stores that time and so
//!   replays to the same decisions.
//! - **Cross traffic** (`background`) is computed only when a packet arrives or waits. An idle link has no events.
//! - Times are whole nanoseconds, and remainders are carried: one second at any bandwidth is exact.

mod chance;
mod impairments;
mod link;
mod network;
mod packets;
pub mod pattern;
mod plans;
mod queue;
mod queueing;
pub mod quic;
pub mod record;
mod spelling;

pub use impairments::jitter::{Jitter, JitterShape, Spread};
pub use impairments::loss;
pub use impairments::loss::Loss;
pub use impairments::reordering::Reordering;
pub use link::Link;
pub use network::{Arrived, FORGOTTEN, IDLE, Network, seed_of};
pub use packets::counters::{DelayTally, LinkCounters, PacketTally};
pub use packets::departure::{DeliveryMarks, Departure, DropReason, Fate};
pub use packets::ecn::Ecn;
pub use packets::mtu::Mtu;
pub use packets::packet::{Direction, Packet, updated_checksum};
pub use plans::background::{BackgroundCounters, BackgroundError, BackgroundTraffic};
pub use plans::classes::{Class, ClassCounters, ClassError, Classes};
pub use plans::explain::explain;
pub use plans::plan::{Order, Plan, PlanError};
pub use plans::sharing::{Sharing, SharingError};
pub use plans::{change, profile, properties};
pub use queue::{CoDel, Discipline, Queue, Step};
pub use queueing::exit::HOLD_LIMIT;
pub use spelling::SpellingError;
