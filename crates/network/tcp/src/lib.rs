//! One TCP endpoint as a state machine in virtual time, with profiles of old and new stacks.
//!
//! An [`Endpoint`] takes and emits [`Segment`]s. It handles no bytes, addresses, clocks or sockets; it counts in
//! [`Offset`]s, positions in the stream that never wrap. Callers with real bytes keep them in [`stream`] and convert
//! segments to packets with [`wire`]. A [`Profile`] describes a stack as data, with a source for each constant. A
//! [`Remedy`](remedy::Remedy) changes a profile to shorten recovery, so that its effect can be measured on any stack.
//!
//! # Order of calls
//!
//! Within one instant a caller pushes segments, pops until none is left, lets the application read and write, and pops
//! again. FreeBSD's window updates follow from this order, and so do the acknowledgements that a reply gets.
//!
//! [`Endpoint::close`] ends one direction, as `shutdown` does. [`Endpoint::leave`] also detaches the reader. Only then
//! does the time limit of FIN-WAIT-2 apply.
//!
//! # Parts
//!
//! Senders come in two families, and each has an engine of its own:
//!
//! | engine | recovery |
//! |---|---|
//! | `send::bsd` | one position to send from, pulled back after a timeout; the window is inflated |
//! | `send::pipe` (Linux, RFC 6675) | segments are marked on a scoreboard; the bytes in flight are counted |
//!
//! Both use the same parts: round-trip times, congestion control, the window in recovery, acknowledgement rules,
//! sending of segments.
//!
//! - Loss detectors only mark segments: `detect` by later segments that arrived, `rack` by time.
//! - `transmit` selects the next segment: lost data first, then new data, then the FIN.
//! - A timer expires when the stack's own [`TimerClock`] allows it: exactly, at a tick, or at a slot of Linux's timer
//!   wheel. The wheel can lengthen a timeout by up to 32 ms.
//! - [`EndpointCounters`] hold retransmissions and refused segments, each by reason.
//! - The profile limits the answers to refused segments. Without the limit two ends could answer each other for ever.
//! - [`trace`] names the kinds of segments and the reasons of transmissions. The emulator infers them from packets, a
//!   simulation knows them. Their ladders can therefore be compared.
//!
//! # Tests
//!
//! Endpoints are tested with scripts in a language of their own (`crates/network/tcp/tests/scripts`), with random worlds in
//! which every segment is checked, and with hostile segments. An interpreter of packetdrill's language runs the public
//! scripts of Linux (`crates/network/tcp/tests/packetdrill.md`).

mod clock;
pub mod congestion;
mod connection;
mod counters;
mod endpoint;
mod offset;
pub mod profile;
mod ranges;
pub mod receive;
pub mod reduction;
pub mod remedy;
pub mod rtt;
mod segment;
mod send;
mod state;
pub mod stream;
pub mod trace;
pub mod wire;

pub use clock::TimerClock;
pub use counters::{EndpointCounters, RefusedSegments};
pub use endpoint::{Endpoint, SenderSnapshot};
pub use offset::{Offset, unwrap, wrap};
pub use profile::Profile;
pub use ranges::Ranges;
pub use segment::{Options, Parity, SackBlocks, Segment, Timestamps};
pub use send::{BoardCounts, RecoveryPhase};
pub use state::{ConnectionEnd, TcpState};
