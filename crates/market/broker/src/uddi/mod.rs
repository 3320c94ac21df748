//! UDDI registry: the source of services and trusted providers.
//!
//! - `watch` periodically queries the configured types and those that clients request (`demand`).
//! - `choice` selects the services of trusted providers whose documents may be fetched.
//! - `directory` is the state that the rest of the broker sees. `enrol` registers a service.
//! - [`messages`] writes requests to a registry and parses its replies.
//!
//! During an outage of the registry the known services stay. Another kind of registry would replace `inquiry`.

mod choice;
mod config;
mod directory;
mod enrol;
mod enrolment;
mod inquiry;
pub mod messages;
mod publisher;
mod watch;

use std::sync::Arc;

use posthaste_broker_client::UrlError;

pub use self::config::{Category, Uddi};
pub(crate) use self::directory::Directory;
pub use self::enrol::enrol;
pub use self::enrolment::{Enrolled, Enrolment};
pub(crate) use self::watch::Watch;

/// Creates the shared state of a registry and its watcher.
pub(crate) fn start(uddi: Uddi) -> Result<(Arc<Directory>, Watch), UrlError> {
    let directory = Arc::new(Directory::new(&uddi));
    let watch = Watch::new(uddi, directory.clone())?;
    Ok((directory, watch))
}

/// Maximum length of a key in bytes (version 3, section 4.4).
const KEY: usize = 255;

/// Returns true if the text can be a UDDI key.
fn is_key(text: &str) -> bool {
    text.len() <= KEY && (text.starts_with("uddi:") || text.starts_with("uuid:"))
}
