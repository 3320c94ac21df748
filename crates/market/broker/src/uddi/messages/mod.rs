//! Messages of UDDI registries, version 2 (OASIS, July 2002) and 3 (October 2004), as pure functions over bytes.
//!
//! A [`Version`] writes a request as a SOAP 1.1 envelope. The matching function of [`reply`] parses the reply or
//! fault. Both versions have the same entities and queries; [`Version`] has the differences. This module opens no
//! sockets. Subscriptions, custody, replication and signatures are not supported.

mod entity;
pub mod reply;
mod request;
mod version;

pub use entity::{
    BindingTemplate, Business, BusinessService, Category, Interface, Registered, TModel,
};
pub use reply::ReplyError;
pub use request::PAGE;
pub use version::Version;
