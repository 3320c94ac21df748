//! The influence of the generator on a run, as reports state it.

use posthaste_stats::Statistic;
use serde::{Deserialize, Serialize};

/// The influence of the generator on a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// True if the generator was the limit. The plan was then not carried out, and response times are the generator's
    /// own.
    pub limited: bool,
    /// Requests that were due and not sent because of the generator.
    pub unsent: u64,
    /// Unsent requests that were not begun when the plan ended or the run was stopped.
    pub not_begun: u64,
    /// Requests that were sent late.
    pub late: u64,
    /// Retries that were sent late. Zero if clients do not retry.
    #[serde(default)]
    pub late_retries: u64,
    /// A request or a retry sent later than this is late.
    pub late_after_ms: f64,
    /// Response-time statistics in which lateness makes up more than a quarter.
    pub lateness_in: Vec<Statistic>,
    /// Description of the limit, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}
