//! Messages of UDDI registries, version 2 (OASIS, July 2002) and 3 (October 2004), as pure functions over bytes.
//!
//! A [`Version`] writes a request as a SOAP 1.1 envelope. The matching function of [`answer`] parses the reply or
//! fault. Both versions have the same entities and queries; [`Version`] has the differences. This crate opens no
//! sockets. Subscriptions, custody, replication and signatures are not supported.

pub mod answer;
mod ask;
mod entity;
mod version;

pub use answer::AnswerError;
pub use ask::PAGE;
pub use entity::{Binding, Business, Category, Interface, Registered, Service, TModel};
pub use version::Version;
