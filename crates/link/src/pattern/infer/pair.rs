//! Comparison of two captures, one at each end, packet by packet.

use std::collections::{BTreeMap, HashMap, VecDeque};

use posthaste_units::{Instant, Span};

use super::Findings;

/// Compares the packets sent with those that arrived, in one direction.
///
/// The caller makes a mark of everything in a packet that does not change on the way. Packets with equal marks are
/// matched in order. A packet that did not arrive is lost, one that arrived again is copied, and one overtaken by later
/// ones is held for that many. The clocks of the two ends need not agree. Delays are counted from the smallest, so that
/// the pattern holds only the variation. A drift of one clock shows as delay.
///
/// A packet that would have arrived, after the smallest delay, before the first or after the last packet of the
/// receiver's capture is counted apart, since its fate is unknown. If nothing arrived, the clocks cannot be compared:
/// all packets are lost if the receiver's capture holds any packet, and are counted apart if not.
#[derive(Debug, Default)]
pub struct CapturePair {
    sent: Vec<Instant>,
    /// Positions that have not arrived yet, by mark.
    waiting: HashMap<u64, VecDeque<u64>>,
    /// Last position that arrived, by mark.
    matched: HashMap<u64, u64>,
    /// Positions in order of arrival, with their times.
    arrived: Vec<(u64, Instant)>,
    copied: BTreeMap<u64, u32>,
    unsent: u64,
    /// First and last time in the receiver's capture.
    ran: Option<(Instant, Instant)>,
    /// The receiver's capture also ran before that.
    from_the_first: bool,
}

impl CapturePair {
    /// Adds the next packet of the sender's capture. All sent packets must precede the first arrived one.
    pub fn sent(&mut self, at: Instant, mark: u64) {
        self.sent.push(at);
        let position = self.sent.len() as u64;
        self.waiting.entry(mark).or_default().push_back(position);
    }

    /// Notes a packet at this time in the receiver's capture, of any connection or direction.
    pub fn ran(&mut self, at: Instant) {
        let (first, last) = self.ran.unwrap_or((at, at));
        self.ran = Some((first.min(at), last.max(at)));
    }

    /// States that the receiver's capture ran when the first packet was sent: it shows the beginning of that
    /// connection.
    pub fn ran_from_the_first(&mut self) {
        self.from_the_first = true;
    }

    /// Adds the next packet of the receiver's capture.
    pub fn arrived(&mut self, at: Instant, mark: u64) {
        self.ran(at);
        let waiting = self.waiting.get_mut(&mark).and_then(VecDeque::pop_front);
        match (waiting, self.matched.get(&mark)) {
            (Some(position), _) => {
                self.matched.insert(mark, position);
                self.arrived.push((position, at));
            }
            (None, Some(position)) => *self.copied.entry(*position).or_default() += 1,
            (None, None) => self.unsent += 1,
        }
    }

    /// Returns the findings. Delays are rounded down to `grain`, so that equal ones join; a grain of zero keeps them
    /// exact.
    pub fn finish(self, grain: Span) -> Findings {
        let overtaken = overtaken(&self.arrived);
        let nanos = |at: Instant| i128::from(at.as_nanos());
        let sent = |position: u64| nanos(self.sent[position as usize - 1]);
        let delay = |(position, at): &(u64, Instant)| nanos(*at) - sent(*position);
        let least = self.arrived.iter().map(delay).min();
        let might_show = |position: &u64| match (self.ran, least) {
            (Some((first, last)), Some(least)) => {
                let due = sent(*position) + least;
                due <= nanos(last) && (self.from_the_first || due >= nanos(first))
            }
            (ran, _) => ran.is_some(),
        };
        let missing = self.waiting.into_values().flatten();
        let (mut lost, outside): (Vec<u64>, Vec<u64>) = missing.partition(might_show);
        lost.sort_unstable();
        let least = least.unwrap_or_default();
        let mut delayed: Vec<(u64, Span)> = self
            .arrived
            .iter()
            .filter(|(position, _)| {
                overtaken
                    .binary_search_by_key(position, |held| held.0)
                    .is_err()
            })
            .map(|packet| {
                let beyond = u64::try_from(delay(packet) - least).unwrap_or(u64::MAX);
                let grain = grain.as_nanos().max(1);
                (packet.0, Span::from_nanos(beyond / grain * grain))
            })
            .filter(|(_, delay)| !delay.is_zero())
            .collect();
        delayed.sort_unstable();
        Findings {
            packets: self.sent.len() as u64,
            lost,
            overtaken,
            copied: self.copied.into_iter().collect(),
            delayed,
            unsent: self.unsent,
            outside: outside.len() as u64,
            ..Findings::default()
        }
    }
}

/// Positions that arrived after later ones, with the number of those, by position.
fn overtaken(arrived: &[(u64, Instant)]) -> Vec<(u64, u32)> {
    // A Fenwick tree over positions counts those that have arrived.
    let largest = arrived.iter().map(|(position, _)| *position).max();
    let size = largest.unwrap_or_default() as usize;
    let mut tree = vec![0u32; size + 1];
    let mut all = Vec::new();
    for (before, (position, _)) in arrived.iter().enumerate() {
        let mut smaller = 0;
        let mut at = *position as usize;
        while at > 0 {
            smaller += tree[at];
            at &= at - 1;
        }
        let later = u32::try_from(before).unwrap_or(u32::MAX) - smaller;
        if later > 0 {
            all.push((*position, later));
        }
        let mut at = *position as usize;
        while at <= size {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    all.sort_unstable();
    all
}
