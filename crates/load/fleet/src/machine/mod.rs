//! Facts of this machine: its clock, program and processor, and random bytes.

pub mod clock;
pub mod identity;
pub mod numerics;
pub(crate) mod random;
