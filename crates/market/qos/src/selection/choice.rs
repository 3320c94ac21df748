//! The choice of an offer for one request, and the reasons against others.

use std::ops::Range;

use jiff::Timestamp;

use super::columns::ColumnBounds;
use super::table::{OfferTable, Row, UNSTATED_TIME, share};
use super::terms::{Percentile, RequestTerms};

/// Offers of one price that are compared by their requests in flight. More would only spread them more evenly.
const COMPARED: usize = 16;

/// A chosen offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its position in [`OfferTable::offers`].
    pub position: usize,
    /// Reason for the choice.
    pub ground: Ground,
}

/// Reason for a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The cheapest adequate offer.
    Cheapest,
    /// The offer that the request has selected.
    Selected,
    /// An offer that is passed over because of its measurement, to measure it again.
    Probe,
}

/// Reasons why no offer is adequate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOffer {
    /// Position of the cheapest offer that is adequate except for its price.
    pub too_expensive: Option<usize>,
}

/// Reason against an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassReason {
    /// Its price is above the maximum.
    Price,
    /// It has ended.
    Expired,
    /// It promises no processing time, or a longer one.
    PromisedSlow,
    /// It promises no reliability, or a lower one.
    PromisedUnreliable,
    /// Its measured times are above the bound.
    MeasuredSlow,
    /// Its measured failures are above the bound.
    MeasuredFailing,
    /// Its endpoint is excluded, or has failed for this request.
    Unreachable,
}

impl PassReason {
    /// Every reason, in the order in which they are judged.
    pub const ALL: [Self; 7] = [
        Self::Price,
        Self::Expired,
        Self::PromisedSlow,
        Self::PromisedUnreliable,
        Self::MeasuredSlow,
        Self::MeasuredFailing,
        Self::Unreachable,
    ];

    /// Its name in fields and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Price => "price",
            Self::Expired => "expired",
            Self::PromisedSlow => "promised-slow",
            Self::PromisedUnreliable => "promised-unreliable",
            Self::MeasuredSlow => "measured-slow",
            Self::MeasuredFailing => "measured-failing",
            Self::Unreachable => "unreachable",
        }
    }

    /// True if the promise is right, and only the measurement is against the offer.
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::MeasuredSlow | Self::MeasuredFailing)
    }
}

/// Terms of one request in the units of the table, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct TermBounds {
    price: u64,
    now: i64,
    time: u64,
    percentile: Percentile,
    reliability: u32,
    /// Least measured share of success.
    success: u32,
    /// `success` follows from no stated term.
    is_implied: bool,
}

impl TermBounds {
    /// Prepares the terms of a request for comparison. The currency of a maximum price must be that of the table.
    pub fn new(terms: &RequestTerms, now: Timestamp) -> Self {
        let latency = terms.max_latency;
        let reliability = terms.min_reliability.map(|least| share(least.get()));
        Self {
            price: terms.max_price.map_or(u64::MAX, |most| most.micros()),
            now: now.as_millisecond(),
            time: latency.map_or(UNSTATED_TIME, |bound| {
                bound.most.as_nanos().min(UNSTATED_TIME - 1)
            }),
            percentile: latency.map_or(Percentile::default(), |bound| bound.percentile),
            reliability: reliability.unwrap_or(0),
            success: reliability.unwrap_or(share(0.5)),
            is_implied: reliability.is_none(),
        }
    }

    /// The same terms at another moment.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self {
            now: now.as_millisecond(),
            ..self
        }
    }

    /// Reason against an offer, apart from its endpoint.
    fn objection(&self, row: &Row) -> Option<PassReason> {
        if self.is_adequate(row) && row.price <= self.price {
            return None;
        }
        let is_slow = row.time > self.time;
        Some(match row {
            _ if row.price > self.price => PassReason::Price,
            _ if row.expires <= self.now => PassReason::Expired,
            _ if is_slow => PassReason::PromisedSlow,
            _ if row.reliability < self.reliability => PassReason::PromisedUnreliable,
            _ if self.measured(row) > self.time => PassReason::MeasuredSlow,
            _ => PassReason::MeasuredFailing,
        })
    }

    /// True if nothing but the price or the endpoint may be against the offer.
    fn is_adequate(&self, row: &Row) -> bool {
        row.expires > self.now
            && row.time <= self.time
            && row.reliability >= self.reliability
            && self.measured(row) <= self.time
            && row.success >= self.success
    }

    fn of_columns(&self) -> ColumnBounds {
        ColumnBounds {
            percentile: self.percentile,
            time: self.time,
            reliability: self.reliability,
            success: self.success,
        }
    }

    fn measured(&self, row: &Row) -> u64 {
        match self.percentile {
            Percentile::P50 => row.p50,
            Percentile::P99 => row.p99,
        }
    }

    /// The same terms without the reliability that nobody has stated. `None` if it was stated.
    fn without_implied(&self) -> Option<Self> {
        self.is_implied.then_some(Self {
            success: 0,
            is_implied: false,
            ..*self
        })
    }
}

impl<T> OfferTable<T> {
    /// Chooses an offer. `in_flight` returns the requests in flight to an endpoint, or `None` if it cannot be used.
    /// Offers of one price take turns, starting at `rotation`.
    pub fn choose(
        &self,
        bounds: &TermBounds,
        selected: Option<&str>,
        rotation: usize,
        in_flight: impl Fn(u32) -> Option<usize>,
    ) -> Result<Choice, NoOffer> {
        if let Some(position) = self.selected(bounds, selected, &in_flight) {
            return Ok(Choice {
                position,
                ground: Ground::Selected,
            });
        }
        let found = self.cheapest(bounds, rotation, &in_flight);
        let lenient = || {
            let bounds = bounds.without_implied()?;
            self.cheapest(&bounds, rotation, &in_flight).ok()
        };
        found.or_else(|none| lenient().ok_or(none))
    }

    /// Chooses an offer before the position `end` that only its measurement is against: the first after the position
    /// `after`, in turn. A request goes there to measure it again.
    pub fn probe(
        &self,
        bounds: &TermBounds,
        end: usize,
        after: usize,
        in_flight: impl Fn(u32) -> Option<usize>,
    ) -> Option<Choice> {
        let is_due = |position: &usize| {
            let row = &self.rows[*position];
            let objection = bounds.objection(row);
            objection.is_some_and(PassReason::is_measured) && in_flight(row.endpoint).is_some()
        };
        let end = end.min(self.rows.len());
        let middle = (after + 1).min(end);
        let position = (middle..end).chain(0..middle).find(is_due)?;
        Some(Choice {
            position,
            ground: Ground::Probe,
        })
    }

    /// The reason against the offer at `position`. `None` if it is adequate.
    pub fn objection(
        &self,
        bounds: &TermBounds,
        position: usize,
        in_flight: impl Fn(u32) -> Option<usize>,
    ) -> Option<PassReason> {
        let row = &self.rows[position];
        let unreachable = || in_flight(row.endpoint).is_none();
        bounds
            .objection(row)
            .or_else(|| unreachable().then_some(PassReason::Unreachable))
    }

    fn selected(
        &self,
        bounds: &TermBounds,
        selected: Option<&str>,
        in_flight: &impl Fn(u32) -> Option<usize>,
    ) -> Option<usize> {
        let positions = self.named(selected?).iter().copied();
        let is_usable = |position: &usize| {
            let row = &self.rows[*position];
            bounds.objection(row).is_none() && in_flight(row.endpoint).is_some()
        };
        positions.into_iter().find(is_usable)
    }

    fn cheapest(
        &self,
        bounds: &TermBounds,
        rotation: usize,
        in_flight: &impl Fn(u32) -> Option<usize>,
    ) -> Result<Choice, NoOffer> {
        let end = self.rows.partition_point(|row| row.price <= bounds.price);
        if let Some(first) = self.next_usable(bounds, 0..end, in_flight) {
            let row = &self.rows[first];
            let same = row.start as usize..row.end as usize;
            let position = match same.len() {
                1 => first,
                _ => self.least_busy(bounds, first, same, rotation, in_flight),
            };
            return Ok(Choice {
                position,
                ground: Ground::Cheapest,
            });
        }
        Err(NoOffer {
            too_expensive: self.next_usable(bounds, end..self.rows.len(), in_flight),
        })
    }

    /// Position of the first usable offer, whatever its price.
    fn next_usable(
        &self,
        bounds: &TermBounds,
        mut positions: Range<usize>,
        in_flight: &impl Fn(u32) -> Option<usize>,
    ) -> Option<usize> {
        let columns = bounds.of_columns();
        loop {
            let position = self.columns.first(positions.clone(), &columns)?;
            let row = &self.rows[position];
            if bounds.is_adequate(row) && in_flight(row.endpoint).is_some() {
                return Some(position);
            }
            positions.start = position + 1;
        }
    }

    /// The offer of one price whose endpoint has the fewest requests in flight, of the next [`COMPARED`] usable ones from
    /// the rotation on. The first usable one is known.
    fn least_busy(
        &self,
        bounds: &TermBounds,
        known: usize,
        same: Range<usize>,
        rotation: usize,
        in_flight: &impl Fn(u32) -> Option<usize>,
    ) -> usize {
        debug_assert!(same.contains(&known), "it has the price of the others");
        let start = known.max(same.start + rotation % same.len());
        let busy = |position: usize| in_flight(self.rows[position].endpoint);
        let mut least = (None, known);
        let mut left = COMPARED;
        for mut positions in [start..same.end, known..start] {
            while left > 0
                && let Some(position) = self.next_usable(bounds, positions.clone(), in_flight)
            {
                if least.0.is_none() || busy(position) < least.0 {
                    least = (busy(position), position);
                }
                left -= 1;
                positions.start = position + 1;
            }
        }
        least.1
    }
}
