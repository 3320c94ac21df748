//! One TCP endpoint as a state machine in virtual time, with profiles of old and new stacks.
//!
//! An [`Endpoint`] takes and emits [`Segment`]s and knows nothing of bytes, addresses, clocks or
//! sockets: it reckons in [`Offset`]s, places in the stream. Who needs real bytes keeps them
//! beside it (`stream`) and turns segments into packets (`wire`). What a stack does is a
//! [`Profile`], data with a source for each constant; what could help it is a
//! [`Remedy`](remedy::Remedy) on top.

mod clock;
mod counters;
mod endpoint;
mod offset;
pub mod profile;
mod ranges;
pub mod receive;
pub mod remedy;
mod segment;
pub mod send;
mod state;
pub mod stream;
pub mod trace;
pub mod wire;

pub use clock::Clock;
pub use counters::{Counters, Refused};
pub use endpoint::{Endpoint, Look};
pub use offset::{Offset, unwrap, wrap};
pub use profile::Profile;
pub use ranges::Ranges;
pub use segment::{Options, Parity, SackBlocks, Segment, Timestamps};
pub use state::{End, State};
