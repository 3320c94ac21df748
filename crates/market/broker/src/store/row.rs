//! Conversion of stored rows to offers and changes.

use jiff::Timestamp;
use posthaste_qos::Offer;

use super::Log;
use crate::change::{OfferChange, OfferKey};

/// One entry of a log as stored.
#[derive(Clone, Debug)]
pub(super) struct LogEntry {
    pub(super) number: u64,
    /// Time in microseconds since 1970.
    pub(super) at: i64,
    /// Number of the token that made it.
    pub(super) by: u64,
    pub(super) key: OfferKey,
    /// The offer as JSON; `None` after a withdrawal.
    pub(super) body: Option<String>,
}

impl LogEntry {
    /// Converts to a change, preceded by the number of the token.
    pub(super) fn audited(self) -> (u64, OfferChange) {
        (self.by, self.read())
    }

    fn read(self) -> OfferChange {
        let offer = self.body.and_then(|json| offer(&self.key, &json));
        OfferChange {
            number: self.number,
            at: Timestamp::from_microsecond(self.at).unwrap_or_default(),
            key: self.key,
            offer,
        }
    }
}

/// Parses a stored offer. An unreadable one, written by a broker of another version, counts as withdrawn.
pub(super) fn offer(key: &OfferKey, json: &str) -> Option<Offer> {
    let OfferKey {
        kind,
        provider,
        name,
    } = key;
    let read = serde_json::from_str(json);
    read.inspect_err(|error| tracing::warn!(kind, provider, name, "not offered here: {error}"))
        .ok()
}

/// Converts the entries after `number` of a log that ends with `last`. Numbers have no gaps, so a gap shows deleted
/// entries.
pub(super) fn log(number: u64, last: u64, behind: impl IntoIterator<Item = LogEntry>) -> Log {
    let mut behind = behind.into_iter().peekable();
    let goes_on = match behind.peek() {
        Some(first) => first.number == number + 1,
        None => number == last,
    };
    let mut previous = number;
    let read = |entry: LogEntry| {
        debug_assert_eq!(entry.number, previous + 1, "a gap within the log");
        previous = entry.number;
        entry.read()
    };
    if goes_on {
        Log::Changes(behind.map(read).collect())
    } else {
        Log::Forgotten
    }
}
