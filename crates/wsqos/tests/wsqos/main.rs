//! The room's promises, asked for from outside.

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
