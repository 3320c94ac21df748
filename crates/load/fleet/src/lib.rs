//! Agents and their conductor over NATS: several machines carry out one run.
//!
//! A conductor finds agents, measures their clocks, prepares and arms them, and starts them at one instant. While a run
//! lasts, each agent publishes numbered notes, and the conductor applies each note once. The meaning of plans and notes
//! is left to the callers: payloads are generic (serde). The event loops of a run never see NATS.
//!
//! | part | modules |
//! |---|---|
//! | names and subjects | [`names`], [`subjects`] |
//! | formats, bounded when read | [`envelope`], [`parts`], [`message`], [`sealed`] |
//! | decisions without I/O | [`offset`], [`allot`], [`allow`], [`assignment`], [`numerics`], [`discovery`] |
//! | connection and storage | [`clock`], [`connection`], [`storage`] |
//! | notes | [`notes`] |
//! | both ends | [`agent`], [`conductor`], [`identity`] |
//! | kinds of work | [`agent_work`], [`mod@load`], [`jobs`], [`sweep`], [`studies`] |

pub mod agent;
pub mod agent_work;
pub mod allot;
pub mod allow;
pub mod assignment;
pub mod clock;
pub mod conductor;
pub mod connection;
pub mod discovery;
pub mod envelope;
pub mod examination;
pub mod fleet;
pub mod identity;
pub mod jobs;
pub mod load;
pub mod message;
pub mod names;
pub mod notes;
pub mod numerics;
pub mod offset;
pub mod parts;
mod random;
pub mod sealed;
mod service;
pub mod storage;
pub mod studies;
pub mod subjects;
pub mod sweep;
mod traffic;
