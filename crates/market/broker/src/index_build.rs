//! Index build: builds an index from all offers, one interface type after the other.

use std::collections::BTreeMap;

use posthaste_qos::Offer;
use posthaste_qos::index::{Full, Held, Index, Limits};

use crate::change::OfferKey;
use crate::registry::refused;

/// An index under construction.
#[derive(Debug)]
pub(crate) struct IndexBuild {
    index: Index,
    /// Current type, and its offers by provider and name. An offer that changes during the transfer arrives twice.
    kind: String,
    offers: BTreeMap<(String, String), Offer>,
    /// Counts of all offers received, including those of the current type.
    held: Held,
    /// Offers that this broker cannot compare.
    refused: usize,
}

impl IndexBuild {
    /// Starts with an empty `index`.
    pub(crate) fn new(index: Index) -> Self {
        assert_eq!(index.len(), 0, "an index build starts with offers");
        Self {
            index,
            kind: String::new(),
            offers: BTreeMap::new(),
            held: Held::default(),
            refused: 0,
        }
    }

    /// Calls [`Self::take`] if `limits` allow the offer.
    pub(crate) fn take_within(
        &mut self,
        limits: &Limits,
        key: OfferKey,
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

    /// Adds an offer or replaces the one of the same key. Offers must arrive grouped by type.
    pub(crate) fn take(&mut self, key: OfferKey, offer: Offer) {
        if let Some(replaced) = self.replaced(&key) {
            let bytes = replaced.bytes();
            self.held.remove(&key.kind, &key.provider, bytes);
        }
        self.held.add(&key.kind, &key.provider, offer.bytes());
        if key.kind != self.kind {
            self.complete_type();
            self.kind = key.kind;
        }
        self.offers.insert((key.provider, key.name), offer);
    }

    /// Offer with the same key, if it belongs to the current type.
    fn replaced(&self, key: &OfferKey) -> Option<&Offer> {
        let name = (key.provider.clone(), key.name.clone());
        let is_current = key.kind == self.kind;
        self.offers.get(&name).filter(|_| is_current)
    }

    /// Completes the current type. Returns the index, and the number of offers that this broker cannot compare.
    pub(crate) fn done(mut self) -> (Index, usize) {
        self.complete_type();
        (self.index, self.refused)
    }

    fn complete_type(&mut self) {
        let named = self
            .offers
            .iter()
            .map(|((provider, _), offer)| (&**provider, offer));
        self.index
            .fill(&self.kind, named, |provider, offer, error| {
                self.refused += 1;
                refused(&self.kind, provider, &offer.name, error);
            });
        self.offers.clear();
    }
}
