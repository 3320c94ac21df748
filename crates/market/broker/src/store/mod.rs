//! Stores: durable storage of the offers, with a log of every change, and of accounts.
//!
//! One thread at a time uses a store. Another kind of store implements [`Store`] and is opened in [`StoreUrl`].
//! [`plan`] decides the effect of writes.

pub(crate) mod accounts;
mod plan;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
mod sqlite;
#[cfg(test)]
pub(crate) mod tests;
mod url;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::Offer;
use posthaste_qos::index::Full;
use thiserror::Error;

pub use self::url::{StoreUrl, StoreUrlError};

use self::accounts::AccountStore;
use crate::change::{OfferChange, OfferGroup, OfferKey, Tag};
use crate::token::{Grant, Hash, TokenRole};

/// A store of offers and accounts.
pub(crate) trait Store: AccountStore + Send {
    /// Passes every offer to `take`, grouped by type and as of one moment. Returns the number of the last change among
    /// them. Some may have expired.
    fn load(&mut self, take: &mut dyn FnMut(OfferKey, Offer)) -> Result<u64, StoreError>;

    /// Stores `writes` durably in one transaction, at `now`. Each write is made completely or not at all, independently
    /// of the others. An error concerns all of them; they may or may not have been stored.
    fn commit(&mut self, writes: &[Write], now: Timestamp)
    -> Result<Vec<WriteOutcome>, StoreError>;

    /// Returns at most `limit` changes after `number`, in order, from all writers.
    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError>;

    /// Returns the newest changes, at most `limit`, newest first, each with the number of the token that made it.
    fn audit(&mut self, limit: usize) -> Result<Vec<(u64, OfferChange)>, StoreError>;

    /// Grants of all valid tokens.
    fn grants(&mut self) -> Result<Vec<Grant>, StoreError>;

    /// All tokens, revoked ones included.
    fn tokens(&mut self) -> Result<Vec<TokenRecord>, StoreError>;

    /// Adds a token for a provider, or for the bearer of another role. Returns its number.
    fn grant(
        &mut self,
        role: TokenRole,
        provider: &str,
        token: Hash,
        now: Timestamp,
    ) -> Result<u64, StoreError>;

    /// Revokes a token. Returns true if it was valid.
    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Deletes up to [`AT_ONCE`] offers that expired at least a minute before `now`, and up to [`AT_ONCE`] changes
    /// older than the last `keep`. Returns true if there may be more.
    fn tidy(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError>;

    /// Registers `wake` for changes by others, if this kind of store notices them.
    fn listen(&mut self, _wake: Wake) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Callback after a change.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

/// Maximum number of offers, and of changes, deleted at once.
const AT_ONCE: usize = 1_000;

/// Tolerance for clocks of other brokers, in which an offer may still be valid.
const CLOCKS: SignedDuration = SignedDuration::from_secs(60);

/// Latest expiry of offers that can be deleted at `now`, in microseconds since 1970.
fn expired_by(now: Timestamp) -> i64 {
    now.as_microsecond() - CLOCKS.as_micros() as i64
}

/// A write of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// Number of the token that made it.
    pub(crate) by: u64,
    /// New content of the offers; `None` to withdraw one.
    pub(crate) changes: Vec<(OfferKey, Option<Offer>)>,
    /// Precondition for each offer.
    pub(crate) only_if: Condition,
    /// Withdraw all other offers of this provider and type. Unchanged offers are then not logged.
    pub(crate) alone: Option<OfferGroup>,
}

/// Precondition of a change (RFC 9110, section 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No condition.
    #[default]
    Any,
    /// The offer exists.
    There,
    /// The offer does not exist.
    Absent,
    /// The offer exists with this content.
    Says(Tag),
}

/// Outcome of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Stored.
    Made(WriteEffect),
    /// The condition does not hold.
    Refused,
    /// A limit is reached.
    Full(Full),
}

/// Effect of a [`Write`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteEffect {
    /// Number of its offers that existed before.
    pub(crate) replaced: usize,
    /// Number of other offers that it withdrew.
    pub(crate) withdrawn: usize,
}

/// The part of a log after a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Log {
    /// The changes after the number.
    Changes(Vec<OfferChange>),
    /// Deleted changes are missing: load all offers.
    Forgotten,
}

/// A token as the store records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenRecord {
    /// Grant of the token.
    pub(crate) grant: Grant,
    /// Time of creation.
    pub(crate) made: Timestamp,
    /// Time of revocation, if any.
    pub(crate) revoked: Option<Timestamp>,
}

/// Errors of a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum StoreError {
    /// Disk, connection or server failed. The store may work again later.
    #[error("{0}")]
    Unavailable(String),
    /// The content was written by a later version or by another program.
    #[error("{0}")]
    Unusable(String),
}

impl StoreError {
    fn later_version(found: impl fmt::Display, known: usize) -> Self {
        Self::Unusable(format!(
            "a later version of posthaste wrote this (schema {found}, this one knows {known}): use that version"
        ))
    }

    /// Adds the name of the store to the error.
    fn with_store(self, name: impl fmt::Display) -> Self {
        match self {
            Self::Unavailable(reason) => Self::Unavailable(format!("{name}: {reason}")),
            Self::Unusable(reason) => Self::Unusable(format!("{name}: {reason}")),
        }
    }
}
