//! An index made from all offers there are, one type of interface after the other.

use std::collections::BTreeMap;

use posthaste_wsqos::index::Index;
use posthaste_wsqos::qos::Offer;

use crate::change::Key;
use crate::registry::refused;

/// An index on its way.
#[derive(Debug)]
pub(crate) struct Filling {
    index: Index,
    /// The type that comes in at the moment, and its offers by provider and name: one that changes while they are told comes
    /// twice.
    kind: String,
    offers: BTreeMap<(String, String), Offer>,
}

impl Filling {
    /// Into `index`, which is empty.
    pub(crate) fn of(index: Index) -> Self {
        Self {
            index,
            kind: String::new(),
            offers: BTreeMap::new(),
        }
    }

    /// Takes an offer, in place of an earlier one of this name; those of a type come one after the other.
    pub(crate) fn take(&mut self, key: Key, offer: Offer) {
        if key.kind != self.kind {
            self.turn();
            self.kind = key.kind;
        }
        self.offers.insert((key.provider, key.name), offer);
    }

    /// The index, full.
    pub(crate) fn done(mut self) -> Index {
        self.turn();
        self.index
    }

    fn turn(&mut self) {
        let named = self
            .offers
            .iter()
            .map(|((provider, _), offer)| (&**provider, offer));
        self.index
            .fill(&self.kind, named, |provider, offer, error| {
                refused(&self.kind, provider, &offer.name, error);
            });
        self.offers.clear();
    }
}
