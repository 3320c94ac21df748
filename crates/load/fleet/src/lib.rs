//! Agents and their conductor over NATS: several machines carry out one run.
//!
//! A conductor finds agents, measures their clocks, prepares and arms them, and starts them at one instant. While a run
//! lasts, each agent publishes numbered notes, and the conductor applies each note once. The meaning of plans and notes
//! is left to the callers: payloads are generic (serde). The event loops of a run never see NATS.
//!
//! | folder | content |
//! |---|---|
//! | `protocol` | names and subjects, formats that are bounded when read, plans and results of each kind of work |
//! | `machine` | clock, identity and numerics of this machine |
//! | `nats` | connection, requests and replies, storage |
//! | [`notes`] | numbered notes of agents about a run |
//! | [`agent`] | the agent: its assignment, permitted targets, and kinds of work |
//! | [`conductor`] | the conductor: agents found and compared, clocks, runs of load, jobs of sweeps and studies |

pub mod agent;
pub mod conductor;
mod machine;
mod nats;
pub mod notes;
mod protocol;

pub use machine::{clock, identity, numerics};
pub use nats::{connection, storage};
pub use protocol::{allot, envelope, message, names, parts, sealed, subjects, work};
