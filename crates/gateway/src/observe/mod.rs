//! Observation of the gateway: counters, access log, distributed traces, and the administrative pages.

pub(crate) mod access_log;
pub(crate) mod admin;
mod exposition;
pub(crate) mod metrics;
pub(crate) mod record;
mod status;
pub(crate) mod traces;
pub(crate) mod tunnels;
pub(crate) mod upstream_counters;
