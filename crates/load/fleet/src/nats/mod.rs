//! The NATS server: a connection with checks, requests and replies, and storage.

pub mod connection;
pub mod storage;
pub(crate) mod traffic;
