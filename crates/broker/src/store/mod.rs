//! Where offers are kept: durably, with a log of every change.
//!
//! A store is used by one thread at a time. Another kind of store implements [`Store`], and is opened in [`Place`];
//! what writes do is decided in [`plan`].

mod place;
mod plan;
pub(crate) mod postgres;
mod row;
mod sqlite;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use posthaste_wsqos::index::Full;
use posthaste_wsqos::qos::Offer;
use thiserror::Error;

pub use self::place::{Place, PlaceError};

use crate::change::{Change, Key, Of, Tag};
use crate::token::{Grant, Hash};

/// What keeps offers.
pub(crate) trait Store: Send {
    /// Hands every offer there is to `take`, by its kind and as of one moment, and returns the number of the last
    /// change among them. Some may have expired.
    fn load(&mut self, take: &mut dyn FnMut(Key, Offer)) -> Result<u64, StoreError>;

    /// Makes `writes` durable in one transaction, at `now`. Each is made whole or not at all, whatever becomes of the
    /// others; an error is of all of them, and then nobody can say whether they were made.
    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Vec<Outcome>, StoreError>;

    /// At most `limit` changes behind `number`, in order, whoever made them.
    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError>;

    /// The newest changes, at most `limit`, the newest first, each with the number of the token it came with.
    fn audit(&mut self, limit: usize) -> Result<Vec<(u64, Change)>, StoreError>;

    /// Who may publish: one for each token that is valid.
    fn grants(&mut self) -> Result<Vec<Grant>, StoreError>;

    /// Every token there has been.
    fn tokens(&mut self) -> Result<Vec<Token>, StoreError>;

    /// Lets a provider publish with one more token; its number.
    fn grant(&mut self, provider: &str, token: Hash, now: Timestamp) -> Result<u64, StoreError>;

    /// Ends a token's validity; whether it was valid.
    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Forgets some of the offers that have been expired for a minute at `now`, and some of the changes beyond the
    /// last `keep`, as much as can be done in passing; whether there may be more.
    fn tidy(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError>;

    /// From now on calls `wake` when somebody has changed something, as far as this kind of store hears of it.
    fn listen(&mut self, _wake: Wake) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Says that something was changed.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

/// How many offers, and how many changes, are forgotten at once.
const AT_ONCE: usize = 1_000;

/// Brokers with other clocks may hold what has expired here to be valid.
const CLOCKS: SignedDuration = SignedDuration::from_secs(60);

/// What has expired by then, in microseconds since 1970, can be forgotten at `now`.
fn expired_by(now: Timestamp) -> i64 {
    now.as_microsecond() - CLOCKS.as_micros() as i64
}

/// What a provider wants to happen.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// The number of the token it came with.
    pub(crate) by: u64,
    /// What offers say from then on; none for those that are withdrawn.
    pub(crate) changes: Vec<(Key, Option<Offer>)>,
    /// What must hold of the offer, or of each.
    pub(crate) only_if: Condition,
    /// Of these there are no others from then on, and what is as it should be already is no change.
    pub(crate) alone: Option<Of>,
}

/// What must hold of an offer before it is changed (RFC 9110, section 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing.
    #[default]
    Any,
    /// It is there.
    There,
    /// It is not there.
    Absent,
    /// It is there and says this.
    Says(Tag),
}

/// What became of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is made.
    Made(Made),
    /// Its condition does not hold.
    Refused,
    /// There is no room for it.
    Full(Full),
}

/// What a [`Write`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// How many of its offers had been there before.
    pub(crate) replaced: usize,
    /// How many others are there no more.
    pub(crate) withdrawn: usize,
}

/// What a store has of its log behind a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Log {
    /// It goes on from there.
    Changes(Vec<Change>),
    /// What followed has been forgotten: load all anew.
    Forgotten,
}

/// A token as a store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it allows.
    pub(crate) grant: Grant,
    /// When it was made.
    pub(crate) made: Timestamp,
    /// When it was revoked, if so.
    pub(crate) revoked: Option<Timestamp>,
}

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum StoreError {
    /// Its disk, its connection, its server: it may work again later.
    #[error("{0}")]
    Unavailable(String),
    /// What is there was written by a later version, or by something else.
    #[error("{0}")]
    Unusable(String),
}

impl StoreError {
    fn later_version(found: impl fmt::Display, known: usize) -> Self {
        Self::Unusable(format!(
            "a later version of posthaste wrote this (schema {found}, this one knows {known}): use that version"
        ))
    }

    /// The same, of a store with this name.
    fn of(self, name: impl fmt::Display) -> Self {
        match self {
            Self::Unavailable(words) => Self::Unavailable(format!("{name}: {words}")),
            Self::Unusable(words) => Self::Unusable(format!("{name}: {words}")),
        }
    }
}
