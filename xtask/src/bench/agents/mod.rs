//! Load from several agents on one machine: how closely they start, and what deaths of agents and of the NATS server
//! cost.
//!
//! The service logs each request with the kernel's stamp. All processes use the clocks of one machine, so the log shows
//! true differences, which agents and conductor do not know. Where times are
//! compared, the agents have real-time priority if permitted, so that other programs do not delay them.

mod deaths;
mod outages;
mod start;
mod surroundings;

pub(super) use deaths::deaths;
pub(super) use outages::outages;
pub(super) use start::start;
