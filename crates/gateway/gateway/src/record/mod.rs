//! Records of requests: counters, times, the journal of a request, the access log, and distributed traces.
//!
//! The stages of the pipeline write them. `admin` reads them.

pub(crate) mod access_log;
pub(crate) mod fine_histogram;
pub(crate) mod grpc_counters;
pub(crate) mod journal;
pub(crate) mod log_entry;
mod log_line;
pub(crate) mod metrics;
pub(crate) mod outcomes;
pub(crate) mod times;
pub(crate) mod traces;
pub(crate) mod tunnels;
pub(crate) mod unreadable;
pub(crate) mod upstream_counters;
