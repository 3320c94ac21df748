//! The sending half.

pub mod congestion;
pub mod reduction;
pub mod rtt;
