//! Search index: finds the cheapest adequate offer among many.
//!
//! The offers of one type of interface are sorted by price, then by latest expiry. A lookup ends at the maximum price.
//! It starts at the cheapest offer and first compares columns of coarse codes ([`code`]), eight offers at a time. A
//! code can only exclude offers that are not adequate. The remaining offers are compared with [`is_adequate`], so the
//! result always equals that of a linear search.
//!
//! Large collections mostly hold plain offers: numbers, priorities and a price. These are stored in 72 bytes
//! ([`stored_offer`]), all others unchanged.

mod code;
mod held;
mod name_table;
mod stored_offer;
mod type_index;

use std::collections::HashMap;

use jiff::Timestamp;
use thiserror::Error;

pub use self::held::{Counts, Full, Held, Limits};
use self::name_table::NameTable;
use self::type_index::{IndexRow, TypeIndex};
use crate::{Currency, Definition, Offer, Ontologies, Rates, World};

/// Offers by type of interface.
#[derive(Debug)]
pub struct Index {
    rates: Rates,
    ontologies: Ontologies,
    kinds: HashMap<Box<str>, TypeIndex>,
    /// Names of providers and offers, each stored once.
    names: NameTable,
    held: Held,
}

/// An offer and its provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'i> {
    /// The provider.
    pub provider: &'i str,
    /// The offer.
    pub offer: Offer,
}

/// Position of [`Index::page`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(type_index::IndexKey);

/// Reason for the rejection of an offer: its price cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PutError {
    /// The offer has no price.
    #[error("the offer has no price: state one")]
    NoPrice,
    /// The exchange rate of the currency is unknown.
    #[error(
        "the exchange rate of {0} is unknown: offer in another currency, or add it to currency.worth of the broker"
    )]
    Currency(Currency),
}

impl AsRef<Offer> for Found<'_> {
    fn as_ref(&self) -> &Offer {
        &self.offer
    }
}

impl Index {
    /// Creates an empty index. Offers are compared with these `rates` and `ontologies`.
    pub fn new(rates: Rates, ontologies: Ontologies) -> Self {
        Self {
            rates,
            ontologies,
            kinds: HashMap::new(),
            names: NameTable::default(),
            held: Held::default(),
        }
    }

    /// Number of offers, including expired ones that are not yet removed.
    pub const fn len(&self) -> usize {
        self.held.offers()
    }

    /// Counts by type and by provider.
    pub const fn held(&self) -> &Held {
        &self.held
    }

    /// Fails if `limits` allow the offer neither as an additional one nor in place of the one with its name.
    pub fn admits(
        &self,
        limits: &Limits,
        kind: &str,
        provider: &str,
        offer: &Offer,
    ) -> Result<(), Full> {
        let (counts, bytes) = (self.held.counts(kind, provider), offer.bytes());
        let admitted = limits.admit(&counts, bytes);
        // The search for a replaced offer is slower and done only if needed.
        match admitted
            .is_err()
            .then(|| self.get(kind, provider, &offer.name))
        {
            Some(Some(replaced)) => limits.admit(&counts.without(replaced.bytes()), bytes),
            _ => admitted,
        }
    }

    /// Returns true if there are no offers.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Adds an offer for the interface `kind`, or replaces the provider's offer of this name. Returns true if it
    /// replaced one.
    pub fn put(&mut self, kind: &str, provider: &str, offer: &Offer) -> Result<bool, PutError> {
        let price = self.price(offer)?;
        let replaced = self.remove(kind, provider, &offer.name);
        self.held.add(kind, provider, offer.bytes());
        let provider = self.names.keep(provider);
        let name = self.names.keep(&offer.name);
        self.kind(kind).insert(price, provider, name, offer);
        Ok(replaced)
    }

    /// Adds many offers of one interface, none of which is in the index. Sorts once, while each [`Index::put`] moves
    /// half of the existing offers. Calls `refused` with each offer that has no comparable price.
    pub fn fill<'o>(
        &mut self,
        kind: &str,
        offers: impl IntoIterator<Item = (&'o str, &'o Offer)>,
        mut refused: impl FnMut(&'o str, &'o Offer, PutError),
    ) {
        for (provider, offer) in offers {
            match self.price(offer) {
                Ok(price) => {
                    self.held.add(kind, provider, offer.bytes());
                    let (holder, name) = (self.names.keep(provider), self.names.keep(&offer.name));
                    self.kind(kind).push(price, holder, name, offer);
                }
                Err(error) => refused(provider, offer, error),
            }
        }
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.sort();
        }
    }

    /// Removes an offer. Returns true if it was there.
    pub fn remove(&mut self, kind: &str, provider: &str, name: &str) -> bool {
        let Some(found) = self.kinds.get_mut(kind) else {
            return false;
        };
        let ids = self.names.find(provider).zip(self.names.find(name));
        let Some(row) = ids.and_then(|(provider, name)| found.remove(provider, name)) else {
            return false;
        };
        if found.len() == 0 {
            self.kinds.remove(kind);
        }
        let (names, held) = (&mut self.names, &mut self.held);
        forget(kind, &row, names, held);
        true
    }

    /// Removes expired offers and returns their number.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let (names, held) = (&mut self.names, &mut self.held);
        let before = held.offers();
        self.kinds.retain(|name, kind| {
            kind.expire(now, |row| forget(name, row, names, held));
            kind.len() > 0
        });
        before - held.offers()
    }

    /// The cheapest adequate offer for the interface `kind`.
    pub fn best(&self, kind: &str, wanted: &Definition, now: Timestamp) -> Option<Found<'_>> {
        self.adequate(kind, wanted, now).next()
    }

    /// The adequate offers for the interface `kind`, the cheapest first.
    pub fn adequate<'i, 'w>(
        &'i self,
        kind: &str,
        wanted: &'w Definition,
        now: Timestamp,
    ) -> impl Iterator<Item = Found<'i>> + use<'i, 'w> {
        let world = self.world(now);
        let kind = self.kinds.get(kind).into_iter();
        kind.flat_map(move |kind| kind.adequate(wanted, world))
            .map(|row| row.found(&self.names))
    }

    /// The provider's offer of this name for the interface `kind`, expired or not.
    pub fn get(&self, kind: &str, provider: &str, name: &str) -> Option<Offer> {
        let ids = self.names.find(provider).zip(self.names.find(name))?;
        let row = self.kinds.get(kind)?.get(ids.0, ids.1)?;
        Some(row.found(&self.names).offer)
    }

    /// The interfaces with offers, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(|kind| &**kind)
    }

    /// Fails if the offer cannot be added.
    pub fn check(&self, offer: &Offer) -> Result<(), PutError> {
        self.price(offer).map(drop)
    }

    /// An empty index with the same rates and ontologies.
    pub fn emptied(&self) -> Self {
        Self::new(self.rates.clone(), self.ontologies.clone())
    }

    /// Every offer for the interface `kind`, the cheapest first, including inadequate and expired ones.
    pub fn offers<'i>(&'i self, kind: &str) -> impl Iterator<Item = Found<'i>> + use<'i> {
        self.offers_from(kind, 0)
    }

    /// The same, from position `first` on. Skipped offers cost no time.
    pub fn offers_from<'i>(
        &'i self,
        kind: &str,
        first: usize,
    ) -> impl Iterator<Item = Found<'i>> + use<'i> {
        let rows = self.kinds.get(kind).map_or(&[][..], TypeIndex::rows);
        let rows = rows.get(first..).unwrap_or_default().iter();
        rows.map(|row| row.found(&self.names))
    }

    /// At most `most` offers for the interface `kind` after a cursor, and the next cursor if there may be more. Offers
    /// may change between two pages. Each offer that stays unchanged appears exactly once.
    pub fn page(
        &self,
        kind: &str,
        after: Option<Cursor>,
        most: usize,
    ) -> (Vec<Found<'_>>, Option<Cursor>) {
        let Some(kind) = self.kinds.get(kind) else {
            return (Vec::new(), None);
        };
        let mut last = None;
        let rows = kind.rows_after(after.map(|Cursor(key)| key));
        let page: Vec<Found<'_>> = rows
            .take(most)
            .inspect(|(key, _)| last = Some(Cursor(*key)))
            .map(|(_, row)| row.found(&self.names))
            .collect();
        let full = page.len() == most;
        (page, last.filter(|_| full))
    }

    /// Number of offers for the interface `kind`, including expired ones that are not yet removed.
    pub fn len_of(&self, kind: &str) -> usize {
        self.kinds.get(kind).map_or(0, TypeIndex::len)
    }

    /// The context for comparisons at the time `now`.
    pub const fn world(&self, now: Timestamp) -> World<'_> {
        World {
            now,
            rates: &self.rates,
            ontologies: &self.ontologies,
        }
    }

    fn price(&self, offer: &Offer) -> Result<u64, PutError> {
        let price = offer.qos.price.ok_or(PutError::NoPrice)?;
        let in_base = self.rates.in_base(price);
        in_base.ok_or(PutError::Currency(price.currency()))
    }

    fn kind(&mut self, kind: &str) -> &mut TypeIndex {
        if !self.kinds.contains_key(kind) {
            self.kinds.insert(kind.into(), TypeIndex::default());
        }
        self.kinds.get_mut(kind).expect("it was put there")
    }
}

/// Releases the names of a removed offer for the interface `kind` and updates the counts.
fn forget(kind: &str, row: &IndexRow, names: &mut NameTable, held: &mut Held) {
    let found = row.found(names);
    held.remove(kind, found.provider, found.offer.bytes());
    row.release(names);
}
