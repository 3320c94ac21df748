//! Batches of charges on their way to the broker.
//!
//! The first batch is empty and makes the gateway known to the broker. One batch is under way at a time. It stays the
//! same until it is acknowledged, so that the broker can tell a repetition from a new one by its number.

use std::collections::VecDeque;
use std::sync::Arc;

use posthaste_qos::Money;

use super::MOST_CHARGES;

/// A numbered batch of charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeBatch {
    /// Number, from 1. Of an empty batch, the number of the last acknowledged one, or 0.
    pub sequence: u64,
    /// Charges, one for each account.
    pub charges: Vec<Charge>,
}

/// Charges of one account in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Name of the account.
    pub account: Arc<str>,
    /// Sum of the charges.
    pub amount: Money,
    /// Number of requests.
    pub requests: u64,
    pub(super) slot: u32,
}

/// Accounts with charges to report, and the batch under way.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Accounts with charges since their last batch, in order of the first one.
    charged: VecDeque<u32>,
    /// The broker knows this gateway: it has acknowledged an empty batch, the first one.
    has_begun: bool,
    /// Number of the last acknowledged batch.
    last: u64,
    sealed: Option<ChargeBatch>,
}

impl Outbox {
    /// Adds an account with its first charge since the last batch.
    pub(super) fn add(&mut self, slot: u32) {
        self.charged.push_back(slot);
    }

    /// Returns the batch under way, or makes one of the charges that `take` returns for each account.
    pub(super) fn seal(&mut self, take: impl FnMut(u32) -> Charge) -> ChargeBatch {
        if let Some(sealed) = &self.sealed {
            return sealed.clone();
        }
        let count = self.charged.len().min(MOST_CHARGES);
        if count == 0 || !self.has_begun {
            return ChargeBatch {
                sequence: self.last,
                charges: Vec::new(),
            };
        }
        let batch = ChargeBatch {
            sequence: self.last + 1,
            charges: self.charged.drain(..count).map(take).collect(),
        };
        self.sealed = Some(batch.clone());
        batch
    }

    /// Ends the batch under way if it has this number. Returns its charges.
    pub(super) fn acknowledge(&mut self, sequence: u64) -> Vec<Charge> {
        self.has_begun |= sequence == 0;
        match self.sealed.take_if(|batch| batch.sequence == sequence) {
            Some(batch) => {
                self.last = sequence;
                batch.charges
            }
            None => Vec::new(),
        }
    }

    /// Begins anew with number 1. Returns the batch under way.
    pub(super) fn restart(&mut self) -> Option<ChargeBatch> {
        (self.has_begun, self.last) = (false, 0);
        self.sealed.take()
    }

    /// True if every charge is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.charged.is_empty() && self.sealed.is_none()
    }
}
