//! Counts of calls by their status.

use posthaste_http::grpc::Code;
use serde::{Deserialize, Serialize};

/// Calls with a complete reply, by status. Their sum is that of the outcomes `ok` and `grpc-error`, of each attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrpcStatuses([u64; Code::ALL.len()]);

impl GrpcStatuses {
    pub(crate) fn count(&mut self, code: Code) {
        self.0[usize::from(code.number())] += 1;
    }

    /// Adds the counts of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Calls with this status.
    pub fn calls_with(&self, code: Code) -> u64 {
        self.0[usize::from(code.number())]
    }

    /// The counts of all statuses.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        self.0.into_iter()
    }

    /// All calls counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Statuses that occurred, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Code, u64)> + '_ {
        let all = Code::ALL.into_iter().zip(self.0);
        all.filter(|(_, count)| *count > 0)
    }
}
