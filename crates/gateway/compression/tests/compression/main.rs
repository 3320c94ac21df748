//! Integration tests of the crate's public interface.

mod allowances;
mod decisions;
mod descriptions;
mod envelopes;
mod load_controller;
mod scans;
mod server;
