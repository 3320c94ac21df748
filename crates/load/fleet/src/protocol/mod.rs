//! The protocol between conductor and agents: names, subjects, and messages, bounded when read.

pub mod allot;
pub mod envelope;
pub mod message;
pub mod names;
pub mod parts;
pub mod sealed;
pub mod subjects;
pub mod work;
