//! Counts of requests by outcome, for rates and percentiles.

/// Requests by outcome, since the start or in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    /// Replies with a status below 400.
    pub(crate) succeeded: u64,
    /// Replies 4xx, without those of admission.
    pub(crate) client_errors: u64,
    /// Requests that admission refused.
    pub(crate) refused: u64,
    /// Replies 5xx, without those of admission.
    pub(crate) server_errors: u64,
    /// Requests without a reply: the client left, or its connection was ended.
    pub(crate) cancelled: u64,
    /// Admitted requests of [`server_errors`](Self::server_errors) and [`cancelled`](Self::cancelled).
    pub(crate) failed: u64,
}

impl Outcomes {
    /// Requests, answered or not.
    pub(crate) const fn requests(&self) -> u64 {
        self.succeeded + self.client_errors + self.refused + self.server_errors + self.cancelled
    }

    /// The growth since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let growth = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            succeeded: growth(self.succeeded, earlier.succeeded),
            client_errors: growth(self.client_errors, earlier.client_errors),
            refused: growth(self.refused, earlier.refused),
            server_errors: growth(self.server_errors, earlier.server_errors),
            cancelled: growth(self.cancelled, earlier.cancelled),
            failed: growth(self.failed, earlier.failed),
        }
    }

    /// Adds the counts of another interval.
    pub(crate) fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.client_errors += other.client_errors;
        self.refused += other.refused;
        self.server_errors += other.server_errors;
        self.cancelled += other.cancelled;
        self.failed += other.failed;
    }
}
