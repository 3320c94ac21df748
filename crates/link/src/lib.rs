//! A network path in virtual time: decides the fate and the departure of packets, equal for equal seeds and inputs.
//!
//! A [`Link`] is one direction. Packets are pushed on arrival, and each comes out of `pop` once, with its fate and its
//! exact departure time. A [`Plan`] describes a link as data. A [`pattern`] sets the effect on single packets. A
//! [`Network`] gives connections their own links, or one for all. A [`record`] of the inputs replays to the same
//! decisions. Sockets, headers and the real clock are left to the crates above.

mod background;
mod bit_errors;
mod chance;
mod classes;
mod conditions;
mod counters;
mod exit;
mod jitter;
mod lane;
mod link;
pub mod loss;
mod meter;
mod netem;
mod network;
mod packet;
mod passage;
pub mod pattern;
mod pipe;
mod plan;
pub mod profile;
mod queue;
pub mod record;
mod reordering;
mod shares;
mod slots;
mod spelling;

pub use background::{Background, BackgroundCounters, BackgroundError};
pub use classes::{Class, ClassCounters, ClassError, Classes};
pub use counters::{Counters, Tally};
pub use exit::HOLD_LIMIT;
pub use jitter::{Jitter, Shape, Spread};
pub use link::Link;
pub use loss::Loss;
pub use network::{Arrived, FORGOTTEN, IDLE, Network, Sharing, seed_of};
pub use packet::{Direction, Packet};
pub use passage::{Fate, Marks, Passage, Reason};
pub use plan::{Order, Plan, PlanError};
pub use queue::{CoDel, Discipline, Queue};
pub use reordering::Reordering;
pub use spelling::SpellingError;
