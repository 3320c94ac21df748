//! Byte streams of connections: over TCP, with TLS, or simulated, and the kernel's data about them.

pub(crate) mod handle;
#[cfg(feature = "server")]
pub(crate) mod linger;
pub(crate) mod mark;
pub(crate) mod queues;
pub mod simulated;
pub(crate) mod stream;
pub(crate) mod tcp_info;
