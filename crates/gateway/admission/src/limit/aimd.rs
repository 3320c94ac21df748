//! `aimd`: additive increase, multiplicative decrease, as in TCP's congestion avoidance (RFC 5681).

use posthaste_units::{Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round::Round;
use crate::parameter::{WrongParameter, positive, within};

/// Parameters of `aimd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Aimd {
    /// Time after which a reply counts as a failure. Above 0.
    pub timeout: Span,
    /// Remaining share of the limit after a round with a failure. 10 % to 99 %.
    pub backoff: Ratio,
}

impl Default for Aimd {
    fn default() -> Self {
        Self {
            timeout: Span::from_secs(1),
            backoff: Ratio::new(0.9).unwrap_or_default(),
        }
    }
}

impl Aimd {
    pub(super) fn check(&self) -> Result<(), WrongParameter> {
        positive("timeout", !self.timeout.is_zero())?;
        within("backoff", self.backoff.get(), 0.1, 0.99)
    }

    /// The limit after a round.
    pub(super) fn close(&self, round: &Round, limit: f64) -> f64 {
        if round.failed > 0 || round.longest > self.timeout {
            limit * self.backoff.get()
        } else if round.was_needed(limit) {
            limit + 1.0
        } else {
            limit
        }
    }
}
