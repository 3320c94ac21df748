//! HTTP compression under load, as calculations without clock, counter or socket. Times and measurements are arguments.
//!
//! A gateway uses this crate in the following order:
//!
//! 1. Request: [`PreferenceBlock`] reads the SOAP header of the streamed body. [`Accept`], [`Prefer`] and
//!    [`saves_data`] read the HTTP fields. [`Described`] holds the defaults of the service's WSDL.
//!    [`Preference::from_sources`] decides between them.
//! 2. Reply: [`Reply`] holds the relevant part of its head. [`Policy::decide`] returns a step, a [`Form`] and a
//!    [`Reason`]. [`packed`] implements the form that compresses only the SOAP Body.
//! 3. Outside the path of requests: [`LoadController`] turns samples of the load into a [`LoadEstimate`]. [`CostModel`]
//!    learns the cost of each [`Step`].
//!
//! [`Decoder`] decodes the content codings. The encoders belong to the gateway.
//!
//! # Preferences and decisions
//!
//! A decision first checks three conditions: the reply may be transformed, the client did not refuse, both sides share
//! a coding. Only then does the policy decide. Each decision carries its reason.
//!
//! Three mechanisms react to the load, each faster than the one before:
//!
//! 1. [`LoadController`] subtracts the cost of optional compression from the measured load, so that its result does not
//!    change its input. It publishes the CPU time for optional compression a few times a second.
//! 2. [`CpuTokenBucket`], one per thread, spends this time reply by reply, at the learned costs. It is a budget of CPU
//!    time and not a share of replies, so more requests cause no more work before the next sample.
//! 3. A thread that has been busy for some time without a pause stops optional compression at once.
//!
//! A server in virtual time (`tests/compression/server.rs`) compares all three with queueing theory.

mod accept;
mod client_path;
mod cost_model;
mod cpu_token_bucket;
mod decoder;
mod described;
mod envelope;
mod load_controller;
mod media;
mod policy;
mod prefer;
mod preference;
mod preference_block;
mod reason;
mod reply;
mod step;
mod wish;

pub use accept::{Accept, FULL};
pub use client_path::ClientPath;
pub use cost_model::{CostModel, Estimate, UNKNOWN_LENGTH};
pub use cpu_token_bucket::{CpuReservation, CpuTokenBucket};
pub use decoder::Decoder;
pub use described::Described;
pub use envelope::packed;
pub use load_controller::{Gate, LoadController, LoadEstimate, Sample, Threshold, Work};
pub use media::Media;
pub use policy::{Decision, POLICIES, Policy, Question, UnknownPolicy};
pub use prefer::{Prefer, saves_data};
pub use preference::Preference;
pub use preference_block::{COMPRESSION, PreferenceBlock, ScanResult};
pub use reason::{REASONS, Reason};
pub use reply::{Reply, Rules, forbids_transform, is_coded};
pub use step::{Coding, Codings, Menu, STEPS, Step, Steps, UnknownStep};
pub use wish::{Form, Origin, Wish};
