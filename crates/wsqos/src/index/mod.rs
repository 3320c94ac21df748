//! Finding the cheapest adequate offer among many, touching little.
//!
//! Offers of one type of interface stand in the order in which they are preferred: by price, of equal prices
//! the one that holds longest. A lookup cuts them off at the price that may be paid and walks from the
//! cheapest on, but looks at columns of coarse codes first ([`code`]), eight offers at a time: what a code says
//! cannot be enough is not. Only what passes is compared as [`is_adequate`] does, so the answer is that of a
//! plain walk through all of them, always.
//!
//! Whoever has many offers has plain ones: numbers, priorities and a price. Those are kept in 72 bytes
//! ([`plain`]); the others as they are.

mod code;
mod held;
mod kind;
mod names;
mod plain;

use std::collections::HashMap;

use jiff::Timestamp;
use thiserror::Error;

pub use self::held::{Counts, Full, Held, Limits};
use self::kind::{Kind, Row};
use self::names::Names;
use crate::qos::{Currency, Definition, Offer, Ontologies, Rates, World};

/// Offers by the type of interface that they are for.
#[derive(Debug)]
pub struct Index {
    rates: Rates,
    ontologies: Ontologies,
    kinds: HashMap<Box<str>, Kind>,
    /// Of providers and of offers: each is kept once.
    names: Names,
    held: Held,
}

/// An offer, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'i> {
    /// The provider.
    pub provider: &'i str,
    /// The offer.
    pub offer: Offer,
}

/// How far [`Index::page`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(kind::Place);

/// Why an offer cannot be found by its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PutError {
    /// It has none.
    #[error("an offer has a price")]
    NoPrice,
    /// Nobody has said what its currency is worth.
    #[error(
        "nobody has said what 1 {0} is worth: offer in another currency, or add it to the broker's rates"
    )]
    Currency(Currency),
}

impl AsRef<Offer> for Found<'_> {
    fn as_ref(&self) -> &Offer {
        &self.offer
    }
}

impl Index {
    /// An empty one; `rates` and `ontologies` are what offers are compared in.
    pub fn new(rates: Rates, ontologies: Ontologies) -> Self {
        Self {
            rates,
            ontologies,
            kinds: HashMap::new(),
            names: Names::default(),
            held: Held::default(),
        }
    }

    /// How many offers there are, expired ones that have not been dropped yet among them.
    pub const fn len(&self) -> usize {
        self.held.offers()
    }

    /// The same by type and by provider.
    pub const fn held(&self) -> &Held {
        &self.held
    }

    /// Refuses an offer for which `limits` leave no room, neither beside the others nor in place of the one of its name.
    pub fn admits(
        &self,
        limits: &Limits,
        kind: &str,
        provider: &str,
        offer: &Offer,
    ) -> Result<(), Full> {
        let (counts, bytes) = (self.held.counts(kind, provider), offer.bytes());
        let admitted = limits.admit(&counts, bytes);
        // To look for it takes longer.
        match admitted
            .is_err()
            .then(|| self.get(kind, provider, &offer.name))
        {
            Some(Some(replaced)) => limits.admit(&counts.without(replaced.bytes()), bytes),
            _ => admitted,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Takes an offer for the interface `kind`, in place of the provider's last one of this name; whether
    /// there was one.
    pub fn put(&mut self, kind: &str, provider: &str, offer: &Offer) -> Result<bool, PutError> {
        let price = self.price(offer)?;
        let replaced = self.remove(kind, provider, &offer.name);
        self.held.add(kind, provider, offer.bytes());
        let provider = self.names.keep(provider);
        let name = self.names.keep(&offer.name);
        self.kind(kind).insert(price, provider, name, offer);
        Ok(replaced)
    }

    /// Takes many offers of one interface, none of which is there: it sorts once, where [`Index::put`] moves
    /// half of what is there for each. What cannot be taken goes to `refused`.
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

    /// Forgets an offer; whether it was there.
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

    /// Drops what has expired; how many offers that were.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let (names, held) = (&mut self.names, &mut self.held);
        let before = held.offers();
        self.kinds.retain(|name, kind| {
            kind.expire(now, |row| forget(name, row, names, held));
            kind.len() > 0
        });
        before - held.offers()
    }

    /// The first adequate offer for the interface `kind`: the cheapest.
    pub fn best(&self, kind: &str, wanted: &Definition, now: Timestamp) -> Option<Found<'_>> {
        self.adequate(kind, wanted, now).next()
    }

    /// Every adequate offer for the interface `kind`, the cheapest first.
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

    /// A provider's offer of this name for the interface `kind`, expired or not.
    pub fn get(&self, kind: &str, provider: &str, name: &str) -> Option<Offer> {
        let ids = self.names.find(provider).zip(self.names.find(name))?;
        let row = self.kinds.get(kind)?.get(ids.0, ids.1)?;
        Some(row.found(&self.names).offer)
    }

    /// The interfaces for which there are offers, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(|kind| &**kind)
    }

    /// Why an offer could not be taken, if so.
    pub fn check(&self, offer: &Offer) -> Result<(), PutError> {
        self.price(offer).map(drop)
    }

    /// An empty one that compares as this one does.
    pub fn emptied(&self) -> Self {
        Self::new(self.rates.clone(), self.ontologies.clone())
    }

    /// Every offer for the interface `kind`, the cheapest first, adequate or not, expired or not.
    pub fn offers<'i>(&'i self, kind: &str) -> impl Iterator<Item = Found<'i>> + use<'i> {
        self.offers_from(kind, 0)
    }

    /// The same, from the place `first` on; what stands before it costs nothing.
    pub fn offers_from<'i>(
        &'i self,
        kind: &str,
        first: usize,
    ) -> impl Iterator<Item = Found<'i>> + use<'i> {
        let rows = self.kinds.get(kind).map_or(&[][..], Kind::rows);
        let rows = rows.get(first..).unwrap_or_default().iter();
        rows.map(|row| row.found(&self.names))
    }

    /// At most `most` offers for the interface `kind` behind a cursor, and the cursor behind them if there may be
    /// more. Between two pages offers may come and go: those that stay as they are come once.
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
        let rows = kind.rows_after(after.map(|Cursor(place)| place));
        let page: Vec<Found<'_>> = rows
            .take(most)
            .inspect(|(place, _)| last = Some(Cursor(*place)))
            .map(|(_, row)| row.found(&self.names))
            .collect();
        let full = page.len() == most;
        (page, last.filter(|_| full))
    }

    /// How many offers there are for the interface `kind`, expired ones that have not been dropped yet among them.
    pub fn len_of(&self, kind: &str) -> usize {
        self.kinds.get(kind).map_or(0, Kind::len)
    }

    /// What offers are compared in at the time `now`.
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

    fn kind(&mut self, kind: &str) -> &mut Kind {
        if !self.kinds.contains_key(kind) {
            self.kinds.insert(kind.into(), Kind::default());
        }
        self.kinds.get_mut(kind).expect("it was put there")
    }
}

/// An offer for the interface `kind` is no more.
fn forget(kind: &str, row: &Row, names: &mut Names, held: &mut Held) {
    let found = row.found(names);
    held.remove(kind, found.provider, found.offer.bytes());
    row.release(names);
}
