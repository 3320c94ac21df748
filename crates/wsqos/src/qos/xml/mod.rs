//! The vocabulary as XML.

mod children;
mod error;
mod read;
mod write;

pub use error::DocumentError;
pub(super) use read::{read, read_bytes};
pub(super) use write::write;

/// The namespaces in use; elements in none are read, too. The first is written.
pub const NAMESPACES: [&str; 2] = ["http://wsqos.org/", "http://www.wsqos.net/schemas/"];

/// What may stand anywhere and is passed over: what others add.
const EXTENSION: &str = "extension";
