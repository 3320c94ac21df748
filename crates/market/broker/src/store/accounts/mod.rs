//! Accounts in a store: definitions, money spent in the current period, and booked charges.
//!
//! One transaction books a batch of charges. [`plan`] decides its effect, the same for every store. Each change of an
//! account gets the next version, so that gateways can ask for the accounts changed since one.

pub(crate) mod plan;

use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, AccountState, ChargeQuery, ChargeRecord, ChargeReport, Hex, NewAccount,
};
use posthaste_qos::{Currency, Money};
use posthaste_units::Span;

use super::StoreError;

/// Maximum number of accounts in the reply to a report.
pub(crate) const PAGE: usize = 1_000;

/// Time after which a gateway that has not reported is forgotten, in microseconds: 30 days.
pub(crate) const GATEWAY_LIFE: i64 = 30 * 24 * 3_600 * 1_000_000;

/// Minimum time between two updates of a gateway that reports nothing, in microseconds: an hour.
pub(crate) const SEEN_AGAIN: i64 = 3_600 * 1_000_000;

/// Accounts and charges of a store.
pub(crate) trait AccountStore {
    /// Returns an account.
    fn account(&mut self, name: &str) -> Result<Option<StoredAccount>, StoreError>;

    /// Returns at most `limit` accounts by name, after the name `after`.
    fn accounts(&mut self, after: &str, limit: usize) -> Result<Vec<StoredAccount>, StoreError>;

    /// Adds an account, if there are fewer than `most`.
    fn add_account(
        &mut self,
        new: &NewAccount,
        now: Timestamp,
        most: usize,
    ) -> Result<AccountOutcome, StoreError>;

    /// Changes an open account.
    fn change_account(
        &mut self,
        name: &str,
        change: &AccountChange,
        now: Timestamp,
    ) -> Result<AccountOutcome, StoreError>;

    /// Closes an open account and forgets its key and certificate.
    fn close_account(&mut self, name: &str, now: Timestamp) -> Result<AccountOutcome, StoreError>;

    /// Books a report of the bearer of `token` in one transaction, once. After an error it may or may not have been
    /// booked.
    fn report(
        &mut self,
        report: &ChargeReport,
        token: u64,
        now: Timestamp,
    ) -> Result<ReportOutcome, StoreError>;

    /// Returns booked charges by number.
    fn charges(&mut self, query: &ChargeQuery) -> Result<Vec<ChargeRecord>, StoreError>;

    /// Counts accounts by their state at `now`.
    fn count_accounts(&mut self, now: Timestamp) -> Result<AccountCounts, StoreError>;

    /// Deletes up to [`AT_ONCE`](super::AT_ONCE) charges older than the last `keep`, and forgotten gateways. Returns
    /// true if there may be more.
    fn tidy_accounts(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError>;
}

/// An account as stored. Amounts are in millionths of its currency, times in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAccount {
    pub(crate) name: String,
    pub(crate) key: Option<[u8; 32]>,
    pub(crate) certificate: Option<String>,
    pub(crate) currency: Currency,
    pub(crate) budget: i64,
    /// Length of a period in microseconds.
    pub(crate) period: i64,
    pub(crate) max_price: Option<i64>,
    pub(crate) made: i64,
    pub(crate) closed: Option<i64>,
    /// Number of the period of `spent`, from 1970.
    pub(crate) spent_in: i64,
    pub(crate) spent: i64,
}

/// Outcome of a change of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccountOutcome {
    /// Stored.
    Made(Box<StoredAccount>),
    /// There is an account of that name, open or closed.
    Exists,
    /// There is no account of that name.
    Absent,
    /// The account is closed.
    Closed,
    /// Another account has the key.
    KeyTaken,
    /// Another account has the certificate's subject.
    CertificateTaken,
    /// The new money has another currency than the account.
    OtherCurrency(Currency),
    /// The limit on accounts is reached.
    Full,
}

/// Outcome of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportOutcome {
    /// The batch is booked, now or by an earlier report.
    Booked {
        /// Booked by an earlier report.
        is_repeated: bool,
        /// Version of the accounts after these.
        known: u64,
        /// Further accounts have changed.
        more: bool,
        /// Accounts changed since the version in the report.
        accounts: Vec<StoredAccount>,
    },
    /// The batch is not the next one of a known gateway. Nothing is booked.
    Unknown,
    /// A charge is to an account that does not exist or has another currency. Nothing is booked.
    Wrong(String),
}

/// Numbers of accounts, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountCounts {
    pub(crate) open: u64,
    pub(crate) closed: u64,
    /// Open accounts that have spent more than their budget in the current period.
    pub(crate) overdrawn: u64,
}

impl StoredAccount {
    /// A new account.
    pub(super) fn new(new: &NewAccount, now: Timestamp) -> Self {
        let (now, period) = (now.as_microsecond(), micros_of(new.period));
        Self {
            name: new.name.clone(),
            key: new.key_sha256.map(|digest| digest.0),
            certificate: new.certificate.clone(),
            currency: new.budget.currency(),
            budget: new.budget.micros() as i64,
            period,
            max_price: new.max_price.map(|price| price.micros() as i64),
            made: now,
            closed: None,
            spent_in: plan::period_at(now, period),
            spent: 0,
        }
    }

    /// The account as shown at `now`.
    pub(crate) fn state(&self, now: Timestamp) -> AccountState {
        let now = now.as_microsecond();
        let current = plan::period_at(now, self.period).max(self.spent_in);
        let ends = (current + 1).saturating_mul(self.period);
        let spent = plan::spent_at(self, now);
        AccountState {
            name: self.name.clone(),
            key_sha256: self.key.map(Hex),
            certificate: self.certificate.clone(),
            budget: money(self.budget, self.currency),
            period: Span::from_micros(self.period.unsigned_abs()),
            max_price: self.max_price.map(|price| money(price, self.currency)),
            spent: money(spent, self.currency),
            period_ends_in_ms: (ends.saturating_sub(now).max(0).unsigned_abs()).div_ceil(1_000),
            made: time(self.made),
            closed: self.closed.map(time),
        }
    }
}

/// Length of a period in microseconds.
pub(super) fn micros_of(period: Span) -> i64 {
    i64::try_from(period.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

/// Time of so many microseconds since 1970.
pub(super) fn time(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

/// A stored amount. One beyond what money can be, as after many overdrafts, is shown as the largest amount.
pub(super) fn money(micros: i64, currency: Currency) -> Money {
    let largest = 999_999_999_999_999_999;
    let micros = micros.unsigned_abs().min(largest);
    Money::from_micros(micros, currency).expect("the largest amount is money")
}
