//! Effect of writes, the same for every store.
//!
//! In one isolated transaction a store looks up the offers concerned, this module plans the changes, and the store
//! executes them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use posthaste_qos::Offer;

use super::{Condition, Write, WriteEffect, WriteOutcome};
use crate::change::{OfferGroup, OfferKey, Tag};

/// State of a stored offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Expiry in microseconds since 1970.
    pub(super) expires: i64,
    /// Tag of the content, if [`tags_count`].
    pub(super) tag: Option<Tag>,
}

/// Changes to make for [`Write`]s, and their outcomes.
#[derive(Debug, Default)]
pub(super) struct WritePlan<'w> {
    pub(super) outcomes: Vec<WriteOutcome>,
    /// In the order of the log.
    pub(super) steps: Vec<WriteStep<'w>>,
}

/// One change of one offer.
#[derive(Debug)]
pub(super) struct WriteStep<'w> {
    pub(super) key: Cow<'w, OfferKey>,
    /// Number of the token that made it.
    pub(super) by: u64,
    /// New content; `None` to withdraw the offer.
    pub(super) body: Option<StoredOffer>,
}

/// An offer as stored.
#[derive(Debug)]
pub(super) struct StoredOffer {
    pub(super) json: String,
    /// Expiry in microseconds since 1970.
    pub(super) expires: i64,
}

/// State of the offers concerned.
pub(super) type Standings<'w> = HashMap<Cow<'w, OfferKey>, Standing>;

/// Offers that `writes` name, possibly repeated.
pub(super) fn keys(writes: &[Write]) -> impl Iterator<Item = &OfferKey> {
    let changes = writes.iter().flat_map(|write| &write.changes);
    changes.map(|(key, _)| key)
}

/// Providers and types whose other offers `writes` withdraw.
pub(super) fn alone(writes: &[Write]) -> impl Iterator<Item = &OfferGroup> {
    writes.iter().filter_map(|write| write.alone.as_ref())
}

/// Returns true if `writes` depend on the content of stored offers.
pub(super) fn tags_count(writes: &[Write]) -> bool {
    let asks = |write: &Write| matches!(write.only_if, Condition::Says(_)) || write.alone.is_some();
    writes.iter().any(asks)
}

/// Plans `writes` one after the other. `standing` has the stored offers of [`keys`] and [`alone`].
///
/// Expired offers count as absent. Withdrawing an offer that is not stored changes nothing.
pub(super) fn plan<'w>(
    writes: &'w [Write],
    now: Timestamp,
    mut standing: Standings<'w>,
) -> WritePlan<'w> {
    let now = now.as_microsecond();
    let tags = tags_count(writes);
    let mut plan = WritePlan::default();
    for write in writes {
        let valid = |key: &OfferKey| standing.get(key).filter(|offer| offer.expires > now);
        let holds = |key: &OfferKey| match write.only_if {
            Condition::Any => true,
            Condition::There => valid(key).is_some(),
            Condition::Absent => valid(key).is_none(),
            Condition::Says(tag) => valid(key).is_some_and(|offer| offer.tag == Some(tag)),
        };
        if !write.changes.iter().all(|(key, _)| holds(key)) {
            plan.outcomes.push(WriteOutcome::Refused);
            continue;
        }
        let there = write.changes.iter().filter(|(key, _)| valid(key).is_some());
        let replaced = there.count();
        for (key, offer) in &write.changes {
            let body = offer.as_ref().map(StoredOffer::from_offer);
            let after = body.as_ref().map(|body| body.standing(tags));
            let before = match after {
                Some(after) => standing.insert(Cow::Borrowed(key), after),
                None => standing.remove(key),
            };
            let is_news = match (before, after) {
                (None, None) => false,
                (Some(before), Some(after)) => write.alone.is_none() || before.tag != after.tag,
                _ => true,
            };
            if is_news {
                let (key, by) = (Cow::Borrowed(key), write.by);
                plan.steps.push(WriteStep { key, by, body });
            }
        }
        debug_assert!(
            replaced <= write.changes.len(),
            "more offers replaced than written"
        );
        let mut withdrawn = 0;
        for key in others(write, &standing) {
            let before = standing.remove(&*key);
            withdrawn += usize::from(before.is_some_and(|offer| offer.expires > now));
            let (by, body) = (write.by, None);
            plan.steps.push(WriteStep { key, by, body });
        }
        plan.outcomes.push(WriteOutcome::Made(WriteEffect {
            replaced,
            withdrawn,
        }));
    }
    assert_eq!(
        plan.outcomes.len(),
        writes.len(),
        "a write without an outcome"
    );
    plan
}

/// Offers that a write of a complete list withdraws, in order.
fn others<'w>(write: &Write, standing: &Standings<'w>) -> Vec<Cow<'w, OfferKey>> {
    let Some(group) = &write.alone else {
        return Vec::new();
    };
    let own: HashSet<&OfferKey> = write.changes.iter().map(|(key, _)| key).collect();
    let others = standing
        .keys()
        .filter(|key| group.has(key) && !own.contains(&***key));
    let mut others: Vec<Cow<'w, OfferKey>> = others.cloned().collect();
    others.sort_unstable();
    others
}

impl StoredOffer {
    fn from_offer(offer: &Offer) -> Self {
        Self {
            json: serde_json::to_string(offer).expect("texts and finite numbers"),
            expires: offer.expires.as_microsecond(),
        }
    }

    pub(super) fn standing(&self, tagged: bool) -> Standing {
        Standing {
            expires: self.expires,
            tag: tagged.then(|| Tag::of_json(self.json.as_bytes())),
        }
    }
}
