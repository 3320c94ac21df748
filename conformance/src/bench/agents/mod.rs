//! Load and sweeps on agents on one machine: how closely agents start, the cost of a conductor, and the effect of deaths of
//! agents and of the NATS server.
//!
//! The service logs each request with the kernel's stamp. All processes use the clocks of one machine, so the log shows
//! true differences, which agents and conductor do not know. Where times are compared, the agents have real-time priority
//! if permitted, so that other programs do not delay them.

mod conductor;
mod deaths;
mod one_way;
mod outages;
mod start;
mod surroundings;
mod sweep;

pub(super) use conductor::conductor;
pub(super) use deaths::deaths;
pub(super) use one_way::one_way;
pub(super) use outages::outages;
pub(super) use start::start;
pub(super) use sweep::sweep;
