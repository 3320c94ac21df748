//! The queueing system of a link: classes, their scheduler, the transmitter, and the exit.

pub(crate) mod class_queue;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod exit;
pub(crate) mod invariants;
pub(crate) mod meter;
pub(crate) mod netem;
pub(crate) mod opportunities;
pub(crate) mod pipe;
pub(crate) mod scheduler;
pub(crate) mod slots;
pub(crate) mod transmitter;
