//! Offers of one type in one currency, by price, as a flat array for the choice.

use std::collections::HashMap;

use jiff::Timestamp;
use posthaste_units::{Ratio, Span};

use super::columns::Columns;
use super::quality::MeasuredQuality;
use crate::definition::{Contract, Definition, Info, Protocols, Requires};
use crate::money::{Currency, Money};

/// An offer with its endpoint and its measurement. `T` is what the caller keeps with it.
#[derive(Clone, Debug)]
pub struct RoutedOffer<T> {
    /// Name of the offer.
    pub name: String,
    /// Price of a request.
    pub price: Money,
    /// Promised values.
    pub promised: Promised,
    /// End of the offer.
    pub expires: Timestamp,
    /// Number of the endpoint, given by the caller. Offers of one endpoint share it.
    pub endpoint: u32,
    /// Measured values.
    pub measured: MeasuredQuality,
    /// Data of the caller.
    pub data: T,
}

/// Promised values of every operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promised {
    /// Maximum processing time.
    pub time: Option<Span>,
    /// Minimum share of requests that are answered well.
    pub reliability: Option<Ratio>,
}

/// Offers of one type in one currency.
#[derive(Clone, Debug)]
pub struct OfferTable<T> {
    /// By price; the columns of the choice.
    pub(super) rows: Vec<Row>,
    /// In the order of `rows`.
    pub(super) columns: Columns,
    /// In the order of `rows`.
    offers: Vec<RoutedOffer<T>>,
    /// Positions by name, the cheapest first.
    by_name: HashMap<String, Vec<usize>>,
}

/// Values of one offer that decide about a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Millionths.
    pub(super) price: u64,
    /// Milliseconds since the epoch. Rounded down, so that no offer is used after its end.
    pub(super) expires: i64,
    /// Promised nanoseconds; [`UNSTATED_TIME`] without a promise.
    pub(super) time: u64,
    /// Measured nanoseconds; 0 with too few requests.
    pub(super) p50: u64,
    /// Measured nanoseconds; 0 with too few requests.
    pub(super) p99: u64,
    /// Promised share, see [`share`]; 0 without a promise.
    pub(super) reliability: u32,
    /// Measured share, see [`share`]; the maximum with too few requests.
    pub(super) success: u32,
    pub(super) endpoint: u32,
    /// Position of the first offer with the same price.
    pub(super) start: u32,
    /// Position after the last offer with the same price.
    pub(super) end: u32,
}

/// Processing time of an offer that promises none.
pub(super) const UNSTATED_TIME: u64 = u64::MAX;

/// A share in billionths, plus 1. Rounded to the nearest, since "99.9%" and 0.999 differ as binary numbers.
pub(super) fn share(share: f64) -> u32 {
    (share * 1e9).round() as u32 + 1
}

impl Promised {
    /// Returns the values that hold for every operation of a definition: the worst of the default and of each operation.
    /// A value that one of them does not promise is not promised.
    pub fn from_definition(definition: &Definition) -> Self {
        let default = &definition.default.server;
        let mut promised = Self {
            time: default.processing_time,
            reliability: default.reliability,
        };
        for own in definition.operations.values() {
            let time = own.server.processing_time.or(default.processing_time);
            promised.time = promised.time.zip(time).map(|(a, b)| a.max(b));
            let reliability = own.server.reliability.or(default.reliability);
            let worst = |(a, b): (Ratio, Ratio)| if b.get() < a.get() { b } else { a };
            promised.reliability = promised.reliability.zip(reliability).map(worst);
        }
        promised
    }
}

impl Definition {
    /// True if an offer with this definition requires something of its client: protocols for security, transactions
    /// and monitoring, or trusted parties.
    pub fn requires_of_client(&self) -> bool {
        let needs = |requires: Requires| requires != Requires::None;
        let info = |info: &Info| {
            let mut groups = info.security.iter();
            groups.any(|group: &Protocols| needs(group.requires) && !group.protocols.is_empty())
        };
        let contract = |contract: &Contract| {
            let is_empty = contract.protocols.is_empty() && contract.parties.is_empty();
            needs(contract.requires) && !is_empty
        };
        info(&self.default)
            || self.operations.values().any(info)
            || self.contracts.iter().any(contract)
    }
}

impl<T> OfferTable<T> {
    /// Builds the table. All prices must be in `currency`. Of equal prices, the offer that ends last comes first, then
    /// the order of `offers` counts.
    pub fn new(currency: Currency, mut offers: Vec<RoutedOffer<T>>) -> Self {
        let is_ours = |offer: &RoutedOffer<T>| offer.price.currency() == currency;
        assert!(offers.iter().all(is_ours), "an offer has another currency");
        offers.sort_by(|a, b| {
            let price = a.price.micros().cmp(&b.price.micros());
            price.then(b.expires.cmp(&a.expires))
        });
        let mut rows: Vec<Row> = offers.iter().map(Row::new).collect();
        let mut end = rows.len() as u32;
        for position in (0..rows.len()).rev() {
            let is_last =
                rows.get(position + 1).map(|next| next.price) != Some(rows[position].price);
            if is_last {
                end = position as u32 + 1;
            }
            rows[position].end = end;
        }
        for position in 1..rows.len() {
            let has_same = rows[position - 1].price == rows[position].price;
            rows[position].start = if has_same {
                rows[position - 1].start
            } else {
                position as u32
            };
        }
        debug_assert!(
            (0..)
                .zip(&rows)
                .all(|(position, row)| (row.start..row.end).contains(&position)),
            "each offer is among those of its price"
        );
        let mut columns = Columns::default();
        for row in &rows {
            columns.push(row.time, row.p50, row.p99, row.reliability, row.success);
        }
        let mut by_name = HashMap::<String, Vec<usize>>::new();
        for (position, offer) in offers.iter().enumerate() {
            by_name
                .entry(offer.name.clone())
                .or_default()
                .push(position);
        }
        Self {
            rows,
            columns,
            offers,
            by_name,
        }
    }

    /// The offers by price.
    pub fn offers(&self) -> &[RoutedOffer<T>] {
        &self.offers
    }

    /// Position of the cheapest offer with this name.
    pub fn position_of(&self, name: &str) -> Option<usize> {
        self.named(name).first().copied()
    }

    /// Positions of the offers with this name, the cheapest first.
    pub(super) fn named(&self, name: &str) -> &[usize] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

impl Row {
    fn new<T>(offer: &RoutedOffer<T>) -> Self {
        let measured = &offer.measured;
        let is_enough = measured.is_enough();
        let known = |time: Span| if is_enough { time.as_nanos() } else { 0 };
        let time = offer.promised.time;
        let reliability = offer.promised.reliability;
        Self {
            price: offer.price.micros(),
            expires: offer.expires.as_millisecond(),
            time: time.map_or(UNSTATED_TIME, Span::as_nanos),
            p50: known(measured.p50),
            p99: known(measured.p99),
            reliability: reliability.map_or(0, |promised| share(promised.get())),
            success: if is_enough {
                share(measured.success())
            } else {
                share(1.0)
            },
            endpoint: offer.endpoint,
            start: 0,
            end: 0,
        }
    }
}
