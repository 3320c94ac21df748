//! One direction of a pattern, and the cursor that follows it packet by packet.

use std::sync::Arc;

use posthaste_units::{BitRate, Span};

use super::track::{Changes, Ranges, Track, Walk};
use super::{Axis, Effect, LossShare, PatternRange};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// One direction of a pattern. Any number of links can follow it, each with its own cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub(super) packets: Track,
    pub(super) millis: Track,
}

/// Progress of a link in its script.
#[derive(Clone, Debug)]
pub struct Cursor {
    script: Arc<Script>,
    packets: Walk,
    millis: Walk,
}

/// Effects on one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketEffects {
    /// The packet is dropped, without other effects.
    pub drop: bool,
    /// Bits to flip, in order. Bits beyond the packet's end must be ignored.
    pub flips: Vec<u32>,
    /// Delay of this packet alone, in addition to the link's.
    pub extra_delay: Span,
    /// Number of later packets that leave before it.
    pub hold: u32,
    /// Number of copies that follow it.
    pub copies: u32,
    /// Bandwidth set by the pattern; `None` for the plan's.
    pub bandwidth: Option<BitRate>,
    /// Delay set by the pattern; `None` for the plan's.
    pub delay: Option<Span>,
    /// Probability of a loss set by the pattern; `None` for the plan's model.
    pub loss: Option<LossShare>,
}

/// Conditions set by a pattern during the transmission of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InForce {
    /// As in [`PacketEffects`].
    pub(crate) bandwidth: Option<BitRate>,
    /// As in [`PacketEffects`].
    pub(crate) delay: Option<Span>,
    /// Next change of the bandwidth by time, since the link's first packet.
    pub(crate) until: Option<Span>,
}

impl Script {
    /// A cursor at the beginning of the script.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor {
            script: self.clone(),
            packets: Walk::default(),
            millis: Walk::default(),
        }
    }

    /// True if it ever sets a bandwidth or a delay.
    pub(crate) fn changes_conditions(&self) -> bool {
        let changes =
            |track: &Track| !track.bandwidth_from.is_empty() || !track.delay_from.is_empty();
        changes(&self.packets) || changes(&self.millis)
    }

    /// True if it has entries by position, which depend on the packets that the link counts.
    pub fn counts_packets(&self) -> bool {
        // Canonical order has the entries by position first.
        let first = self.entries().next();
        first.is_some_and(|(range, _)| range.axis == Axis::Packets)
    }

    /// True if it ever sets a probability of loss.
    pub const fn changes_loss(&self) -> bool {
        !self.packets.loss_from.is_empty() || !self.millis.loss_from.is_empty()
    }

    /// True if packets leave at delivery opportunities instead of at a bandwidth.
    pub(crate) const fn has_opportunities(&self) -> bool {
        !self.millis.opportunities.is_empty()
    }

    /// First millisecond from `millis` on with delivery opportunities, and their number. `None` after the last.
    pub(crate) fn next_opportunities(&self, millis: u64) -> Option<(u64, u32)> {
        self.millis.next_opportunities(millis)
    }

    /// True if it ever delays a packet.
    pub(crate) fn delays(&self) -> bool {
        let delays = |track: &Track| !track.delay.is_empty() || !track.delay_from.is_empty();
        delays(&self.packets) || delays(&self.millis)
    }

    /// All entries in canonical order.
    pub fn entries(&self) -> impl Iterator<Item = (PatternRange, Effect)> + '_ {
        [(Axis::Packets, &self.packets), (Axis::Millis, &self.millis)]
            .into_iter()
            .flat_map(|(axis, track)| track_entries(axis, track))
    }
}

fn track_entries(axis: Axis, track: &Track) -> impl Iterator<Item = (PatternRange, Effect)> + '_ {
    let at = move |first: u64| PatternRange {
        axis,
        first,
        last: first,
    };
    let repeat = track.repeat.map(move |period| (at(period), Effect::Repeat));
    repeat
        .into_iter()
        .chain(ranges(axis, &track.drop, |()| Effect::Drop))
        .chain(ranges(axis, &track.flip, |bits| Effect::Flip(bits.clone())))
        .chain(ranges(axis, &track.delay, |delay| Effect::Delay(*delay)))
        .chain(changes(axis, &track.delay_from, Effect::DelayFrom))
        .chain(changes(axis, &track.bandwidth_from, Effect::BandwidthFrom))
        .chain(changes(axis, &track.loss_from, Effect::LossFrom))
        .chain(ranges(axis, &track.opportunities, |count| {
            Effect::Opportunities(*count)
        }))
        .chain(ranges(axis, &track.hold, |later| Effect::Hold(*later)))
        .chain(ranges(axis, &track.copy, |copies| Effect::Copy(*copies)))
}

fn ranges<V>(
    axis: Axis,
    ranges: &Ranges<V>,
    effect: impl Fn(&V) -> Effect,
) -> impl Iterator<Item = (PatternRange, Effect)> {
    ranges.iter().map(move |held| {
        let range = PatternRange {
            axis,
            first: held.first,
            last: held.last,
        };
        (range, effect(&held.value))
    })
}

fn changes<V: Copy>(
    axis: Axis,
    changes: &Changes<V>,
    effect: impl Fn(Option<V>) -> Effect,
) -> impl Iterator<Item = (PatternRange, Effect)> {
    changes.iter().map(move |&(first, value)| {
        let range = PatternRange {
            axis,
            first,
            last: first,
        };
        (range, effect(value))
    })
}

impl Cursor {
    /// Returns to the beginning of the script.
    pub(crate) fn rewind(&mut self) {
        self.packets = Walk::default();
        self.millis = Walk::default();
    }

    /// True if the script may affect this packet.
    pub(crate) fn is_busy(&self, position: u64, elapsed: Span) -> bool {
        let millis = || elapsed.as_nanos() / NANOS_PER_MILLI;
        let Script {
            packets,
            millis: by_time,
        } = &*self.script;
        packets.busy.contains(&position)
            || (!by_time.busy.is_empty() && by_time.busy.contains(&millis()))
    }

    /// Conditions for the packet at `position` during its transmission, `elapsed` after the arrival of the link's
    /// first.
    pub(crate) fn in_force(&mut self, position: u64, elapsed: Span) -> InForce {
        let millis = elapsed.as_nanos() / NANOS_PER_MILLI;
        let PacketEffects {
            bandwidth, delay, ..
        } = self.step(position, elapsed);
        let next = self.script.millis.next_bandwidth(&self.millis, millis);
        InForce {
            bandwidth,
            delay,
            until: next.map(|millis| Span::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))),
        }
    }

    /// Effects on the packet at `position` (from 1) that arrives `elapsed` after the link's first.
    ///
    /// If packet and time both have an entry of the same kind, the packet's applies. A packet that either of them drops
    /// is dropped. Positions and times may come in any order; increasing ones cost least.
    #[inline]
    pub fn step(&mut self, position: u64, elapsed: Span) -> PacketEffects {
        debug_assert!(position >= Axis::Packets.base(), "positions begin at 1");
        let offset = position.saturating_sub(Axis::Packets.base());
        let millis = elapsed.as_nanos() / NANOS_PER_MILLI;
        let by_packet = self
            .script
            .packets
            .at(&mut self.packets, offset, Axis::Packets.base());
        let by_time = self
            .script
            .millis
            .at(&mut self.millis, millis, Axis::Millis.base());
        let in_force = PacketEffects {
            drop: by_packet.drop || by_time.drop,
            bandwidth: by_packet.bandwidth_from.or(by_time.bandwidth_from),
            delay: by_packet.delay_from.or(by_time.delay_from),
            loss: by_packet.loss_from.or(by_time.loss_from),
            ..PacketEffects::default()
        };
        if in_force.drop {
            return in_force;
        }
        let flip = by_packet.flip.or(by_time.flip);
        PacketEffects {
            flips: flip.map_or_else(Vec::new, |bits| bits.iter().collect()),
            extra_delay: by_packet.delay.or(by_time.delay).unwrap_or_default(),
            hold: by_packet.hold.or(by_time.hold).unwrap_or_default(),
            copies: by_packet.copy.or(by_time.copy).unwrap_or_default(),
            ..in_force
        }
    }
}
