//! Integration tests of the crate's public interface.

mod blocks;
mod decisions;
mod demand;
mod descriptions;
mod envelopes;
mod index;
mod market;
mod qos;
mod scans;
mod server;
