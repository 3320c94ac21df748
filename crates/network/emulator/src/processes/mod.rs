//! Processes of a session: supervision, privileges, priorities, sockets.

pub(crate) mod confinement;
pub(crate) mod listening;
pub(crate) mod outside;
pub(crate) mod priority;
pub mod supervisor;
