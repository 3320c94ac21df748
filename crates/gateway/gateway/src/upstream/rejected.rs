//! Rejections for requests that no upstream answers, with advice about a retry.

use posthaste_units::Span;

use super::Upstreams;
use super::error::UpstreamError;
use crate::error::Rejection;
use crate::retry_after::advice;

impl Upstreams {
    /// Turns a failure into a rejection. If every upstream is excluded, it states when the first may return. A failed
    /// attempt (502, 504) is no rejection and says nothing about the next.
    pub(crate) fn rejection(&self, failure: UpstreamError) -> Rejection {
        let is_excluded = failure.is_exclusion();
        let mut rejection = Rejection::from(failure);
        if is_excluded {
            let first = self.members.first_return();
            let first = first.map_or(Span::ZERO, Span::from);
            rejection.fields.push(("retry-after", advice(first)));
        }
        rejection
    }
}
