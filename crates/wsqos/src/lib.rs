//! What a client wishes, what a server can afford, and which replies are compressed.
//!
//! A gateway uses it in this order. Of a request: [`HeadScan`] reads the SOAP header while the body streams
//! by, [`Accept`], [`Prefer`] and [`saves_data`] the HTTP fields, and [`Preference::of`] says whose word
//! counts, [`Described`] among them for what the service's WSDL says. Of a reply: [`Reply`] holds what its
//! head says, and [`Policy::decide`] answers with a step, a [`Form`] and a [`Reason`]; [`Envelope`] is for the
//! form in which only the SOAP Body is compressed. Beside the path of requests: [`Demand`] turns samples of
//! the load into an [`Outlook`], and [`Prices`] learns what each [`Step`] costs.
//!
//! How its packets are marked is decided beside that: [`Marks::decide`].
//!
//! [`qos`] is the other half: what servers offer and clients ask for, and whether the one is enough for the
//! other; [`index`] finds the cheapest that is.
//!
//! [`market`] is how a service protects itself by its price: controllers, quotes, and limits for those who want
//! none.
//!
//! Nothing here reads a clock, a counter or a socket, and nothing compresses: times and measurements are
//! arguments, and the codecs are the gateway's.

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
