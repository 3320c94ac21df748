//! One account: its identity and its money.

use std::sync::Arc;

use posthaste_units::Instant;

use super::Budget;
use super::balance::Balance;
use super::key::KeyTag;

/// An account. It keeps its position, because holds refer to it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    /// SHA-256 digest of its API key.
    pub(super) key: Option<[u8; 32]>,
    pub(super) tag: Option<KeyTag>,
    pub(super) subject: Option<Arc<str>>,
    /// `None` without a budget, now and earlier.
    pub(super) balance: Option<Balance>,
    pub(super) is_closed: bool,
    /// Defined by the configuration, not by the broker.
    pub(super) is_configured: bool,
    /// The broker has not stated it since the gateway began again.
    pub(super) is_unstated: bool,
}

impl Entry {
    pub(super) const fn new(name: Arc<str>) -> Self {
        Self {
            name,
            key: None,
            tag: None,
            subject: None,
            balance: None,
            is_closed: false,
            is_configured: false,
            is_unstated: false,
        }
    }

    /// Sets the budget. Without one, pending charges stay, and nothing is left.
    pub(super) fn set_budget(&mut self, now: Instant, budget: Option<Budget>) {
        match (budget, &mut self.balance) {
            (Some(budget), Some(balance)) => balance.set(now, &budget),
            (Some(budget), none) => none.insert(Balance::default()).set(now, &budget),
            (None, Some(balance)) => balance.end(),
            (None, None) => {}
        }
    }

    /// The money of an account from which something was held.
    pub(super) fn held_from(&mut self) -> &mut Balance {
        let balance = self.balance.as_mut();
        balance.expect("money was held, and a balance is never removed")
    }
}
