//! An index made from all offers there are, one type of interface after the other.

use std::collections::BTreeMap;

use posthaste_wsqos::index::{Full, Held, Index, Limits};
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
    /// All that has come in, the type that comes in at the moment among it.
    held: Held,
}

impl Filling {
    /// Into `index`, which is empty.
    pub(crate) fn of(index: Index) -> Self {
        Self {
            index,
            kind: String::new(),
            offers: BTreeMap::new(),
            held: Held::default(),
        }
    }

    /// The same, if there is room for it within `limits`.
    pub(crate) fn take_within(
        &mut self,
        limits: &Limits,
        key: Key,
        offer: Offer,
    ) -> Result<(), Full> {
        let mut counts = self.held.counts(&key.kind, &key.provider);
        if let Some(replaced) = self.replaced(&key) {
            counts = counts.without(replaced.bytes());
        }
        limits.admit(&counts, offer.bytes())?;
        self.take(key, offer);
        Ok(())
    }

    /// Takes an offer, in place of an earlier one of this name; those of a type come one after the other.
    pub(crate) fn take(&mut self, key: Key, offer: Offer) {
        if let Some(replaced) = self.replaced(&key) {
            let bytes = replaced.bytes();
            self.held.remove(&key.kind, &key.provider, bytes);
        }
        self.held.add(&key.kind, &key.provider, offer.bytes());
        if key.kind != self.kind {
            self.turn();
            self.kind = key.kind;
        }
        self.offers.insert((key.provider, key.name), offer);
    }

    /// The offer of this name, if it has come in with this type.
    fn replaced(&self, key: &Key) -> Option<&Offer> {
        let name = (key.provider.clone(), key.name.clone());
        let is_current = key.kind == self.kind;
        self.offers.get(&name).filter(|_| is_current)
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
