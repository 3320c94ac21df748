//! Network namespaces of the hosts, and the addresses, routes and devices in them.

pub(crate) mod address;
pub(crate) mod host;
pub mod namespace;
pub(crate) mod netlink;
pub(crate) mod offload;
pub mod preset;
pub(crate) mod route;
pub(crate) mod subnet;
pub mod sysctl;
