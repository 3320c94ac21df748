//! A run of an emulation, from the session to its report.

pub(crate) mod emulation;
pub(crate) mod engine;
pub mod machine;
pub(crate) mod report;
pub mod session;
pub(crate) mod session_files;
pub(crate) mod tcp_counters;
