//! Messages of UDDI registries, version 2 (OASIS, July 2002) and 3 (October 2004), as pure functions over bytes.
//!
//! Both versions have the same entities and the same questions; what differs is in [`Version`]. A [`Version`] writes
//! a request as a SOAP 1.1 envelope, and the function of [`answer`] that goes with it reads the reply, a fault
//! included. Nothing here opens a socket. Subscriptions, custody, replication and signatures are not here.

pub mod answer;
mod ask;
mod entity;
mod version;

pub use answer::AnswerError;
pub use ask::PAGE;
pub use entity::{Binding, Business, Category, Interface, Registered, Service, TModel};
pub use version::Version;
