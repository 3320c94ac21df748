//! Accounts of clients: identity, payment, and reports of charges to the broker.
//!
//! All threads share the accounts. A request with a key takes their lock once to be identified; one that pays takes it
//! twice more, each time for a few map lookups. The tag of its key is computed outside of the lock. Reports are made by
//! a thread of their own ([`report_loop`]).

pub(crate) mod counters;
pub(crate) mod payment;
pub(crate) mod report_loop;
mod wrong_keys;

use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_admission::accounts::{AccountHandle, Accounts, KeyHasher, KeyTag};
use posthaste_gateway_config::{AccountsConfig, GatewayConfig};
use posthaste_serve::environment;
use tokio::sync::Notify;

use self::counters::AccountCounters;
use self::payment::Paying;
use self::wrong_keys::WrongKeys;
use crate::clock::now;

/// The accounts of a gateway. Empty without configuration.
#[derive(Debug)]
pub(crate) struct GatewayAccounts {
    accounts: Mutex<Accounts>,
    hasher: KeyHasher,
    /// A report is due before its time.
    due: Notify,
    pub(crate) wrong_keys: WrongKeys,
    pub(crate) counters: AccountCounters,
}

/// An unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownKey {
    /// No account has it.
    Wrong,
    /// The broker's accounts are not known yet.
    NotKnownYet,
}

impl GatewayAccounts {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let settings = config.accounts.clone().unwrap_or_default();
        let prices = config.prices.clone().unwrap_or_default();
        let key = environment::random("tags of keys");
        let hasher = KeyHasher::new(&key.expect("the system's random numbers"));
        let mut accounts = Accounts::new(prices.currency, settings.unreported, hasher.clone());
        accounts.configure(now(), settings.definitions());
        Self {
            accounts: Mutex::new(accounts),
            hasher,
            due: Notify::new(),
            wrong_keys: WrongKeys::default(),
            counters: AccountCounters::default(),
        }
    }

    /// Replaces the accounts of the configuration.
    pub(crate) fn change(&self, config: Option<&AccountsConfig>) {
        let definitions = config.map(AccountsConfig::definitions).unwrap_or_default();
        self.lock().configure(now(), definitions);
        self.due.notify_one();
    }

    /// Finds the account of a key, in a time that tells nothing about stored digests.
    pub(crate) fn with_key(
        &self,
        config: &AccountsConfig,
        key: &[u8],
    ) -> Result<AccountHandle, UnknownKey> {
        let tag: KeyTag = self.hasher.of_key(key);
        let accounts = self.lock();
        let (found, is_complete) = (accounts.with_key(&tag), accounts.is_complete());
        drop(accounts);
        self.counters.key(found.is_some());
        found.ok_or(if config.broker.is_some() && !is_complete {
            UnknownKey::NotKnownYet
        } else {
            UnknownKey::Wrong
        })
    }

    /// Finds the account of a verified certificate's subject.
    pub(crate) fn with_subject(&self, subject: &str) -> Option<AccountHandle> {
        self.lock().with_subject(subject)
    }

    /// Means of payment of a request of `account`. Without configured accounts every statement about prices is
    /// believed.
    pub(crate) const fn paying<'a>(
        &'a self,
        is_configured: bool,
        account: Option<&'a AccountHandle>,
    ) -> Paying<'a> {
        Paying {
            accounts: self,
            is_configured,
            account,
        }
    }

    /// A panic with the lock held cannot leave the sums inconsistent.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
