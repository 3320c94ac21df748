//! The stages of a request before admission: validate its head, receive its body, read its preferences.

pub(crate) mod account;
pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod client_certificate;
pub(crate) mod error;
mod field_names;
pub(crate) mod field_syntax;
pub(crate) mod forwarded;
pub(crate) mod headers;
pub(crate) mod media;
mod message_scan;
mod pause_limit;
pub(crate) mod preferences;
pub(crate) mod rewrite;
pub(crate) mod trailers;
pub(crate) mod validate;
pub(crate) mod validators;
pub(crate) mod varying;
