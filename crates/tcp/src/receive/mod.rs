//! The receiving half.

pub mod ack;
pub mod duplicates;
pub mod window;
