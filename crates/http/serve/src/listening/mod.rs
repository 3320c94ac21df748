//! Listening sockets, and the addresses of the clients that connect to them.

#[cfg(feature = "server")]
pub(crate) mod listen;
#[cfg(feature = "server")]
pub(crate) mod listener;
pub(crate) mod networks;
#[cfg(feature = "server")]
pub mod proxy_protocol;
#[cfg(feature = "server")]
pub(crate) mod stated_source;
