//! Entries of one direction along one axis: sorted, disjoint ranges, and iteration over them.
//!
//! Packets are counted from 1 and milliseconds from 0; both are plain numbers here. A range is one entry regardless of
//! its length. `draft` has checked the ranges.

use std::ops::Range;

use posthaste_units::{BitRate, Span};

use super::{Bits, LossShare};

/// A value for the places from `first` to `last`, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeValue<V> {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) value: V,
}

/// Ranges in order. Adjacent ranges have different values.
pub(super) type Ranges<V> = Vec<RangeValue<V>>;

/// Values in force from a place on; `None` restores the plan's.
pub(super) type Changes<V> = Vec<(u64, Option<V>)>;

/// All entries along one axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Track {
    /// Period in packets or milliseconds after which the track repeats.
    pub(super) repeat: Option<u64>,
    pub(super) drop: Ranges<()>,
    pub(super) flip: Ranges<Bits>,
    pub(super) delay: Ranges<Span>,
    pub(super) hold: Ranges<u32>,
    pub(super) copy: Ranges<u32>,
    pub(super) delay_from: Changes<Span>,
    pub(super) bandwidth_from: Changes<BitRate>,
    pub(super) loss_from: Changes<LossShare>,
    /// Delivery opportunities in each millisecond. They have no effect on arrivals.
    pub(super) opportunities: Ranges<u32>,
    /// Places outside which nothing happens; see [`Self::measured`].
    pub(super) busy: Range<u64>,
}

/// Entries of a track for one place.
#[derive(Debug, Default)]
pub(super) struct PlaceEffects<'a> {
    pub(super) drop: bool,
    pub(super) flip: Option<&'a Bits>,
    pub(super) delay: Option<Span>,
    pub(super) hold: Option<u32>,
    pub(super) copy: Option<u32>,
    pub(super) delay_from: Option<Span>,
    pub(super) bandwidth_from: Option<BitRate>,
    pub(super) loss_from: Option<LossShare>,
}

/// Index reached in each list. Places mostly increase, so a step costs almost nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    drop: usize,
    flip: usize,
    delay: usize,
    hold: usize,
    copy: usize,
    delay_from: usize,
    bandwidth_from: usize,
    loss_from: usize,
}

impl Track {
    /// The same track with `busy` set, so that a place without entries costs nothing.
    pub(super) fn measured(mut self) -> Self {
        let spans = [
            reach(&self.drop),
            reach(&self.flip),
            reach(&self.delay),
            reach(&self.hold),
            reach(&self.copy),
        ];
        let mut busy = Range::default();
        for span in spans.into_iter().flatten() {
            busy = if busy.is_empty() {
                span
            } else {
                busy.start.min(span.start)..busy.end.max(span.end)
            };
        }
        let lasts = !self.delay_from.is_empty()
            || !self.bandwidth_from.is_empty()
            || !self.loss_from.is_empty();
        if lasts || (self.repeat.is_some() && !busy.is_empty()) {
            busy = 0..u64::MAX;
        }
        self.busy = busy;
        self
    }

    /// Entries for the place `offset` packets or milliseconds after the first; `base` is the number of the first.
    pub(super) fn at(&self, walk: &mut Walk, offset: u64, base: u64) -> PlaceEffects<'_> {
        if !self.busy.contains(&offset.saturating_add(base)) {
            return PlaceEffects::default();
        }
        let (at, begun_again) = match self.repeat {
            Some(period) => (offset % period + base, offset >= period),
            None => (offset.saturating_add(base), false),
        };
        PlaceEffects {
            drop: held(&self.drop, &mut walk.drop, at).is_some(),
            flip: held(&self.flip, &mut walk.flip, at),
            delay: held(&self.delay, &mut walk.delay, at).copied(),
            hold: held(&self.hold, &mut walk.hold, at).copied(),
            copy: held(&self.copy, &mut walk.copy, at).copied(),
            delay_from: in_force(&self.delay_from, &mut walk.delay_from, at, begun_again),
            bandwidth_from: in_force(
                &self.bandwidth_from,
                &mut walk.bandwidth_from,
                at,
                begun_again,
            ),
            loss_from: in_force(&self.loss_from, &mut walk.loss_from, at, begun_again),
        }
    }

    /// First millisecond from `millis` on with delivery opportunities, and their number. `None` after the last.
    pub(super) fn next_opportunities(&self, millis: u64) -> Option<(u64, u32)> {
        let at = self.repeat.map_or(millis, |period| millis % period);
        let next = self.opportunities.partition_point(|held| held.last < at);
        if let Some(held) = self.opportunities.get(next) {
            return Some((millis - at + held.first.max(at), held.value));
        }
        let (first, period) = (self.opportunities.first()?, self.repeat?);
        let begin = (millis - at).saturating_add(period);
        Some((begin.saturating_add(first.first), first.value))
    }

    /// Next place, counted like `offset`, at which the bandwidth changes. Call it only after [`Self::at`] with the same
    /// offset, and only if the first place is 0.
    pub(super) fn next_bandwidth(&self, walk: &Walk, offset: u64) -> Option<u64> {
        let at = self.repeat.map_or(offset, |period| offset % period);
        debug_assert!(
            walk.bandwidth_from <= self.bandwidth_from.len(),
            "a walk has passed the end of its track"
        );
        match (self.bandwidth_from.get(walk.bandwidth_from), self.repeat) {
            (Some((from, _)), _) => Some(offset - at + from),
            (None, Some(period)) => {
                let (first, _) = self.bandwidth_from.first()?;
                Some((offset - at).saturating_add(period).saturating_add(*first))
            }
            (None, None) => None,
        }
    }
}

/// Range from the first place to the last.
fn reach<V>(ranges: &Ranges<V>) -> Option<Range<u64>> {
    Some(ranges.first()?.first..ranges.last()?.last.saturating_add(1))
}

/// Value at `at`. `next` is the index of the first range that ends at or after the previous place.
fn held<'a, V>(ranges: &'a Ranges<V>, next: &mut usize, at: u64) -> Option<&'a V> {
    if *next > 0 && ranges[*next - 1].last >= at {
        *next = 0;
    }
    *next += ranges[*next..]
        .iter()
        .take_while(|held| held.last < at)
        .count();
    let held = ranges.get(*next).filter(|held| held.first <= at)?;
    Some(&held.value)
}

/// Value in force at `at`; `past` counts the changes so far. A repeated track keeps its last value until the first
/// change.
fn in_force<V: Copy>(
    changes: &Changes<V>,
    past: &mut usize,
    at: u64,
    begun_again: bool,
) -> Option<V> {
    if *past > 0 && changes[*past - 1].0 > at {
        *past = 0;
    }
    *past += changes[*past..]
        .iter()
        .take_while(|(from, _)| *from <= at)
        .count();
    match past.checked_sub(1) {
        Some(last) => changes[last].1,
        None if begun_again => changes.last()?.1,
        None => None,
    }
}
