//! What writes come to: the same in every store.
//!
//! A store looks up what it has of the offers in question, this decides, and the store does as planned, all in one
//! transaction that nobody else's changes can come between.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use posthaste_wsqos::qos::Offer;

use super::{Condition, Made, Outcome, Write};
use crate::change::{Key, Of, Tag};

/// What a store has of an offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// In microseconds since 1970.
    pub(super) expires: i64,
    /// What it says, where [`tags_count`].
    pub(super) tag: Option<Tag>,
}

/// What is to be done for [`Write`]s, and what becomes of each.
#[derive(Debug, Default)]
pub(super) struct Plan<'w> {
    pub(super) outcomes: Vec<Outcome>,
    /// In the order of the log.
    pub(super) steps: Vec<Step<'w>>,
}

/// One change of one offer.
#[derive(Debug)]
pub(super) struct Step<'w> {
    pub(super) key: Cow<'w, Key>,
    /// The number of the token it came with.
    pub(super) by: u64,
    /// What takes its place; none where it goes.
    pub(super) body: Option<Body>,
}

/// An offer as it is stored.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) json: String,
    /// In microseconds since 1970.
    pub(super) expires: i64,
}

/// What a store has of the offers in question.
pub(super) type Standings<'w> = HashMap<Cow<'w, Key>, Standing>;

/// The offers that `writes` name; some may come several times.
pub(super) fn keys(writes: &[Write]) -> impl Iterator<Item = &Key> {
    let changes = writes.iter().flat_map(|write| &write.changes);
    changes.map(|(key, _)| key)
}

/// Of what `writes` want to be all there is.
pub(super) fn alone(writes: &[Write]) -> impl Iterator<Item = &Of> {
    writes.iter().filter_map(|write| write.alone.as_ref())
}

/// Whether it matters what offers say.
pub(super) fn tags_count(writes: &[Write]) -> bool {
    let asks = |write: &Write| matches!(write.only_if, Condition::Says(_)) || write.alone.is_some();
    writes.iter().any(asks)
}

/// Decides what `writes` do, one after the other, where `standing` is what there is of [`keys`] and [`alone`].
///
/// What has expired is not there. Withdrawing what a store does not have changes nothing.
pub(super) fn plan<'w>(
    writes: &'w [Write],
    now: Timestamp,
    mut standing: Standings<'w>,
) -> Plan<'w> {
    let now = now.as_microsecond();
    let tags = tags_count(writes);
    let mut plan = Plan::default();
    for write in writes {
        let valid = |key: &Key| standing.get(key).filter(|offer| offer.expires > now);
        let holds = |key: &Key| match write.only_if {
            Condition::Any => true,
            Condition::There => valid(key).is_some(),
            Condition::Absent => valid(key).is_none(),
            Condition::Says(tag) => valid(key).is_some_and(|offer| offer.tag == Some(tag)),
        };
        if !write.changes.iter().all(|(key, _)| holds(key)) {
            plan.outcomes.push(Outcome::Refused);
            continue;
        }
        let there = write.changes.iter().filter(|(key, _)| valid(key).is_some());
        let replaced = there.count();
        for (key, offer) in &write.changes {
            let body = offer.as_ref().map(Body::of);
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
                plan.steps.push(Step { key, by, body });
            }
        }
        let mut withdrawn = 0;
        for key in others(write, &standing) {
            let before = standing.remove(&*key);
            withdrawn += usize::from(before.is_some_and(|offer| offer.expires > now));
            let (by, body) = (write.by, None);
            plan.steps.push(Step { key, by, body });
        }
        plan.outcomes.push(Outcome::Made(Made {
            replaced,
            withdrawn,
        }));
    }
    plan
}

/// What there is beside a write that wants to be all there is, in order.
fn others<'w>(write: &Write, standing: &Standings<'w>) -> Vec<Cow<'w, Key>> {
    let Some(of) = &write.alone else {
        return Vec::new();
    };
    let own: HashSet<&Key> = write.changes.iter().map(|(key, _)| key).collect();
    let others = standing
        .keys()
        .filter(|key| of.has(key) && !own.contains(&***key));
    let mut others: Vec<Cow<'w, Key>> = others.cloned().collect();
    others.sort_unstable();
    others
}

impl Body {
    fn of(offer: &Offer) -> Self {
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
