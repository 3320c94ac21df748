//! The stages of a request before admission: validate its head, receive its body, read its preferences.

pub(crate) mod account;
pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod client_certificate;
mod decode;
pub(crate) mod error;
mod field_names;
pub(crate) mod forwarded;
pub(crate) mod headers;
pub(crate) mod media;
pub(crate) mod path;
mod pause_limit;
pub(crate) mod preferences;
pub(crate) mod progress;
pub(crate) mod rewrite;
pub(crate) mod validate;
