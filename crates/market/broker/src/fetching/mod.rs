//! Offers from documents that the broker polls: of providers in its configuration, and of registered services.

pub(crate) mod config;
pub(crate) mod context;
mod documents;
pub(crate) mod source;
