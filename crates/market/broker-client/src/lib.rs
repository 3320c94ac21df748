//! Client of a broker: query the best offer, publish, follow changes, report measured quality, keep accounts.
//!
//! A [`BrokerClient`] holds the address of a broker and, for publishing, a provider's token. Each call opens a new
//! connection. Frequent readers should follow the changes instead. [`Follower`] has its own thread and reconnects.
//! [`BrokerClient::follow`] needs a runtime and ends when the stream breaks.

pub mod accounts;
mod client;
mod document;
mod error;
mod events;
mod follower;
mod quality;
mod sink;
mod soap;
mod wire;

pub use client::{BestOfferQuery, BestOfferReply, BrokerClient, ListedOffer, Objections};
pub use document::RemoteDocument;
pub use error::{Error, UrlError};
pub use events::{Event, EventReader, Put};
pub use follower::{Follower, FollowerEvent};
pub use quality::{MAX_MEASURED, MeasuredOffer, QualityReport};
pub use sink::Sink;
pub use soap::Endpoint;

pub use posthaste_serve::client::block_on as wait;
