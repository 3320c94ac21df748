//! One TCP endpoint as a state machine in virtual time, with profiles of old and new stacks.
//!
//! An [`Endpoint`] takes and emits [`Segment`]s. It handles no bytes, addresses, clocks or sockets; it counts in
//! [`Offset`]s, positions in the stream. Callers with real bytes keep them in `stream` and convert segments to packets
//! with `wire`. A [`Profile`] describes a stack as data, with a source for each constant. A [`Remedy`](remedy::Remedy)
//! changes a profile to shorten recovery.

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
