//! What a path does to packets, decided in virtual time: the same for the same seed and input.
//!
//! A [`Link`] is one direction: packets are pushed with their arrival, and each comes out of `pop`
//! once, with its fate and the exact time at which it left. A [`Plan`] says what the link does, as
//! data; a [`pattern`] says what happens to which packet; a [`Network`] gives connections links of
//! their own, or one for all; a [`record`] of what was pushed replays to the same decisions.
//! Sockets, headers and the real clock are left to the rooms above.

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
