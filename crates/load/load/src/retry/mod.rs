//! Clients that retry: the failures that they retry, and their back-off.
//!
//! Each attempt sends the same bytes. A client retries on a connection of any age, with every method: the user who asks
//! for retries states that a request may be sent again. `Retry-After` is not read.

mod backoff;

use std::fmt;

pub use backoff::{Backoff, BackoffError};

use posthaste_http::grpc::Code;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Statuses that are retried: the list of curl's `--retry` (curl(1)) without 522 and 524, which one vendor defines.
///
/// 408 Request Timeout, 429 Too Many Requests, 500 Internal Server Error, 502 Bad Gateway, 503 Service Unavailable,
/// 504 Gateway Timeout.
pub(crate) const RETRIED_STATUSES: [u16; 6] = [408, 429, 500, 502, 503, 504];

/// Retries of failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Maximum number of retries of one request. Its attempts are at most one more.
    pub limit: u32,
    /// Wait between the end of an attempt and the next one.
    pub backoff: Backoff,
}

impl RetryPolicy {
    /// True if the client sends a request again after attempt `number`, counted from 1. `status` and `code` are those of
    /// the reply, if it is complete; `code` is that of a gRPC call.
    pub(crate) fn permits(
        &self,
        number: u32,
        outcome: Outcome,
        status: Option<u16>,
        code: Option<Code>,
    ) -> bool {
        debug_assert!(number > 0, "attempts count from 1");
        number <= self.limit && is_retried(outcome, status, code)
    }
}

/// True if a client retries an attempt that ended so. The status decides about a complete reply, also about a SOAP
/// fault. Of the statuses of gRPC only UNAVAILABLE is retried: it states that a repetition may help (gRPC, "Status codes
/// and their use").
fn is_retried(outcome: Outcome, status: Option<u16>, code: Option<Code>) -> bool {
    match outcome {
        Outcome::SoapFault | Outcome::StatusError => {
            status.is_some_and(|status| RETRIED_STATUSES.contains(&status))
        }
        Outcome::GrpcError => code == Some(Code::Unavailable),
        Outcome::ConnectAborted
        | Outcome::Unanswered
        | Outcome::Refused
        | Outcome::Reset
        | Outcome::TimedOut
        | Outcome::TlsFailed
        | Outcome::ProtocolError
        | Outcome::Collateral
        | Outcome::Rejected
        | Outcome::NoStream => true,
        // Success, a limit of this machine, a decision of the client, or the end of the run.
        Outcome::Ok
        | Outcome::Undecodable
        | Outcome::MemoryLimit
        | Outcome::Dropped
        | Outcome::ClientFailed
        | Outcome::Declined
        | Outcome::InFlight
        | Outcome::Lost => false,
    }
}

impl fmt::Display for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, back-off {}", self.limit, self.backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_status_that_is_retried() {
        const PAGE: &str = include_str!("../../../../../docs/reference/load.md");
        let statuses = RETRIED_STATUSES.map(|status| status.to_string());
        let row = format!(
            "`status-error`, `soap-fault` | status {}",
            statuses.join(", ")
        );
        assert!(PAGE.contains(&row), "{row}");
        for outcome in Outcome::ALL {
            let retried = is_retried(outcome, None, Some(Code::NotFound));
            let row = format!("| `{outcome}` | always |");
            assert_eq!(PAGE.contains(&row), retried, "{row}");
        }
    }

    #[test]
    fn a_limit_counts_retries_and_not_attempts() {
        let policy = RetryPolicy {
            limit: 2,
            backoff: Backoff::None,
        };
        let again = |number| policy.permits(number, Outcome::Refused, None, None);
        assert_eq!([1, 2, 3].map(again), [true, true, false]);
    }

    #[test]
    fn the_status_decides_about_a_complete_reply() {
        for (outcome, status, again) in [
            (Outcome::StatusError, 503, true),
            (Outcome::StatusError, 404, false),
            (Outcome::StatusError, 501, false),
            (Outcome::SoapFault, 500, true),
            (Outcome::SoapFault, 200, false),
        ] {
            assert_eq!(
                is_retried(outcome, Some(status), None),
                again,
                "{outcome} {status}"
            );
        }
    }
}
