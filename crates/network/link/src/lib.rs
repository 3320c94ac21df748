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

mod background;
mod bit_errors;
mod chance;
pub mod change;
mod class_queue;
mod classes;
mod conditions;
mod context;
mod counters;
mod departure;
mod ecn;
mod exit;
mod explain;
mod invariants;
mod jitter;
mod link;
pub mod loss;
mod meter;
mod mtu;
mod netem;
mod network;
mod opportunities;
mod packet;
pub mod pattern;
mod pipe;
mod plan;
pub mod profile;
pub mod properties;
mod queue;
pub mod quic;
pub mod record;
mod reordering;
mod scheduler;
mod sharing;
mod slots;
mod spelling;
mod transmitter;

pub use background::{BackgroundCounters, BackgroundError, BackgroundTraffic};
pub use classes::{Class, ClassCounters, ClassError, Classes};
pub use counters::{DelayTally, LinkCounters, PacketTally};
pub use departure::{DeliveryMarks, Departure, DropReason, Fate};
pub use ecn::Ecn;
pub use exit::HOLD_LIMIT;
pub use explain::explain;
pub use jitter::{Jitter, JitterShape, Spread};
pub use link::Link;
pub use loss::Loss;
pub use mtu::Mtu;
pub use network::{Arrived, FORGOTTEN, IDLE, Network, seed_of};
pub use packet::{Direction, Packet, updated_checksum};
pub use plan::{Order, Plan, PlanError};
pub use queue::{CoDel, Discipline, Queue, Step};
pub use reordering::Reordering;
pub use sharing::{Sharing, SharingError};
pub use spelling::SpellingError;
