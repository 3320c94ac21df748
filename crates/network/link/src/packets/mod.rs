//! Packets, their fate, and the counters of both.

pub(crate) mod bit_errors;
pub(crate) mod counters;
pub(crate) mod departure;
pub(crate) mod ecn;
pub(crate) mod mtu;
pub(crate) mod packet;
