//! What writes come to: the same in every store.
//!
//! A store looks up what it has of the offers in question, this decides, and the store does as planned, all in one
//! transaction that nobody else's changes can come between.

use std::collections::HashMap;

use jiff::Timestamp;
use posthaste_wsqos::qos::Offer;

use super::{Condition, Outcome, Write};
use crate::change::{Key, Tag};

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
    pub(super) key: &'w Key,
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

/// The offers that `writes` are about; some may come several times.
pub(super) fn keys(writes: &[Write]) -> impl Iterator<Item = &Key> {
    let changes = writes.iter().flat_map(|write| &write.changes);
    changes.map(|(key, _)| key)
}

/// Whether a condition asks what offers say.
pub(super) fn tags_count(writes: &[Write]) -> bool {
    let conditions = writes.iter().map(|write| write.only_if);
    conditions
        .into_iter()
        .any(|only_if| matches!(only_if, Condition::Says(_)))
}

/// Decides what `writes` do, one after the other, where `standing` is what there is of [`keys`].
///
/// What has expired is not there. Withdrawing what a store does not have changes nothing.
pub(super) fn plan<'w>(
    writes: &'w [Write],
    now: Timestamp,
    mut standing: HashMap<&'w Key, Standing>,
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
        plan.outcomes.push(Outcome::Made {
            replaced: there.count(),
        });
        for (key, offer) in &write.changes {
            let body = offer.as_ref().map(Body::of);
            let before = match &body {
                Some(body) => standing.insert(key, body.standing(tags)),
                None => standing.remove(key),
            };
            if body.is_some() || before.is_some() {
                let by = write.by;
                plan.steps.push(Step { key, by, body });
            }
        }
    }
    plan
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
