//! Money of one account: the budget by the last reply of the broker, and what has happened here since.
//!
//! Money of a request passes through `held`, `charged`, `sealed` and `spent`, in this order. All amounts are in
//! millionths.

use posthaste_qos::Money;
use posthaste_units::{Instant, Span};

use super::Budget;

/// Money of one account.
#[derive(Debug, Default)]
pub(super) struct Balance {
    /// Money for one period.
    budget: u64,
    period: Span,
    /// Booked in the current period, by all gateways.
    spent: u64,
    /// End of the current period.
    ends: Instant,
    pub(super) max_price: Option<Money>,
    /// Reserved for requests in service.
    pub(super) held: u64,
    /// Charged since the last batch.
    pub(super) charged: u64,
    /// Requests charged since the last batch.
    pub(super) requests: u64,
    /// In the batch that is not acknowledged.
    sealed: u64,
}

impl Balance {
    /// Takes over the state at the broker.
    pub(super) fn set(&mut self, now: Instant, budget: &Budget) {
        let Budget {
            amount,
            period,
            spent,
            ends_in,
            max_price,
        } = budget;
        self.budget = amount.micros();
        self.period = *period;
        self.spent = spent.micros();
        self.ends = now + *ends_in;
        self.max_price = *max_price;
    }

    /// Leaves no money. Pending charges stay.
    pub(super) fn end(&mut self) {
        self.budget = 0;
    }

    /// Held, charged and not acknowledged.
    pub(super) const fn pending(&self) -> u64 {
        self.held + self.charged + self.sealed
    }

    /// Money that can be held, within the bound `unreported`.
    pub(super) fn left(&self, now: Instant, unreported: u64) -> u64 {
        let spent = if now < self.ends { self.spent } else { 0 };
        let most = self.budget.saturating_sub(spent).min(unreported);
        most.saturating_sub(self.pending())
    }

    /// Moves the charges into a batch. Returns their sum and the number of requests.
    pub(super) fn seal(&mut self) -> (u64, u64) {
        debug_assert_eq!(
            self.sealed, 0,
            "a batch is sealed before the last one is acknowledged"
        );
        self.sealed = std::mem::take(&mut self.charged);
        (self.sealed, std::mem::take(&mut self.requests))
    }

    /// Counts a batch as spent.
    pub(super) fn acknowledge(&mut self, now: Instant, micros: u64) {
        debug_assert_eq!(
            self.sealed, micros,
            "another batch is acknowledged than was sealed"
        );
        self.sealed = 0;
        if now >= self.ends {
            // The broker books it in the period that has begun since. Its reply states the end.
            (self.spent, self.ends) = (0, now + self.period);
        }
        self.spent = self.spent.saturating_add(micros);
    }
}
