//! Accounts with budgets, as one gateway sees them.
//!
//! A broker keeps the budgets. The gateway charges requests at once and reports the charges later, in numbered batches:
//!
//! 1. [`Accounts::hold`] reserves the price of a request before it is forwarded. [`Accounts::charge`] turns it into a
//!    charge, [`Accounts::release`] gives it back.
//! 2. [`Accounts::seal`] collects the charges of all accounts in a batch. The same batch is returned until
//!    [`Accounts::acknowledge`].
//! 3. [`Accounts::apply`] takes over what the broker states about accounts, such as the charges of other gateways.
//!
//! # Bounds
//!
//! Held, charged and not acknowledged money of an account is at most `unreported`, and at most the rest of its budget
//! by the last reply of the broker. Therefore:
//!
//! - A gateway that is killed loses at most `unreported` of each account.
//! - A single gateway never exceeds a budget. `n` gateways exceed it together by at most `n - 1` times `unreported`. A
//!   change of the budget or the period counts from the next reply on.
//! - Without the broker an account spends up to `unreported`, and then counts as without budget.
//!
//! Time is the monotonic clock of the gateway. The broker states the time until a period ends.

mod balance;
mod entry;
mod key;
mod outbox;

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_qos::{Currency, Money};
use posthaste_units::{Instant, Span};

pub use self::key::{KeyHasher, KeyTag};
pub use self::outbox::{Charge, ChargeBatch};

use self::balance::Balance;
use self::entry::Entry;
use self::outbox::Outbox;
use super::Amount;

/// Maximum number of accounts in a batch.
pub const MOST_CHARGES: usize = 1_000;

/// The accounts of one gateway.
#[derive(Debug)]
pub struct Accounts {
    currency: Currency,
    /// Bound of held, charged and not acknowledged money of each account, in millionths.
    unreported: u64,
    hasher: KeyHasher,
    entries: Vec<Entry>,
    by_name: HashMap<Arc<str>, u32>,
    /// By the first bytes of the tag of their key.
    by_key: HashMap<u64, u32>,
    by_subject: HashMap<Arc<str>, u32>,
    outbox: Outbox,
    /// Version of the broker's accounts in use. 0 before the first reply.
    known: u64,
    is_complete: bool,
    /// Some accounts may be unstated since [`Accounts::restart`].
    has_unstated: bool,
}

/// An identified account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountHandle {
    /// Name of the account.
    pub name: Arc<str>,
    slot: u32,
}

/// Money reserved for one request. Pass it to [`Accounts::charge`] or [`Accounts::release`]; otherwise it stays
/// reserved.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "reserved money is charged or released"]
pub struct Hold {
    slot: u32,
    micros: u64,
}

impl Hold {
    /// The reserved money.
    pub const fn amount(&self) -> Amount {
        Amount::from_micros(self.micros)
    }
}

/// Money of an account to pay for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFunds {
    /// Money that can be held now.
    pub left: Amount,
    /// Accepted price of requests that state none.
    pub max_price: Option<Money>,
}

/// An account as defined by the broker or by the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name.
    pub name: String,
    /// SHA-256 digest of its API key.
    pub key: Option<[u8; 32]>,
    /// Subject of its certificate.
    pub subject: Option<String>,
    /// Its budget. `None` for accounts of the configuration.
    pub budget: Option<Budget>,
    /// A closed account identifies no request.
    pub is_closed: bool,
}

/// Money of an account, as stated by the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Money for one period.
    pub amount: Money,
    /// Length of a period.
    pub period: Span,
    /// Booked charges of the current period.
    pub spent: Money,
    /// Time until the current period ends.
    pub ends_in: Span,
    /// Accepted price of requests that state none.
    pub max_price: Option<Money>,
}

/// Sums over all accounts, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Accounts that are not closed.
    pub open: usize,
    /// Held, charged and not acknowledged money.
    pub pending: Amount,
}

impl Accounts {
    /// Creates an empty set. Prices are in `currency`. `unreported` bounds the charges that the broker has not
    /// acknowledged, for each account. `hasher` has a random key of this process.
    pub fn new(currency: Currency, unreported: Amount, hasher: KeyHasher) -> Self {
        Self {
            currency,
            unreported: unreported.micros(),
            hasher,
            entries: Vec::new(),
            by_name: HashMap::new(),
            by_key: HashMap::new(),
            by_subject: HashMap::new(),
            outbox: Outbox::default(),
            known: 0,
            is_complete: false,
            has_unstated: false,
        }
    }

    /// Currency of the prices.
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Version of the broker's accounts in use. 0 before the first reply.
    pub const fn known(&self) -> u64 {
        self.known
    }

    /// True once all accounts of the broker are known.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Finds the account of a key. The time depends on no stored digest: the search uses tags under a secret key, and
    /// the tag is compared in constant time, with that of no account if there is none.
    pub fn with_key(&self, tag: &KeyTag) -> Option<AccountHandle> {
        let slot = self.by_key.get(&tag.prefix()).copied();
        let entry = slot.and_then(|slot| self.entries.get(slot as usize));
        let stored = entry.and_then(|entry| entry.tag.as_ref());
        let is_same = stored.unwrap_or(self.hasher.of_no_key()) == tag;
        let found = is_same.then_some(slot).flatten()?;
        Some(self.handle(found))
    }

    /// Finds the account of a certificate's subject.
    pub fn with_subject(&self, subject: &str) -> Option<AccountHandle> {
        let slot = self.by_subject.get(subject)?;
        Some(self.handle(*slot))
    }

    /// Money of an account, or `None` if it has no budget in the currency of the prices.
    pub fn means(&self, now: Instant, account: &AccountHandle) -> Option<AccountFunds> {
        let entry = &self.entries[account.slot as usize];
        let balance = entry.balance.as_ref()?;
        Some(AccountFunds {
            left: Amount::from_micros(balance.left(now, self.unreported)),
            max_price: balance.max_price,
        })
    }

    /// Reserves money for a request, if so much is left.
    pub fn hold(&mut self, now: Instant, account: &AccountHandle, amount: Amount) -> Option<Hold> {
        let (slot, micros) = (account.slot, amount.micros());
        let balance = self.entries[slot as usize].balance.as_mut()?;
        if balance.left(now, self.unreported) < micros {
            return None;
        }
        balance.held += micros;
        debug_assert!(
            balance.pending() <= self.unreported,
            "more is held than the bound"
        );
        Some(Hold { slot, micros })
    }

    /// Name of the account from which money is reserved.
    pub fn name_of(&self, hold: &Hold) -> &str {
        &self.entries[hold.slot as usize].name
    }

    /// Charges reserved money. Returns true if the account has charged half of its bound since the last batch, so that
    /// a report is due.
    pub fn charge(&mut self, hold: Hold) -> bool {
        let Hold { slot, micros } = hold;
        let balance = self.entries[slot as usize].held_from();
        balance.held -= micros;
        if balance.requests == 0 {
            self.outbox.add(slot);
        }
        balance.charged += micros;
        balance.requests += 1;
        balance.charged >= self.unreported / 2
    }

    /// Gives reserved money back.
    pub fn release(&mut self, hold: Hold) {
        self.entries[hold.slot as usize].held_from().held -= hold.micros;
    }

    /// Returns the batch to report: the last one while it is not acknowledged, otherwise a new one of at most
    /// [`MOST_CHARGES`] accounts. The first batch is empty. Without charges it is empty, too, and has the number of the
    /// last acknowledged batch.
    pub fn seal(&mut self) -> ChargeBatch {
        let (entries, currency) = (&mut self.entries, self.currency);
        self.outbox.seal(|slot| {
            let entry = &mut entries[slot as usize];
            let name = entry.name.clone();
            let balance = entry.held_from();
            let (micros, requests) = balance.seal();
            Charge {
                account: name,
                amount: Amount::from_micros(micros).to_money(currency),
                requests,
                slot,
            }
        })
    }

    /// Takes over that the broker has booked the batch of this number. Repetitions have no effect.
    pub fn acknowledge(&mut self, now: Instant, sequence: u64) {
        for charge in self.outbox.acknowledge(sequence) {
            let balance = self.entries[charge.slot as usize].held_from();
            balance.acknowledge(now, charge.amount.micros());
        }
    }

    /// Begins a new life at a broker that cannot tell if it has booked the pending batch. Returns that batch, whose
    /// charges may be lost. They count as spent until the broker states otherwise. It states all accounts next, and
    /// those that it omits are closed.
    pub fn restart(&mut self, now: Instant) -> Option<ChargeBatch> {
        let lost = self.outbox.restart();
        for charge in lost.iter().flat_map(|batch| &batch.charges) {
            let balance = self.entries[charge.slot as usize].held_from();
            balance.acknowledge(now, charge.amount.micros());
        }
        for entry in &mut self.entries {
            entry.is_unstated = !entry.is_configured;
        }
        (self.known, self.has_unstated) = (0, true);
        lost
    }

    /// Takes over definitions from the broker, as of the version `known`. `more` is true if others follow. Accounts of
    /// the configuration keep their names. Returns the number of definitions that are ignored because of that.
    pub fn apply(
        &mut self,
        now: Instant,
        definitions: Vec<Definition>,
        known: u64,
        more: bool,
    ) -> usize {
        let mut ignored = 0;
        for definition in definitions {
            let slot = self.by_name.get(&*definition.name);
            if slot.is_some_and(|slot| self.entries[*slot as usize].is_configured) {
                ignored += 1;
            } else {
                self.define(now, definition, false);
            }
        }
        self.known = known;
        self.is_complete |= !more;
        if !more && std::mem::take(&mut self.has_unstated) {
            self.close_unstated(now);
        }
        ignored
    }

    /// Sets the accounts of the configuration, which have no budgets. Earlier ones that are absent are closed.
    pub fn configure(&mut self, now: Instant, definitions: Vec<Definition>) {
        let mut absent: Vec<u32> = (0..self.entries.len() as u32)
            .filter(|slot| self.entries[*slot as usize].is_configured)
            .collect();
        for definition in definitions {
            let slot = self.define(now, definition, true);
            absent.retain(|other| *other != slot);
        }
        for slot in absent {
            self.close(now, slot);
            // The broker may have an account of that name, which is read again.
            self.known = 0;
        }
    }

    /// True if the broker has acknowledged every charge.
    pub fn is_reported(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sums over all accounts.
    pub fn totals(&self) -> Totals {
        let pending = self
            .entries
            .iter()
            .filter_map(|entry| entry.balance.as_ref());
        let pending: u64 = pending.map(Balance::pending).sum();
        Totals {
            open: self.entries.iter().filter(|entry| !entry.is_closed).count(),
            pending: Amount::from_micros(pending),
        }
    }

    fn handle(&self, slot: u32) -> AccountHandle {
        AccountHandle {
            name: self.entries[slot as usize].name.clone(),
            slot,
        }
    }

    /// Adds or replaces an account. What it has pending stays. Returns its slot.
    fn define(&mut self, now: Instant, definition: Definition, is_configured: bool) -> u32 {
        let Definition {
            name,
            key,
            subject,
            budget,
            is_closed,
        } = definition;
        let slot = match self.by_name.get(&*name) {
            Some(slot) => *slot,
            None => self.add(name.into()),
        };
        let entry = &mut self.entries[slot as usize];
        let budget = budget.filter(|budget| budget.amount.currency() == self.currency);
        entry.set_budget(now, budget);
        (entry.is_closed, entry.is_configured) = (is_closed, is_configured);
        entry.is_unstated = false;
        let (key, subject) = if is_closed {
            (None, None)
        } else {
            (key, subject)
        };
        if entry.key != key || entry.subject.as_deref() != subject.as_deref() {
            self.forget(slot);
            self.identify_by(slot, key, subject.map(Arc::from));
        }
        slot
    }

    /// Closes the accounts that a broker no longer has, as one whose store was replaced. It would refuse their charges.
    fn close_unstated(&mut self, now: Instant) {
        for slot in 0..self.entries.len() as u32 {
            if self.entries[slot as usize].is_unstated {
                self.close(now, slot);
            }
        }
    }

    /// Closes an account. What it has pending stays.
    fn close(&mut self, now: Instant, slot: u32) {
        self.forget(slot);
        let entry = &mut self.entries[slot as usize];
        entry.set_budget(now, None);
        (entry.is_closed, entry.is_configured) = (true, false);
        entry.is_unstated = false;
    }

    fn add(&mut self, name: Arc<str>) -> u32 {
        let slot = self.entries.len() as u32;
        self.by_name.insert(name.clone(), slot);
        self.entries.push(Entry::new(name));
        slot
    }

    /// Sets the means by which an account is identified.
    fn identify_by(&mut self, slot: u32, key: Option<[u8; 32]>, subject: Option<Arc<str>>) {
        let tag = key.map(|digest| self.hasher.of_digest(&digest));
        if let Some(tag) = &tag {
            self.by_key.insert(tag.prefix(), slot);
        }
        if let Some(subject) = &subject {
            self.by_subject.insert(subject.clone(), slot);
        }
        let entry = &mut self.entries[slot as usize];
        (entry.key, entry.tag, entry.subject) = (key, tag, subject);
    }

    /// Removes the means by which an account is identified.
    fn forget(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        entry.key = None;
        let (tag, subject) = (entry.tag.take(), entry.subject.take());
        if let Some(tag) = tag
            && self.by_key.get(&tag.prefix()) == Some(&slot)
        {
            self.by_key.remove(&tag.prefix());
        }
        if let Some(subject) = subject
            && self.by_subject.get(&subject) == Some(&slot)
        {
            self.by_subject.remove(&subject);
        }
    }
}
