//! A broker's client: ask for the best offer, publish, follow changes.
//!
//! A [`Client`] knows where a broker is and, for publishing, a provider's token. Each call connects anew: whoever asks
//! often follows the changes instead, and asks nobody: [`Follower`] on a thread of its own, [`Client::follow`] where there is a
//! runtime and a break is the end.

mod client;
mod document;
mod error;
mod events;
mod follower;
mod reader;
mod sink;
mod soap;
mod wire;

pub use client::{Answer, Client, Listed, Objections, Question};
pub use document::Document;
pub use error::{Error, UrlError};
pub use events::{Event, Put};
pub use follower::{Follower, News};
pub use reader::EventReader;
pub use sink::Sink;
pub use soap::Endpoint;

/// Does `work` on this thread, for callers that have no runtime of their own.
pub fn wait<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(work))
}
