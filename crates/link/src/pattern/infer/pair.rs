//! What happened between two captures, one at each end: packet by packet.

use std::collections::{BTreeMap, HashMap, VecDeque};

use posthaste_units::{Instant, Span};

use super::Findings;

/// Compares what was sent with what arrived, in one direction.
///
/// Packets are matched by a mark that the caller makes of everything that does not change on the
/// way; those with equal marks are matched in order. What was sent and did not arrive is lost, what
/// arrived again is copied, and what later packets overtook is held for as many. The clocks of the
/// two ends need not agree: delays are counted from the smallest, which is left out, so that only
/// what varies is in the pattern. A drift of one clock shows as delay.
///
/// Nobody knows what became of packets that would have arrived, after the smallest delay, before the
/// first or after the last packet of the receiver's capture: they are counted apart. Where nothing
/// arrived the clocks cannot be compared, and all of it is lost.
#[derive(Debug, Default)]
pub struct Pair {
    sent: Vec<Instant>,
    /// Positions by mark that have not arrived yet.
    waiting: HashMap<u64, VecDeque<u64>>,
    /// The last position that arrived under a mark.
    matched: HashMap<u64, u64>,
    /// Positions in order of arrival, and when.
    arrived: Vec<(u64, Instant)>,
    copied: BTreeMap<u64, u32>,
    unsent: u64,
    /// The first and the last moment at which the receiver's capture holds anything.
    ran: Option<(Instant, Instant)>,
    /// It ran before that, too.
    from_the_first: bool,
}

impl Pair {
    /// The next packet of the sender's capture. Everything that was sent comes before the first
    /// that arrived.
    pub fn sent(&mut self, at: Instant, mark: u64) {
        self.sent.push(at);
        let position = self.sent.len() as u64;
        self.waiting.entry(mark).or_default().push_back(position);
    }

    /// The receiver's capture holds a packet of this moment, be it of another connection or direction.
    pub fn ran(&mut self, at: Instant) {
        let (first, last) = self.ran.unwrap_or((at, at));
        self.ran = Some((first.min(at), last.max(at)));
    }

    /// The receiver's capture ran when the first packet was sent: it shows how that connection began.
    pub fn ran_from_the_first(&mut self) {
        self.from_the_first = true;
    }

    /// The next packet of the receiver's capture.
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

    /// What was found. Delays are kept to `grain`, so that equal ones join; a grain of zero keeps
    /// all.
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

/// Which positions came after later ones, and after how many, by position.
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
