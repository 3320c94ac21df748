//! The offers of one type of interface, in order of preference.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::Found;
use super::code::{self, Bits, COLUMNS, Codes};
use super::name_table::{Id, NameTable};
use super::stored_offer::StoredOffer;
use crate::{Definition, Offer, World, is_adequate};

/// Number of offers that are filtered together.
const CHUNK: usize = 64;
/// Number of offers in one vector operation.
const LANES: usize = 8;

/// Rows and columns: the same position is the same offer.
#[derive(Debug, Default)]
pub(super) struct TypeIndex {
    /// Prices in millionths of the base currency.
    prices: Vec<u64>,
    columns: [Vec<u16>; COLUMNS],
    stated: Vec<Bits>,
    rows: Vec<IndexRow>,
    /// No offer expires before this time.
    holds_until: Option<Timestamp>,
}

/// Sort key of an offer. It stays the same as long as the offer is unchanged.
pub(super) type IndexKey = (u64, Reverse<Timestamp>, Id, Id);

#[derive(Debug)]
pub(super) struct IndexRow {
    provider: Id,
    name: Id,
    kept: StoredOffer,
}

impl TypeIndex {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows(&self) -> &[IndexRow] {
        &self.rows
    }

    /// Inserts an offer in order. The provider must not have another offer of this name.
    pub(super) fn insert(&mut self, price: u64, provider: Id, name: Id, offer: &Offer) {
        let key = (price, Reverse(offer.expires), provider, name);
        let (low, high) = self.equally_dear(price);
        let before = self.rows[low..high].partition_point(|row| row.key(price) < key);
        debug_assert!(
            (self.rows.get(low + before))
                .is_none_or(|next| next.key(self.prices[low + before]) > key),
            "a provider's offers have different names"
        );
        self.insert_at(low + before, price, provider, name, offer);
    }

    /// Adds an offer at the end. Call [`TypeIndex::sort`] afterwards.
    pub(super) fn push(&mut self, price: u64, provider: Id, name: Id, offer: &Offer) {
        self.insert_at(self.len(), price, provider, name, offer);
    }

    fn insert_at(&mut self, position: usize, price: u64, provider: Id, name: Id, offer: &Offer) {
        self.prices.insert(position, price);
        for (column, code) in self.columns.iter_mut().zip(code::codes(&offer.qos)) {
            column.insert(position, code);
        }
        self.stated.insert(position, code::stated(&offer.qos));
        let kept = StoredOffer::from_offer(offer);
        let ends = self.holds_until.unwrap_or(offer.expires);
        self.holds_until = Some(ends.min(offer.expires));
        self.rows.insert(
            position,
            IndexRow {
                provider,
                name,
                kept,
            },
        );
    }

    pub(super) fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&position| self.rows[position].key(self.prices[position]));
        self.prices = order
            .iter()
            .map(|&position| self.prices[position])
            .collect();
        for column in &mut self.columns {
            *column = order.iter().map(|&position| column[position]).collect();
        }
        self.stated = order
            .iter()
            .map(|&position| self.stated[position])
            .collect();
        let mut rows: Vec<Option<IndexRow>> = self.rows.drain(..).map(Some).collect();
        self.rows = order
            .iter()
            .filter_map(|&position| rows[position].take())
            .collect();
        debug_assert!(
            self.rows.len() == order.len() && self.prices.is_sorted(),
            "lookups end at the first price that is too high"
        );
    }

    /// Removes an offer and returns it if it was there.
    pub(super) fn remove(&mut self, provider: Id, name: Id) -> Option<IndexRow> {
        let position = self.position(provider, name)?;
        self.prices.remove(position);
        self.columns.iter_mut().for_each(|column| {
            column.remove(position);
        });
        self.stated.remove(position);
        Some(self.rows.remove(position))
    }

    /// The offers after the sort key `after`, in order, with their sort keys.
    pub(super) fn rows_after(
        &self,
        after: Option<IndexKey>,
    ) -> impl Iterator<Item = (IndexKey, &IndexRow)> {
        let key = |index: usize| self.rows[index].key(self.prices[index]);
        let (mut low, mut high) = (0, self.len());
        while let Some(after) = after.filter(|_| low < high) {
            let middle = low.midpoint(high);
            if key(middle) <= after {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low..self.len()).map(move |index| (key(index), &self.rows[index]))
    }

    /// The provider's offer of this name.
    pub(super) fn get(&self, provider: Id, name: Id) -> Option<&IndexRow> {
        Some(&self.rows[self.position(provider, name)?])
    }

    fn position(&self, provider: Id, name: Id) -> Option<usize> {
        let is_it = |row: &IndexRow| row.provider == provider && row.name == name;
        self.rows.iter().position(is_it)
    }

    /// Removes expired offers and calls `dropped` with each.
    pub(super) fn expire(&mut self, now: Timestamp, mut dropped: impl FnMut(&IndexRow)) {
        if self.holds_until.is_none_or(|ends| ends > now) {
            return;
        }
        let holds: Vec<bool> = self
            .rows
            .iter()
            .map(|row| row.kept.expires() > now)
            .collect();
        if holds.contains(&false) {
            for (row, _) in self.rows.iter().zip(&holds).filter(|(_, holds)| !**holds) {
                dropped(row);
            }
            keep(&mut self.prices, &holds);
            self.columns
                .iter_mut()
                .for_each(|column| keep(column, &holds));
            keep(&mut self.stated, &holds);
            keep(&mut self.rows, &holds);
        }
        self.holds_until = self.rows.iter().map(|row| row.kept.expires()).min();
    }

    /// The adequate offers for `wanted`, in order.
    pub(super) fn adequate<'k, 'w>(
        &'k self,
        wanted: &'w Definition,
        world: World<'k>,
    ) -> impl Iterator<Item = &'k IndexRow> + use<'k, 'w> {
        let affordable = match wanted.price.map(|most| world.rates.in_base(most)) {
            None => self.len(),
            Some(Some(most)) => self.prices.partition_point(|price| *price <= most),
            // The exchange rate of the currency is unknown, so no price can be compared with it.
            Some(None) => 0,
        };
        let least = code::codes(wanted);
        let needed = code::needed(wanted);
        (0..affordable)
            .step_by(CHUNK)
            .flat_map(move |from| {
                let chunk = from..affordable.min(from + CHUNK);
                self.passing(chunk.start, chunk.end, &least)
            })
            .filter(move |position| self.stated[*position] & needed == needed)
            .map(|position| &self.rows[position])
            .filter(move |row| is_adequate(&row.kept.offer(), wanted, &world))
    }

    /// The positions in `from..to`, at most a chunk, with codes of at least `least`.
    fn passing(&self, from: usize, to: usize, least: &Codes) -> SetBits {
        debug_assert!(to - from <= CHUNK, "a chunk has a bit for each offer");
        let mut passes = [u16::MAX; CHUNK];
        for (column, &least) in self.columns.iter().zip(least) {
            if least > 0 {
                for (pass, code) in passes.iter_mut().zip(&column[from..to]) {
                    *pass &= if *code >= least { u16::MAX } else { 0 };
                }
            }
        }
        let mut bits = 0;
        for (group, lanes) in passes.chunks_exact(LANES).enumerate() {
            // Most groups have none.
            if lanes.iter().fold(0, |any, lane| any | lane) != 0 {
                for (lane, pass) in lanes.iter().enumerate() {
                    bits |= u64::from(*pass & 1) << (group * LANES + lane);
                }
            }
        }
        let count = to - from;
        if count < CHUNK {
            bits &= (1 << count) - 1;
        }
        SetBits { from, bits }
    }

    /// The range of offers with this price.
    fn equally_dear(&self, price: u64) -> (usize, usize) {
        let low = self.prices.partition_point(|other| *other < price);
        let high = self.prices.partition_point(|other| *other <= price);
        (low, high)
    }
}

impl IndexRow {
    /// Releases the row's names.
    pub(super) fn release(&self, names: &mut NameTable) {
        names.release(self.provider);
        names.release(self.name);
    }

    /// The offer with its names.
    pub(super) fn found<'i>(&self, names: &'i NameTable) -> Found<'i> {
        let name = names.name(self.name).to_owned();
        Found {
            provider: names.name(self.provider),
            offer: Offer {
                name,
                ..self.kept.offer()
            },
        }
    }

    /// Sort key: price, then the latest expiry. The names make the order unique.
    fn key(&self, price: u64) -> IndexKey {
        (
            price,
            Reverse(self.kept.expires()),
            self.provider,
            self.name,
        )
    }
}

/// Positions in a chunk, one bit each.
struct SetBits {
    from: usize,
    bits: u64,
}

impl Iterator for SetBits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let position = self.bits.trailing_zeros() as usize;
        if self.bits == 0 {
            return None;
        }
        self.bits &= self.bits - 1;
        Some(self.from + position)
    }
}

fn keep<T>(values: &mut Vec<T>, holds: &[bool]) {
    debug_assert_eq!(
        values.len(),
        holds.len(),
        "a column has a value of each row"
    );
    let mut holds = holds.iter();
    values.retain(|_| *holds.next().expect("one for each"));
}
