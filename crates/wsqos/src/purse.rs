//! Who gets what can be afforded: a purse that fills with the allowance and pays for optional replies.
//!
//! An allowance of processor time, not a share of replies: when twice as many requests come, each gets
//! half the chance at once, before any sample has shown it, and long replies pay for their length. Paying
//! is even: one reply in so many, no dice and no bursts. A purse may be overdrawn by one reply, whose time
//! it then saves up, so that replies dearer than a purse ever holds have their turn, too.

use posthaste_units::{Instant, Span};

use crate::demand::{Outlook, Work};
use crate::reason::Reason;
use crate::wish::Wish;

/// A purse holds at most what comes in within this time: it bounds the burst of compressing that a lull
/// saves up, and with it what others wait behind it.
const HOLDS: Span = Span::from_millis(50);

/// The part that is kept for clients who said "if possible": who said nothing comes after them.
const KEPT: f64 = 0.25;

/// What is paid in advance for one reply at most; the rest of a long one is paid as it is spent.
const ADVANCE: Span = Span::from_millis(10);

/// Deepest debt: a reply of a gigabyte must not shut out all others for long after it.
const DEBT: Span = Span::from_millis(200);

/// A purse stays shut while its thread has been busy without a pause for so long, or for twenty times the
/// price of the reply: what has piled up is served plain first. Samples come too seldom to see it.
const BACKLOG: Span = Span::from_millis(20);
const BACKLOG_IN_PRICES: u64 = 20;

/// One thread's purse.
#[derive(Clone, Debug)]
pub struct Purse {
    /// Nanoseconds of processor time; below zero it is in debt.
    holds: f64,
    /// What it holds at most, as of the last filling.
    most: f64,
    /// This purse's part of the allowance, 0 to 1.
    part: f64,
    filled: Option<Instant>,
    work: Work,
}

/// What was paid for a reply and what it took so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bill {
    paid: Span,
    spent: Span,
}

impl Purse {
    /// An empty purse, one of `purses` that share the allowance evenly.
    pub fn new(purses: usize) -> Self {
        Self {
            holds: 0.0,
            most: 0.0,
            part: 1.0 / purses.max(1) as f64,
            filled: None,
            work: Work::default(),
        }
    }

    /// Optional work so far, for [`Sample::work`](crate::Sample::work): the sum over all purses.
    pub const fn work(&self) -> Work {
        self.work
    }

    /// Takes in what has come since the last time.
    pub(crate) fn fill(&mut self, now: Instant, outlook: &Outlook) {
        let income = f64::from(outlook.allowance) * self.part;
        let passed = self.filled.map_or(HOLDS, |filled| now.since(filled));
        self.filled = Some(now);
        self.most = income * HOLDS.as_nanos() as f64;
        self.holds = (self.holds + income * passed.as_nanos() as f64).min(self.most);
    }

    /// How full the purse is for clients with this wish, 0 to 1; it pays above 0.
    pub(crate) fn fullness(&self, wish: Wish) -> f64 {
        let kept = if wish == Wish::Unstated { KEPT } else { 0.0 };
        let full = self.holds / self.most.max(1.0);
        ((full - kept) / (1.0 - kept)).max(0.0)
    }

    /// Pays for a reply whose client left it open, out of a purse just filled; the reason where it does not.
    ///
    /// `cheapest` is what the reply's cheapest step would take, `price` that of the step that is meant.
    pub(crate) fn pay(
        &mut self,
        wish: Wish,
        backlog: Span,
        cheapest: Span,
        price: Span,
    ) -> Result<Bill, Reason> {
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
        Ok(Bill {
            paid,
            spent: Span::ZERO,
        })
    }

    /// Takes notice of processor time spent on a reply that was paid for, as often as is convenient.
    pub fn spend(&mut self, bill: &mut Bill, time: Span) {
        let before = bill.spent.max(bill.paid);
        bill.spent += time;
        self.work.spent += time;
        let beyond = bill.spent.saturating_sub(before).as_nanos() as f64;
        self.holds = (self.holds - beyond).max(-(DEBT.as_nanos() as f64));
    }

    /// Ends a reply: what it did not take is given back.
    pub fn close(&mut self, bill: Bill) {
        self.holds += bill.paid.saturating_sub(bill.spent).as_nanos() as f64;
    }
}
