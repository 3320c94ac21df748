//! Observation of the gateway: counters, access log, distributed traces, and the administrative pages.

pub(crate) mod access_log;
pub(crate) mod admin;
mod admin_host;
mod exposition;
mod fine_histogram;
pub(crate) mod grpc_counters;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod log_entry;
mod log_line;
pub(crate) mod metrics;
pub(crate) mod record;
pub(crate) mod route_reading;
mod status;
pub(crate) mod times;
pub(crate) mod traces;
pub(crate) mod tunnels;
pub(crate) mod unreadable;
pub(crate) mod upstream_counters;
