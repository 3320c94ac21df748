//! CPU token bucket: filled at the rate of the allowance, pays for optional compression.
//!
//! A budget of CPU time, not a share of replies. When the request rate doubles, each reply gets half the chance at
//! once, before any sample shows it. Long replies are charged by their cost. Accepted replies are spread evenly,
//! without random numbers and bursts. The bucket may be overdrawn by one reply and saves up for it afterwards, so that
//! replies that cost more than a full bucket are compressed, too.

use posthaste_units::{Instant, Span};

use crate::load_controller::{LoadEstimate, Work};
use crate::reason::Reason;
use crate::wish::Wish;

/// Capacity of the bucket, as filling time. It bounds the burst of compression after a pause, and with it the delay of
/// other replies.
const HOLDS: Span = Span::from_millis(50);

/// Part of the capacity reserved for clients that said "if possible". Clients without a preference get only the rest.
const KEPT: f64 = 0.25;

/// Maximum amount reserved in advance for one reply. The rest of a long one is charged as it is used.
const ADVANCE: Span = Span::from_millis(10);

/// Maximum debt. A reply of a gigabyte must not stop all other compression for long.
const DEBT: Span = Span::from_millis(200);

/// A bucket pays nothing if its thread has been busy without a pause for longer than this, or for longer than twenty
/// times the cost of the reply. The backlog is sent uncompressed first. Samples are too rare to detect a backlog.
const BACKLOG: Span = Span::from_millis(20);
const BACKLOG_IN_PRICES: u64 = 20;

/// CPU token bucket of one thread.
#[derive(Clone, Debug)]
pub struct CpuTokenBucket {
    /// Nanoseconds of CPU time; negative while in debt.
    holds: f64,
    /// Capacity as of the last filling.
    most: f64,
    /// This bucket's share of the allowance, 0 to 1.
    part: f64,
    filled: Option<Instant>,
    work: Work,
}

/// CPU reservation for a reply and the CPU time used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReservation {
    paid: Span,
    spent: Span,
}

impl CpuTokenBucket {
    /// Creates an empty bucket, one of `sharers` that share the allowance evenly.
    pub fn new(sharers: usize) -> Self {
        Self {
            holds: 0.0,
            most: 0.0,
            part: 1.0 / sharers.max(1) as f64,
            filled: None,
            work: Work::default(),
        }
    }

    /// Optional work so far. [`Sample::work`](crate::Sample::work) is the sum over all buckets.
    pub const fn work(&self) -> Work {
        self.work
    }

    /// Adds the allowance since the last call.
    pub(crate) fn fill(&mut self, now: Instant, estimate: &LoadEstimate) {
        let income = f64::from(estimate.allowance) * self.part;
        let passed = self
            .filled
            .map_or(HOLDS, |filled| now.saturating_since(filled));
        self.filled = Some(now);
        self.most = income * HOLDS.as_nanos() as f64;
        self.holds = (self.holds + income * passed.as_nanos() as f64).min(self.most);
        debug_assert!(self.most >= 0.0, "an allowance below 0");
    }

    /// Fill level for clients with this preference, 0 to 1. The bucket pays if it is above 0.
    pub(crate) fn fullness(&self, wish: Wish) -> f64 {
        let kept = if wish == Wish::Unstated { KEPT } else { 0.0 };
        let full = self.holds / self.most.max(1.0);
        ((full - kept) / (1.0 - kept)).max(0.0)
    }

    /// Reserves CPU time for an optional reply, or returns the reason against it. Call [`CpuTokenBucket::fill`] before.
    ///
    /// `cheapest` is the cost of the reply's cheapest step, `price` that of the chosen step.
    pub(crate) fn try_reserve(
        &mut self,
        wish: Wish,
        backlog: Span,
        cheapest: Span,
        price: Span,
    ) -> Result<CpuReservation, Reason> {
        debug_assert!(cheapest <= price, "{cheapest} is not the cheapest step");
        self.work.wanted += cheapest;
        let patience = price.as_nanos().saturating_mul(BACKLOG_IN_PRICES);
        if backlog > BACKLOG.max(Span::from_nanos(patience)) {
            return Err(Reason::Backlog);
        }
        if self.fullness(wish) == 0.0 {
            return Err(Reason::DemandHigh);
        }
        let paid = price.min(ADVANCE);
        self.holds -= paid.as_nanos() as f64;
        Ok(CpuReservation {
            paid,
            spent: Span::ZERO,
        })
    }

    /// Charges CPU time used for a reply with a reservation. May be called repeatedly.
    pub fn spend(&mut self, reservation: &mut CpuReservation, time: Span) {
        let before = reservation.spent.max(reservation.paid);
        reservation.spent += time;
        self.work.spent += time;
        let beyond = reservation.spent.saturating_sub(before).as_nanos() as f64;
        self.holds = (self.holds - beyond).max(-(DEBT.as_nanos() as f64));
    }

    /// Ends a reply and returns the unused part of its reservation to the bucket.
    pub fn settle(&mut self, reservation: CpuReservation) {
        self.holds += reservation
            .paid
            .saturating_sub(reservation.spent)
            .as_nanos() as f64;
    }
}
