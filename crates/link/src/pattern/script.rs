//! One direction of a pattern, and following it packet by packet.

use std::sync::Arc;

use posthaste_units::{BitRate, Span};

use super::track::{Changes, Lane, Track, Walk};
use super::{Axis, Effect, Place};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// One direction of a pattern; any number of links follow it, each with a cursor of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub(super) packets: Track,
    pub(super) millis: Track,
}

/// How far a link has come in its script.
#[derive(Clone, Debug)]
pub struct Cursor {
    script: Arc<Script>,
    packets: Walk,
    millis: Walk,
}

/// What happens to one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// It is dropped; nothing else happens to it.
    pub drop: bool,
    /// These bits flip, in order; those behind the packet's end are to be passed over.
    pub flips: Vec<u32>,
    /// Delay of this packet alone, in addition to the link's.
    pub extra_delay: Span,
    /// So many later packets go first.
    pub hold: u32,
    /// So many copies follow it.
    pub copies: u32,
    /// The bandwidth that the pattern has put in force; `None` is the link's own.
    pub bandwidth: Option<BitRate>,
    /// The delay that the pattern has put in force; `None` is the link's own.
    pub delay: Option<Span>,
}

/// What a pattern has put in force while a packet is being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InForce {
    /// As in [`Step`].
    pub(crate) bandwidth: Option<BitRate>,
    /// As in [`Step`].
    pub(crate) delay: Option<Span>,
    /// When the bandwidth changes next by time, since the link's first packet.
    pub(crate) until: Option<Span>,
}

impl Script {
    /// The beginning of the script.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor {
            script: self.clone(),
            packets: Walk::default(),
            millis: Walk::default(),
        }
    }

    /// Whether it ever puts a bandwidth or a delay in force.
    pub(crate) fn changes_conditions(&self) -> bool {
        let changes =
            |track: &Track| !track.bandwidth_from.is_empty() || !track.delay_from.is_empty();
        changes(&self.packets) || changes(&self.millis)
    }

    /// Every entry in canonical order.
    pub fn entries(&self) -> impl Iterator<Item = (Place, Effect)> + '_ {
        [(Axis::Packets, &self.packets), (Axis::Millis, &self.millis)]
            .into_iter()
            .flat_map(|(axis, track)| track_entries(axis, track))
    }
}

fn track_entries(axis: Axis, track: &Track) -> impl Iterator<Item = (Place, Effect)> + '_ {
    let at = move |first: u64| Place {
        axis,
        first,
        last: first,
    };
    let repeat = track.repeat.map(move |period| (at(period), Effect::Repeat));
    repeat
        .into_iter()
        .chain(lane(axis, &track.drop, |()| Effect::Drop))
        .chain(lane(axis, &track.flip, |bits| Effect::Flip(bits.clone())))
        .chain(lane(axis, &track.delay, |delay| Effect::Delay(*delay)))
        .chain(changes(axis, &track.delay_from, Effect::DelayFrom))
        .chain(changes(axis, &track.bandwidth_from, Effect::BandwidthFrom))
        .chain(lane(axis, &track.hold, |later| Effect::Hold(*later)))
        .chain(lane(axis, &track.copy, |copies| Effect::Copy(*copies)))
}

fn lane<V>(
    axis: Axis,
    lane: &Lane<V>,
    effect: impl Fn(&V) -> Effect,
) -> impl Iterator<Item = (Place, Effect)> {
    lane.iter().map(move |held| {
        let place = Place {
            axis,
            first: held.first,
            last: held.last,
        };
        (place, effect(&held.value))
    })
}

fn changes<V: Copy>(
    axis: Axis,
    changes: &Changes<V>,
    effect: impl Fn(Option<V>) -> Effect,
) -> impl Iterator<Item = (Place, Effect)> {
    changes.iter().map(move |&(first, value)| {
        let place = Place {
            axis,
            first,
            last: first,
        };
        (place, effect(value))
    })
}

impl Cursor {
    /// Back to the beginning of its script.
    pub(crate) fn rewind(&mut self) {
        self.packets = Walk::default();
        self.millis = Walk::default();
    }

    /// Whether its script may say something of this packet.
    pub(crate) fn is_busy(&self, position: u64, elapsed: Span) -> bool {
        let millis = || elapsed.as_nanos() / NANOS_PER_MILLI;
        let Script {
            packets,
            millis: by_time,
        } = &*self.script;
        packets.busy.contains(&position)
            || (!by_time.busy.is_empty() && by_time.busy.contains(&millis()))
    }

    /// What is in force for the packet at `position` while it is being sent, `elapsed` after the
    /// arrival of the link's first.
    pub(crate) fn in_force(&mut self, position: u64, elapsed: Span) -> InForce {
        let millis = elapsed.as_nanos() / NANOS_PER_MILLI;
        let Step {
            bandwidth, delay, ..
        } = self.step(position, elapsed);
        let next = self.script.millis.next_bandwidth(&self.millis, millis);
        InForce {
            bandwidth,
            delay,
            until: next.map(|millis| Span::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))),
        }
    }

    /// What happens to the packet at `position` (the first is 1) that arrives `elapsed` after the
    /// link's first.
    ///
    /// Where packet and time both say something of the same kind, the packet's entry holds; a
    /// packet that either of them drops is dropped. Positions and times may come in any order;
    /// growing ones cost least.
    #[inline]
    pub fn step(&mut self, position: u64, elapsed: Span) -> Step {
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
        let in_force = Step {
            drop: by_packet.drop || by_time.drop,
            bandwidth: by_packet.bandwidth_from.or(by_time.bandwidth_from),
            delay: by_packet.delay_from.or(by_time.delay_from),
            ..Step::default()
        };
        if in_force.drop {
            return in_force;
        }
        let flip = by_packet.flip.or(by_time.flip);
        Step {
            flips: flip.map_or_else(Vec::new, |bits| bits.iter().collect()),
            extra_delay: by_packet.delay.or(by_time.delay).unwrap_or_default(),
            hold: by_packet.hold.or(by_time.hold).unwrap_or_default(),
            copies: by_packet.copy.or(by_time.copy).unwrap_or_default(),
            ..in_force
        }
    }
}
