//! Where offers are kept: durably, with a log of every change.
//!
//! A store is used by one thread at a time. Another kind of store implements [`Store`].

use jiff::Timestamp;
use posthaste_wsqos::qos::Offer;
use thiserror::Error;

use crate::change::{Change, Key, Tag};
use crate::token::{Grant, Hash};

/// What keeps offers.
pub(crate) trait Store: Send {
    /// Hands every offer there is to `take`, all as of one moment, and returns the number of the last change among them.
    fn load(&mut self, take: &mut dyn FnMut(Key, Offer)) -> Result<u64, StoreError>;

    /// Makes `writes` durable in one transaction, at `now`. Each is made whole or not at all, whatever becomes of the
    /// others; an error is of all of them.
    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Vec<Outcome>, StoreError>;

    /// At most `limit` changes behind `number`, in order, whoever made them.
    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError>;

    /// Who may publish: one for each token that is valid.
    fn grants(&mut self) -> Result<Vec<Grant>, StoreError>;

    /// Lets a provider publish with one more token; its number.
    fn grant(&mut self, provider: &str, token: Hash, now: Timestamp) -> Result<u64, StoreError>;

    /// Ends a token's validity; whether it was valid.
    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Forgets offers that have expired at `now`, and of the log what is beyond its length.
    fn tidy(&mut self, now: Timestamp) -> Result<(), StoreError>;
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
    /// It is made; how many of its offers had been there before.
    Made {
        /// So many.
        replaced: usize,
    },
    /// Its condition does not hold.
    Refused,
}

/// What a store has of its log behind a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Log {
    /// It goes on from there.
    Changes(Vec<Change>),
    /// What followed has been forgotten: load all anew.
    Forgotten,
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
