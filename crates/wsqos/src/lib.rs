//! Compression policy, offers and admission, as calculations without I/O.
//!
//! A gateway uses the compression part in this order:
//!
//! 1. Request: [`HeadScan`] reads the SOAP header of the streamed body. [`Accept`], [`Prefer`] and [`saves_data`] read
//!    the HTTP fields. [`Described`] holds the defaults of the service's WSDL. [`Preference::of`] decides between them.
//! 2. Reply: [`Reply`] holds the relevant part of its head. [`Policy::decide`] returns a step, a [`Form`] and a
//!    [`Reason`]. [`Envelope`] implements the form that compresses only the SOAP Body.
//! 3. Outside the path of requests: [`Demand`], the load controller, turns samples of the load into an [`LoadEstimate`].
//!    [`Prices`], the cost model, learns the cost of each [`Step`].
//!
//! Other parts:
//!
//! - [`Marks::decide`] selects the DSCP mark of a reply.
//! - [`qos`] contains offers, requirements and their comparison. [`index`] finds the cheapest adequate offer.
//! - [`market`] protects a service by prices and quotes, or by limits without prices.
//!
//! Nothing here reads a clock, a counter or a socket, and nothing compresses. Times and measurements are arguments. The
//! codecs belong to the gateway.
//!
//! # Preferences and decisions
//!
//! The header scan passes over a streamed envelope and buffers only an incomplete tag. A decision first checks three
//! conditions: the reply may be transformed, the client did not refuse, both sides share a coding. Only then does the
//! policy decide. Each decision carries its reason.
//!
//! Three mechanisms react to the load, each faster than the one before:
//!
//! 1. [`Demand`] subtracts the cost of optional compression from the measured load, so that its result does not change
//!    its input. It publishes the CPU time for optional compression a few times a second.
//! 2. A [`CpuTokenBucket`], the CPU token bucket of a thread, spends this time reply by reply, at the learned costs. It is a
//!    budget of CPU time and not a share of replies, so more requests cause no more work before the next sample.
//! 3. A thread that has been busy for some time without a pause stops optional compression at once.
//!
//! A server in virtual time (`crates/wsqos/tests/wsqos/server.rs`) compares all three with queueing theory.
//!
//! # Offers and requirements
//!
//! - [`qos::Definition`] serves both sides. `None` is an unstated value.
//! - XML and JSON are read strictly: each value by its bounded type, counts by `qos::bounds`.
//! - One comparison visits an offer and a requirement and calls back with each mismatch. A caller that needs yes or no
//!   stops at the first, a caller that needs reasons continues, so their results cannot differ. A test implements the
//!   rules a second time in the simplest form and compares.
//! - Money is counted in whole millionths.
//! - A new metric is a field, a line each in `qos::xml::read`, in `qos::xml::write` and in the comparison
//!   (`Pair::compare`), and a line in the schema.

mod accept;
mod block;
mod cpu_token_bucket;
mod demand;
mod described;
mod envelope;
mod field;
pub mod index;
mod line;
pub mod market;
mod marking;
mod media;
mod policy;
mod prefer;
mod prices;
pub mod qos;
mod reason;
mod reply;
mod scan;
mod scope;
mod step;
mod wish;
mod word;

pub use accept::{Accept, FULL};
pub use cpu_token_bucket::{CpuReservation, CpuTokenBucket};
pub use demand::{Demand, Gate, LoadEstimate, Sample, Threshold, Work};
pub use described::Described;
pub use envelope::Envelope;
pub use line::Line;
pub use marking::{
    Asked, Mark, MarkOrigin, Marks, Range, Rule, Table, UnknownRange, Urgencies, Urgency,
};
pub use media::Media;
pub use policy::{Decision, POLICIES, Policy, Question, UnknownPolicy};
pub use prefer::{Prefer, saves_data};
pub use prices::{Estimate, Prices, UNKNOWN_LENGTH};
pub use reason::{REASONS, Reason};
pub use reply::{Reply, Rules, forbids_transform, is_coded};
pub use scan::{COMPRESSION, HeadScan, NAMESPACE, Seen};
pub use step::{Coding, Codings, Menu, STEPS, Step, Steps, UnknownStep};
pub use wish::{Form, Origin, Preference, Wish};
