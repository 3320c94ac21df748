//! TLS: certificates of servers and of clients, and their verification.

#[cfg(feature = "server")]
pub(crate) mod certificate_choice;
#[cfg(feature = "server")]
pub(crate) mod certificate_names;
#[cfg(feature = "server")]
pub(crate) mod certificate_subject;
#[cfg(feature = "server")]
pub(crate) mod client_verification;
pub(crate) mod error;
#[cfg(feature = "server")]
pub(crate) mod server;
pub mod verification;
