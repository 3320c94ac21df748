//! Comparison of two captures, one at each end, packet by packet.

use std::collections::BTreeMap;

use posthaste_units::{Instant, Span};

use super::Findings;
use super::matching::{Assignment, PacketMark, PairedPacket, assign};

/// Time after the last packet of a capture in which it still ran, in nanoseconds: nobody stops it within a burst.
const BURST: i128 = 100_000;

/// Compares the packets sent with those that arrived, in one direction.
///
/// The caller makes a mark of everything in a packet that does not change on the way. Among packets with equal marks,
/// the packets sent between them decide: those whose arrival is certain arrived in a known order after a known delay.
/// The choice with the fewest overtaken packets and the smallest deviation of delay is taken. If another one is nearly
/// as good, the missing packet counts as uncertain.
///
/// A packet that did not arrive is lost, one that arrived again is copied, and one overtaken by later ones is held for
/// that many. The clocks of the two ends need not agree. Delays are counted from the smallest, so that the pattern holds
/// only the variation. A drift of one clock shows as delay. Without times there are no delays.
///
/// A packet that would have arrived, after the smallest delay, before the first or 100 µs after the last packet of the
/// receiver's capture is counted apart, since its fate is unknown. If nothing arrived, the clocks cannot be compared:
/// all packets are lost if the receiver's capture holds any packet, and are counted apart if not. If packets arrived and
/// none of them was sent, the captures are not of the same packets, and nothing is lost.
#[derive(Debug, Default)]
pub struct CapturePair {
    sent: Vec<PairedPacket>,
    arrived: Vec<PairedPacket>,
    /// First and last time in the receiver's capture.
    ran: Option<(Instant, Instant)>,
    /// The receiver's capture also ran before that.
    from_the_first: bool,
    /// The captures are not of the same connections.
    is_foreign: bool,
}

impl CapturePair {
    /// Adds the next packet of the sender's capture.
    pub fn sent(&mut self, at: Option<Instant>, mark: PacketMark) {
        self.sent.push(PairedPacket { at, mark });
    }

    /// Adds the next packet of the receiver's capture.
    pub fn arrived(&mut self, at: Option<Instant>, mark: PacketMark) {
        self.ran(at);
        self.arrived.push(PairedPacket { at, mark });
    }

    /// Notes a packet at this time in the receiver's capture, of any connection or direction.
    pub fn ran(&mut self, at: Option<Instant>) {
        let at = at.unwrap_or(Instant::ORIGIN);
        let (first, last) = self.ran.unwrap_or((at, at));
        self.ran = Some((first.min(at), last.max(at)));
    }

    /// States that the receiver's capture ran when the first packet was sent: it shows the beginning of that
    /// connection.
    pub fn ran_from_the_first(&mut self) {
        self.from_the_first = true;
    }

    /// States that no connection is in both captures. Nothing is then known about the packets sent.
    pub fn set_foreign(&mut self) {
        self.is_foreign = true;
    }

    /// Returns the findings. Delays are rounded down to `grain`, so that equal ones join; a grain of zero keeps them
    /// exact.
    pub fn finish(self, grain: Span) -> Findings {
        let assignment = assign(&self.sent, &self.arrived);
        let timed = (self.sent.iter().chain(&self.arrived)).all(|packet| packet.at.is_some());
        let least = (assignment.arrivals.iter())
            .map(|(sent, arrived)| self.delay(*sent, *arrived))
            .min()
            .filter(|_| timed);
        let none_common =
            !self.sent.is_empty() && assignment.arrivals.is_empty() && assignment.unsent > 0;
        let foreign = self.is_foreign || none_common;
        let (lost, outside): (Vec<usize>, Vec<usize>) = (assignment.missing.iter().copied())
            .partition(|sent| !foreign && self.might_show(*sent, least));
        let uncertain = (assignment.uncertain.iter())
            .filter(|sent| lost.binary_search(sent).is_ok())
            .count();
        let overtaken = overtaken(&assignment.arrivals);
        let mut copied: BTreeMap<u64, u32> = BTreeMap::new();
        for sent in &assignment.copies {
            *copied.entry(position(*sent)).or_default() += 1;
        }
        Findings {
            packets: self.sent.len() as u64,
            lost: lost.into_iter().map(position).collect(),
            delayed: least.map_or_else(Vec::new, |least| {
                self.delayed(&assignment, &overtaken, least, grain)
            }),
            overtaken,
            copied: copied.into_iter().collect(),
            uncertain: uncertain as u64,
            unassigned: assignment.unassigned,
            unsent: assignment.unsent,
            foreign,
            least_ns: least,
            outside: outside.len() as u64,
            ..Findings::default()
        }
    }

    /// True if the receiver's capture ran when this packet was due, or if that is not known.
    fn might_show(&self, sent: usize, least: Option<i128>) -> bool {
        let (Some((first, last)), Some(least)) = (self.ran, least) else {
            return self.ran.is_some();
        };
        let due = nanos(&self.sent[sent]) + least;
        let after_first = self.from_the_first || due >= i128::from(first.as_nanos());
        after_first && due <= i128::from(last.as_nanos()) + BURST
    }

    fn delay(&self, sent: usize, arrived: usize) -> i128 {
        nanos(&self.arrived[arrived]) - nanos(&self.sent[sent])
    }

    /// Positions of packets slower than the fastest, without those that were overtaken.
    fn delayed(
        &self,
        assignment: &Assignment,
        overtaken: &[(u64, u32)],
        least: i128,
        grain: Span,
    ) -> Vec<(u64, Span)> {
        let grain = grain.as_nanos().max(1);
        let is_held = |at: u64| overtaken.binary_search_by_key(&at, |held| held.0).is_ok();
        let mut delayed: Vec<(u64, Span)> = (assignment.arrivals.iter())
            .filter(|(sent, _)| !is_held(position(*sent)))
            .map(|(sent, arrived)| {
                let beyond = u64::try_from(self.delay(*sent, *arrived) - least).unwrap_or(u64::MAX);
                (position(*sent), Span::from_nanos(beyond / grain * grain))
            })
            .filter(|(_, delay)| !delay.is_zero())
            .collect();
        delayed.sort_unstable();
        delayed
    }
}

/// The position of the packet with this index.
fn position(index: usize) -> u64 {
    index as u64 + 1
}

fn nanos(packet: &PairedPacket) -> i128 {
    packet.at.map_or(0, |at| i128::from(at.as_nanos()))
}

/// Positions that arrived after later ones, with the number of those, by position.
fn overtaken(arrivals: &[(usize, usize)]) -> Vec<(u64, u32)> {
    // A Fenwick tree over positions counts those that have arrived.
    let largest = arrivals.iter().map(|(sent, _)| sent + 1).max();
    let size = largest.unwrap_or_default();
    let mut tree = vec![0u32; size + 1];
    let mut all = Vec::new();
    for (before, (sent, _)) in arrivals.iter().enumerate() {
        let mut smaller = 0;
        let mut at = sent + 1;
        while at > 0 {
            smaller += tree[at];
            at &= at - 1;
        }
        let later = u32::try_from(before).unwrap_or(u32::MAX) - smaller;
        if later > 0 {
            all.push((position(*sent), later));
        }
        let mut at = sent + 1;
        while at <= size {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    all.sort_unstable();
    all
}
