//! Compression policy, offers and admission, as calculations without I/O.
//!
//! A gateway uses the compression part in this order:
//!
//! 1. Request: [`HeadScan`] reads the SOAP header of the streamed body. [`Accept`], [`Prefer`] and [`saves_data`] read
//!    the HTTP fields. [`Described`] holds the defaults of the service's WSDL. [`Preference::of`] decides between them.
//! 2. Reply: [`Reply`] holds the relevant part of its head. [`Policy::decide`] returns a step, a [`Form`] and a
//!    [`Reason`]. [`Envelope`] implements the form that compresses only the SOAP Body.
//! 3. Outside the path of requests: [`Demand`], the load controller, turns samples of the load into an [`Outlook`].
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

mod accept;
mod block;
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
mod purse;
pub mod qos;
mod reason;
mod reply;
mod scan;
mod scope;
mod step;
mod wish;
mod word;

pub use accept::{Accept, FULL};
pub use demand::{Demand, Gate, Outlook, Sample, Threshold, Work};
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
pub use purse::{Bill, Purse};
pub use reason::{REASONS, Reason};
pub use reply::{Reply, Rules, forbids_transform, is_coded};
pub use scan::{COMPRESSION, HeadScan, NAMESPACE, Seen};
pub use step::{Coding, Codings, Menu, STEPS, Step, Steps, UnknownStep};
pub use wish::{Form, Origin, Preference, Wish};
