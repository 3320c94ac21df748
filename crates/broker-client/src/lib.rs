//! Client of a broker: query the best offer, publish, follow changes.
//!
//! A [`Client`] holds the address of a broker and, for publishing, a provider's token. Each call opens a new
//! connection. Frequent readers should follow the changes instead. [`Follower`] has its own thread and reconnects.
//! [`Client::follow`] needs a runtime and ends when the stream breaks.

mod client;
mod document;
mod error;
mod events;
mod follower;
mod sink;
mod soap;
mod wire;

pub use client::{Answer, Client, Listed, Objections, Question};
pub use document::Document;
pub use error::{Error, UrlError};
pub use events::{Event, EventReader, Put};
pub use follower::{Follower, News};
pub use sink::Sink;
pub use soap::Endpoint;

pub use posthaste_serve::client::block_on as wait;
