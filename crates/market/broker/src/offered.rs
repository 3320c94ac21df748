//! Validation of a provider's offers, and their conversion to writes.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use posthaste_qos::{Offer, bounds};

use crate::change::{OfferGroup, OfferKey};
use crate::registry::Registry;
use crate::store::{Condition, Write};

/// Error in the name of a type, provider or offer, in words; `None` if valid.
pub(crate) fn fault_of_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a type, a provider and an offer have names".to_owned());
    }
    if name.len() > bounds::TEXT {
        let most = bounds::TEXT;
        return Some(format!("a name of {} bytes: {most} at most", name.len()));
    }
    let control = name.chars().any(char::is_control);
    control.then(|| "a name with a control character".to_owned())
}

/// Reason why no client could choose the offer, in words; `None` if valid.
pub(crate) fn fault(registry: &Registry, offer: &Offer, now: Timestamp) -> Option<String> {
    let named = |reason: String| format!("the offer {:?}: {reason}", offer.name);
    if let Some(reason) = fault_of_name(&offer.name) {
        return Some(named(reason));
    }
    if let Err(error) = offer.check() {
        return Some(named(error.to_string()));
    }
    if offer.expires <= now {
        let end = offer.expires;
        return Some(named(format!(
            "it expired at {end}, and the time is {now:.0}: check the clocks"
        )));
    }
    let taken = registry.read().index.check(offer);
    taken.err().map(|error| named(error.to_string()))
}

/// Validates the complete list of a provider's offers for a type. The error is in words.
pub(crate) fn check(registry: &Registry, offers: &[Offer]) -> Result<(), String> {
    if offers.len() > bounds::OFFERS {
        let most = bounds::OFFERS;
        return Err(format!("{} offers: {most} at most", offers.len()));
    }
    let now = Timestamp::now();
    let mut names = BTreeSet::new();
    for offer in offers {
        if !names.insert(&offer.name) {
            return Err(format!("the offer {:?} is there twice", offer.name));
        }
        if let Some(reason) = fault(registry, offer, now) {
            return Err(reason);
        }
    }
    Ok(())
}

/// Number of offers that differ between `offers` and the index, for this provider and type.
pub(crate) fn differing(registry: &Registry, group: &OfferGroup, offers: &[Offer]) -> usize {
    let current = registry.read();
    let of_type = current.index.offers(&group.kind);
    let own = of_type.filter(|found| found.provider == group.provider);
    let mut own: HashMap<String, Offer> = own
        .map(|found| (found.offer.name.clone(), found.offer))
        .collect();
    let changed = offers
        .iter()
        .filter(|offer| own.remove(&offer.name).as_ref() != Some(offer));
    changed.count() + own.len()
}

/// Write that replaces all offers of a provider for a type by validated `offers`, with token number `by`.
pub(crate) fn all(group: OfferGroup, offers: Vec<Offer>, by: u64) -> Write {
    let change = |offer: Offer| {
        let key = OfferKey::new(&group.kind, &group.provider, &offer.name);
        (key, Some(offer))
    };
    Write {
        by,
        changes: offers.into_iter().map(change).collect(),
        only_if: Condition::Any,
        alone: Some(group),
    }
}
