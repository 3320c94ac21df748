//! One model of services that misbehave in a known way, in virtual time.
//!
//! A [`ServiceSpec`] is a text such as `md1:5ms,stall=300ms/30s`: a law of service times, then misbehaviours. A
//! [`ServiceModel`] of it maps each arrival to its reply: first come, first served, by Lindley's recursion. [`truth`] has
//! the highest rates at which an objective holds, as references for an instrument, and [`PRESETS`] the services with
//! which instruments are tested.
//!
//! The order of calls: parse a spec, create a model with a seed, then call [`ServiceModel::arrive`] in order of time.
//! The same spec, seed and arrivals give the same replies.
//!
//! Clients are left to the caller. A timeout is the client's: the server still does the work of a request that its
//! client has given up, as real servers do.

mod law;
mod limiter;
mod misbehaviour;
mod model;
mod preset;
mod servers;
mod spec;
mod speed;
mod stall;
pub mod truth;
mod values;

pub use law::{LAWS, LawForm, ServiceLaw};
pub use misbehaviour::{Autoscale, Cold, ErrorShare, Hysteresis, Stall, TokenBucket, Warm};
pub use model::{ServiceModel, ServiceReply, Visit};
pub use preset::{PRESETS, ServicePreset};
pub use spec::{MISBEHAVIOURS, Misbehaviour, ServiceSpec, SpecError};
pub use values::Percent;
