//! A registry of services (UDDI) that says which services there are, and who is trusted to offer any.
//!
//! The registry is asked for what the configuration names and for what clients ask about (`demand`); of what it knows,
//! `choice` takes the services of trusted providers whose documents may be fetched; `watch` goes on asking, and
//! `directory` is what the rest of the broker sees. `enrol` is the other direction: it registers a service.
//!
//! While the registry is away, what is known stands. Another kind of registry would be another `inquiry`.

mod choice;
mod config;
mod directory;
mod enrol;
mod inquiry;
mod publisher;
mod watch;

use std::sync::Arc;

use posthaste_offers::UrlError;

pub use self::config::{Category, Uddi};
pub(crate) use self::directory::Directory;
pub use self::enrol::{Enrolled, Enrolment, enrol};
pub(crate) use self::watch::Watch;

/// What is known of a registry, and what asks it.
pub(crate) fn start(uddi: Uddi) -> Result<(Arc<Directory>, Watch), UrlError> {
    let directory = Arc::new(Directory::new(&uddi));
    let watch = Watch::new(uddi, directory.clone())?;
    Ok((directory, watch))
}

/// Bytes of a key at most (version 3, section 4.4).
const KEY: usize = 255;

/// Whether this can be the key of something in a registry.
fn is_key(text: &str) -> bool {
    text.len() <= KEY && (text.starts_with("uddi:") || text.starts_with("uuid:"))
}
