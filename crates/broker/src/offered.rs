//! What a provider offers: whether it can be taken, and what changes by it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use posthaste_wsqos::qos::{Offer, bounds};

use crate::change::Key;
use crate::registry::Registry;

/// Why something is no name of a type, a provider or an offer; for people.
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

/// Why no client could choose an offer; for people.
pub(crate) fn fault(registry: &Registry, offer: &Offer, now: Timestamp) -> Option<String> {
    let named = |words: String| format!("the offer {:?}: {words}", offer.name);
    if let Some(words) = fault_of_name(&offer.name) {
        return Some(named(words));
    }
    if let Err(error) = offer.check() {
        return Some(named(error.to_string()));
    }
    if offer.expires <= now {
        let end = offer.expires;
        return Some(named(format!(
            "it has expired at {end}, and it is {now:.0}: are the clocks right?"
        )));
    }
    let taken = registry.seen().index.check(offer);
    taken.err().map(|error| named(error.to_string()))
}

/// Why these cannot be all that a provider offers for a type; for people.
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
        if let Some(words) = fault(registry, offer, now) {
            return Err(words);
        }
    }
    Ok(())
}

/// What has to change so that `offers`, which have been checked, are all that a provider offers for a type.
pub(crate) fn changes(
    registry: &Registry,
    kind: &str,
    provider: &str,
    offers: &[Offer],
) -> Vec<(Key, Option<Offer>)> {
    let names: BTreeSet<&str> = offers.iter().map(|offer| &*offer.name).collect();
    let seen = registry.seen();
    let index = &seen.index;
    let own = index
        .offers(kind)
        .filter(|found| found.provider == provider);
    let gone = own
        .map(|found| found.offer.name)
        .filter(|name| !names.contains(&**name));
    let gone: Vec<_> = gone
        .map(|name| (Key::new(kind, provider, &name), None))
        .collect();
    let as_it_is = |offer: &Offer| index.get(kind, provider, &offer.name).as_ref() == Some(offer);
    let put = offers.iter().filter(|offer| !as_it_is(offer));
    let put = put.map(|offer| (Key::new(kind, provider, &offer.name), Some(offer.clone())));
    put.chain(gone).collect()
}
