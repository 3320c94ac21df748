//! XML format of the vocabulary.

mod children;
mod error;
mod read;
mod write;

pub use error::DocumentError;
pub(super) use read::{read, read_bytes};
pub(super) use write::write;

/// Accepted namespaces; elements in none are accepted, too. The first is written.
pub const NAMESPACES: [&str; 2] = ["http://wsqos.org/", "http://www.wsqos.net/schemas/"];

/// Element of foreign extensions. It may occur anywhere and is skipped.
const EXTENSION: &str = "extension";
