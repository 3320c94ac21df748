//! gRPC calls in reports: the method, and complete replies by status.

use std::collections::BTreeMap;

use posthaste_units::thousands;
use serde::{Deserialize, Serialize};

use posthaste_load::{GrpcStatuses, Plan};

/// The calls of a run in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrpcReport {
    /// The method, and its streams in words.
    pub method: String,
    /// Calls with a complete reply by status, to each attempt.
    pub statuses: BTreeMap<String, u64>,
}

impl GrpcReport {
    /// Creates the report. `None` if the plan has no calls.
    pub(super) fn new(plan: &Plan, statuses: &GrpcStatuses) -> Option<Self> {
        let call = plan.requests.iter().find_map(|spec| spec.grpc.as_ref())?;
        let statuses = statuses.iter();
        Some(Self {
            method: call.to_string(),
            statuses: statuses
                .map(|(code, count)| (code.name().to_owned(), count))
                .collect(),
        })
    }

    /// The statuses in words.
    pub(super) fn description(&self) -> String {
        let statuses = self.statuses.iter();
        let statuses = statuses.map(|(name, count)| format!("{name}: {}", thousands(*count)));
        statuses.collect::<Vec<_>>().join("   ")
    }
}
