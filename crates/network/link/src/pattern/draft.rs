//! A pattern under construction: entries are added in any order and checked at once.
//!
//! A contradictory entry is rejected with a reference to the other entry. A pattern beyond its limit is rejected before
//! it takes the memory. The text is left to `read`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use posthaste_units::{BitRate, Span};
use thiserror::Error;

use super::track::{Changes, RangeValue, Ranges, Track};
use super::{Bits, ENTRIES, FARTHEST, LossShare, Pattern, Script};
use crate::Direction;

/// Unit of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Packets of this direction, from 1.
    Packets,
    /// Milliseconds since the link's first packet in this direction, from 0. An entry for a millisecond applies to each
    /// packet that arrives in it.
    Millis,
}

/// A range of packets or milliseconds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternRange {
    /// Unit of the range.
    pub axis: Axis,
    /// First packet or millisecond.
    pub first: u64,
    /// Last packet or millisecond; equal to `first` for a single one.
    pub last: u64,
}

/// Effect on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Drops the packets.
    Drop,
    /// Flips these bits of each packet.
    Flip(Bits),
    /// Delays each packet in addition to the link's delay, by at most an hour.
    Delay(Span),
    /// Holds each packet back until this number of later ones have left: 1 to 65,535.
    Hold(u32),
    /// Makes this number of copies of each packet: 1 to 255.
    Copy(u32),
    /// Sets the link's delay from the beginning of the place on; `None` restores the plan's.
    DelayFrom(Option<Span>),
    /// Sets the link's bandwidth from the beginning of the place on; `None` restores the plan's.
    BandwidthFrom(Option<BitRate>),
    /// Sets the link's probability of loss from the beginning of the place on; `None` restores the plan's model.
    LossFrom(Option<LossShare>),
    /// Delivery opportunities at the beginning of each of the milliseconds, instead of a bandwidth: 1 to 1,000,000.
    Opportunities(u32),
    /// Repeats all entries of the axis after this number of packets or milliseconds.
    Repeat,
}

/// One entry of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternEntry {
    /// Direction of the packets: from the client (up) or to it (down).
    pub direction: Direction,
    /// Positions or times of the effect.
    pub range: PatternRange,
    /// Effect in that range.
    pub effect: Effect,
}

/// Reason to reject an entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{violation}: {remedy}")]
pub struct PatternRefusal {
    /// The error.
    pub violation: String,
    /// Correct form.
    pub remedy: String,
}

impl PatternRefusal {
    pub(super) fn new(violation: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            violation: violation.into(),
            remedy: remedy.into(),
        }
    }
}

impl Axis {
    /// Number of the first packet or millisecond.
    pub const fn base(self) -> u64 {
        match self {
            Self::Packets => 1,
            Self::Millis => 0,
        }
    }
}

impl PatternRange {
    /// Packets `first` to `last`, counted from 1.
    pub const fn packets(first: u64, last: u64) -> Self {
        Self {
            axis: Axis::Packets,
            first,
            last,
        }
    }

    /// Milliseconds `first` to `last`, counted from 0.
    pub const fn millis(first: u64, last: u64) -> Self {
        Self {
            axis: Axis::Millis,
            first,
            last,
        }
    }

    fn check(&self) -> Result<(), PatternRefusal> {
        if self.first < self.axis.base() {
            return Err(PatternRefusal::new(
                "there is no packet 0",
                "the first packet is 1",
            ));
        }
        if self.last < self.first {
            return Err(PatternRefusal::new(
                format!("the range {self} runs backwards"),
                "write the smaller end first",
            ));
        }
        if self.last > FARTHEST {
            return Err(PatternRefusal::new(
                format!("{self} is out of reach"),
                format!("the last packet and the last millisecond are {FARTHEST}"),
            ));
        }
        Ok(())
    }
}

/// Longest delay of a pattern.
const DELAY: Span = Span::from_secs(3600);

impl Effect {
    fn check(&self) -> Result<(), PatternRefusal> {
        let refuse = |violation: &str, remedy: &str| Err(PatternRefusal::new(violation, remedy));
        match self {
            Self::Delay(delay) | Self::DelayFrom(Some(delay)) if *delay > DELAY => {
                refuse("a delay of more than an hour", "write at most 1h")
            }
            Self::Hold(later) if !(1..=65_535).contains(later) => refuse(
                "no such number of packets can go first",
                "write 1 to 65535 behind the colon",
            ),
            Self::Copy(copies) if !(1..=255).contains(copies) => refuse(
                "no such number of copies can follow",
                "write 1 to 255 behind the colon",
            ),
            Self::Opportunities(count) if !(1..=1_000_000).contains(count) => refuse(
                "no such number of delivery opportunities fits a millisecond",
                "write 1 to 1000000 behind the colon",
            ),
            Self::Flip(bits) if bits.ranges().len() > Bits::RANGES => Err(Bits::too_many_ranges()),
            _ => Ok(()),
        }
    }
}

/// A pattern under construction.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    up: DirectionDraft,
    down: DirectionDraft,
    entries: usize,
}

#[derive(Clone, Debug, Default)]
struct DirectionDraft {
    packets: Tracks,
    millis: Tracks,
}

/// A track with ranges in any order.
#[derive(Clone, Debug, Default)]
struct Tracks {
    repeat: Option<u64>,
    reach: u64,
    drop: OpenRanges<()>,
    flip: OpenRanges<Bits>,
    delay: OpenRanges<Span>,
    hold: OpenRanges<u32>,
    copy: OpenRanges<u32>,
    delay_from: BTreeMap<u64, Option<Span>>,
    bandwidth_from: BTreeMap<u64, Option<BitRate>>,
    loss_from: BTreeMap<u64, Option<LossShare>>,
    opportunities: OpenRanges<u32>,
}

impl Draft {
    /// Adds one entry, or returns the reason against it. The draft is then unchanged.
    pub fn add(&mut self, entry: PatternEntry) -> Result<(), PatternRefusal> {
        let PatternEntry {
            direction,
            range,
            effect,
        } = entry;
        range.check()?;
        effect.check()?;
        let cost = match &effect {
            Effect::Flip(bits) => bits.ranges().len(),
            _ => 1,
        };
        if self.entries + cost > ENTRIES {
            return Err(PatternRefusal::new(
                format!("more than {ENTRIES} entries"),
                "join neighbours to ranges (1-1000 is one entry), use `repeat`, or split the run",
            ));
        }
        let side = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let (track, other) = match range.axis {
            Axis::Packets => (&mut side.packets, &side.millis),
            Axis::Millis => (&mut side.millis, &side.packets),
        };
        track.unmixed(other, &effect)?;
        track.add(range, effect)?;
        self.entries += cost;
        debug_assert!(self.entries <= ENTRIES, "a draft exceeds its limit");
        Ok(())
    }

    /// The pattern of all entries.
    pub fn finish(self) -> Pattern {
        let script = |side: DirectionDraft| {
            Arc::new(Script {
                packets: side.packets.finish(),
                millis: side.millis.finish(),
            })
        };
        Pattern {
            up: script(self.up),
            down: script(self.down),
        }
    }
}

impl Tracks {
    fn add(&mut self, range: PatternRange, effect: Effect) -> Result<(), PatternRefusal> {
        if let Effect::Repeat = effect {
            return self.repeat(range);
        }
        let from = matches!(
            effect,
            Effect::DelayFrom(_) | Effect::BandwidthFrom(_) | Effect::LossFrom(_)
        );
        let last = if from { range.first } else { range.last };
        let reach = last - range.axis.base() + 1;
        if let Some(period) = self.repeat.filter(|period| reach > *period) {
            return Err(never_reached(range, period));
        }
        match effect {
            Effect::Drop => {
                self.undropped_only(range)?;
                self.drop.add("dropped", range, ())?;
            }
            Effect::Flip(bits) => {
                self.not_dropped(range)?;
                self.flip.add("flipped", range, bits)?;
            }
            Effect::Delay(delay) => {
                self.not_dropped(range)?;
                self.delay.add("delayed", range, delay)?;
            }
            Effect::Hold(later) => {
                self.not_dropped(range)?;
                self.hold.add("held", range, later)?;
            }
            Effect::Copy(copies) => {
                self.not_dropped(range)?;
                self.copy.add("copied", range, copies)?;
            }
            Effect::DelayFrom(delay) => change(&mut self.delay_from, range, delay)?,
            Effect::BandwidthFrom(rate) => change(&mut self.bandwidth_from, range, rate)?,
            Effect::LossFrom(share) => change(&mut self.loss_from, range, share)?,
            Effect::Opportunities(count) => {
                by_time_only(range)?;
                self.opportunities.add("with opportunities", range, count)?;
            }
            Effect::Repeat => {}
        }
        self.reach = self.reach.max(reach);
        Ok(())
    }

    fn repeat(&mut self, range: PatternRange) -> Result<(), PatternRefusal> {
        let period = range.first;
        if self.repeat.is_some() {
            return Err(PatternRefusal::new(
                "the repetition is stated already",
                "leave one of the two",
            ));
        }
        if period == 0 {
            return Err(PatternRefusal::new(
                "nothing can repeat after no time",
                "write a time, for example `repeat 60s`",
            ));
        }
        if self.reach > period {
            let last = self.reach - 1 + range.axis.base();
            let furthest = PatternRange {
                first: last,
                last,
                ..range
            };
            return Err(never_reached(furthest, period));
        }
        self.repeat = Some(period);
        Ok(())
    }

    /// Rejects a change of conditions both by packet and by time. The later of two changes would depend on the traffic.
    fn unmixed(&self, other: &Self, effect: &Effect) -> Result<(), PatternRefusal> {
        let mixed = match effect {
            Effect::DelayFrom(_) => !other.delay_from.is_empty(),
            Effect::BandwidthFrom(_) => !other.bandwidth_from.is_empty(),
            Effect::LossFrom(_) => !other.loss_from.is_empty(),
            _ => false,
        };
        let sides = [self, other];
        let contradicts = match effect {
            Effect::BandwidthFrom(_) => sides.iter().any(|side| !side.opportunities.0.is_empty()),
            Effect::Opportunities(_) => sides.iter().any(|side| !side.bandwidth_from.is_empty()),
            _ => false,
        };
        if contradicts {
            return Err(PatternRefusal::new(
                "it has both a bandwidth and delivery opportunities",
                "leave one of the two out in this direction",
            ));
        }
        if mixed {
            return Err(PatternRefusal::new(
                "it changes both by packet and by time",
                "tell all changes of it in this direction in one of the two",
            ));
        }
        Ok(())
    }

    fn not_dropped(&self, range: PatternRange) -> Result<(), PatternRefusal> {
        match self.drop.overlap(range) {
            Some(other) => Err(PatternRefusal::new(
                format!("it overlaps {other}, dropped already"),
                "take it out of one of the two",
            )),
            None => Ok(()),
        }
    }

    fn undropped_only(&self, range: PatternRange) -> Result<(), PatternRefusal> {
        let others = [
            (self.flip.overlap(range), "flipped"),
            (self.delay.overlap(range), "delayed"),
            (self.hold.overlap(range), "held"),
            (self.copy.overlap(range), "copied"),
        ];
        for (other, state) in others {
            if let Some(other) = other {
                return Err(PatternRefusal::new(
                    format!(
                        "it overlaps {other}, {state} already, and what is dropped is not {state}"
                    ),
                    "take it out of one of the two",
                ));
            }
        }
        Ok(())
    }

    fn finish(self) -> Track {
        Track {
            repeat: self.repeat,
            drop: self.drop.finish(),
            flip: self.flip.finish(),
            delay: self.delay.finish(),
            hold: self.hold.finish(),
            copy: self.copy.finish(),
            delay_from: changes(self.delay_from),
            bandwidth_from: changes(self.bandwidth_from),
            loss_from: changes(self.loss_from),
            opportunities: self.opportunities.finish(),
            ..Track::default()
        }
        .measured()
    }
}

fn by_time_only(range: PatternRange) -> Result<(), PatternRefusal> {
    if range.axis == Axis::Millis {
        return Ok(());
    }
    Err(PatternRefusal::new(
        "delivery opportunities come at times",
        "write milliseconds, for example `opportunities 5ms: 2`",
    ))
}

fn never_reached(range: PatternRange, period: u64) -> PatternRefusal {
    let period = PatternRange {
        first: period,
        last: period,
        ..range
    };
    PatternRefusal::new(
        format!("{range} cannot be reached, since the pattern begins again after {period}"),
        "repeat later, or leave the entry out",
    )
}

/// Ranges with values, by their first place.
#[derive(Clone, Debug)]
struct OpenRanges<V>(BTreeMap<u64, (u64, V)>);

impl<V> Default for OpenRanges<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: PartialEq> OpenRanges<V> {
    fn add(&mut self, state: &str, range: PatternRange, value: V) -> Result<(), PatternRefusal> {
        if let Some(other) = self.overlap(range) {
            return Err(PatternRefusal::new(
                format!("it overlaps {other}, {state} already"),
                "take it out of one of the two",
            ));
        }
        self.0.insert(range.first, (range.last, value));
        Ok(())
    }

    /// A range that overlaps this one.
    fn overlap(&self, range: PatternRange) -> Option<PatternRange> {
        let (first, (last, _)) = self.0.range(..=range.last).next_back()?;
        (*last >= range.first).then_some(PatternRange {
            axis: range.axis,
            first: *first,
            last: *last,
        })
    }

    fn finish(self) -> Ranges<V> {
        let mut ranges: Ranges<V> = Vec::with_capacity(self.0.len());
        for (first, (last, value)) in self.0 {
            match ranges.last_mut() {
                Some(before) if before.last + 1 == first && before.value == value => {
                    before.last = last;
                }
                _ => ranges.push(RangeValue { first, last, value }),
            }
        }
        debug_assert!(
            ranges.windows(2).all(|pair| pair[0].last < pair[1].first),
            "ranges overlap or are out of order"
        );
        ranges.shrink_to_fit();
        ranges
    }
}

fn change<V>(
    changes: &mut BTreeMap<u64, V>,
    range: PatternRange,
    value: V,
) -> Result<(), PatternRefusal> {
    if changes.contains_key(&range.first) {
        return Err(PatternRefusal::new(
            "it changes here already",
            "leave one of the two",
        ));
    }
    changes.insert(range.first, value);
    Ok(())
}

/// Changes without those that change nothing.
fn changes<V: PartialEq>(all: BTreeMap<u64, Option<V>>) -> Changes<V> {
    let mut kept: Changes<V> = Vec::with_capacity(all.len());
    for (from, value) in all {
        if kept.last().is_none_or(|(_, before)| *before != value) {
            kept.push((from, value));
        }
    }
    kept
}

impl fmt::Display for PatternRange {
    /// As in the text, with "packet" before positions so that it fits into a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.axis, self.first == self.last) {
            (Axis::Packets, true) => write!(f, "packet {}", self.first),
            (Axis::Packets, false) => write!(f, "packets {}-{}", self.first, self.last),
            (Axis::Millis, true) => write!(f, "{}ms", self.first),
            (Axis::Millis, false) => {
                write!(f, "{}ms-{}ms", self.first, self.last.saturating_add(1))
            }
        }
    }
}
