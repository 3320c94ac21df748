//! Assignment of arrived packets to sent ones, by content, order and time.
//!
//! Most packets differ from all others of their direction, and content alone assigns them. Some are equal: without TCP
//! timestamps, a retransmission equals the lost packet. Then the packets between them, which arrived in a known order
//! after a known delay, show the most likely assignment.

use std::collections::{HashMap, HashSet};

use posthaste_units::Instant;

/// Maximum work for one group of equal packets: sent ones times missing ones.
const WORK: usize = 1 << 22;
/// Difference of two delays, in nanoseconds, below which neither is more likely.
const TOLERANCE: u64 = 1_000_000;

/// Everything in a packet that does not change on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketMark {
    /// Hash of the parts that every capture holds: ends, protocol, length and the first part of the transport header.
    pub headers: u64,
    /// Hash of the further bytes. None if the capture was cut before their end: contents are then not compared.
    pub content: Option<u64>,
    /// IPv4 identification; 0 if there is none. Compared unless the path changes it.
    pub id: u16,
}

/// A packet of one of the two captures.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairedPacket {
    /// Time of capture, by the clock of that end.
    pub at: Option<Instant>,
    pub mark: PacketMark,
}

/// The fate of each packet.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    /// Index of the sent packet and of its arrival, in order of arrival.
    pub arrivals: Vec<(usize, usize)>,
    /// Index of the sent packet of each further copy that arrived.
    pub copies: Vec<usize>,
    /// Indices of sent packets that did not arrive, in order.
    pub missing: Vec<usize>,
    /// Indices of missing packets that are equal to an arrived one, which may be missing instead.
    pub uncertain: Vec<usize>,
    /// Number of sent packets in groups too large to assign. Their arrivals are left out, too.
    pub unassigned: u64,
    /// Number of arrived packets that were not sent.
    pub unsent: u64,
}

/// Indices of equal packets, in order.
#[derive(Default)]
struct EqualPackets {
    sent: Vec<usize>,
    arrived: Vec<usize>,
}

/// A sent packet whose arrival is certain.
#[derive(Clone, Copy)]
struct Anchor {
    sent: usize,
    arrived: usize,
    delay: i128,
}

/// Deviation of an assignment from its neighbours: packets overtaken, then nanoseconds of delay.
type Deviation = (u64, u64);

/// Assigns each arrived packet to at most one sent packet.
pub(super) fn assign(sent: &[PairedPacket], arrived: &[PairedPacket]) -> Assignment {
    let mut groups = group(sent, arrived);
    groups.sort_unstable_by_key(|group| group.sent.first().or(group.arrived.first()).copied());
    let mut assignment = Assignment::default();
    let mut equal = Vec::new();
    for group in groups {
        match (&*group.sent, &*group.arrived) {
            ([], arrivals) => assignment.unsent += arrivals.len() as u64,
            (sends, []) => assignment.missing.extend(sends),
            ([send], [arrival]) => assignment.arrivals.push((*send, *arrival)),
            _ => equal.push(group),
        }
    }
    let mut anchors: Vec<Anchor> = (assignment.arrivals.iter())
        .map(|(from, to)| Anchor {
            sent: *from,
            arrived: *to,
            delay: delay(&sent[*from], &arrived[*to]),
        })
        .collect();
    anchors.sort_unstable_by_key(|anchor| anchor.sent);
    let neighbours = Neighbours {
        possible: (anchors.iter().map(|anchor| anchor.delay).min())
            .map_or(i128::MIN, |least| least - i128::from(TOLERANCE)),
        sent,
        arrived,
        anchors,
    };
    for group in &equal {
        neighbours.resolve(group, &mut assignment);
    }
    assignment.arrivals.sort_unstable_by_key(|(_, to)| *to);
    assignment.missing.sort_unstable();
    assignment
}

/// Groups equal packets. IP identifications count unless the path changes them, contents unless a capture is cut.
fn group(sent: &[PairedPacket], arrived: &[PairedPacket]) -> Vec<EqualPackets> {
    let mut all = sent.iter().chain(arrived);
    let whole = all.all(|packet| packet.mark.content.is_some());
    let contents = |mark: &PacketMark| (mark.headers, mark.content.filter(|_| whole));
    let sent_contents: HashSet<_> = sent.iter().map(|packet| contents(&packet.mark)).collect();
    let sent_ids: HashSet<_> = (sent.iter())
        .map(|packet| (contents(&packet.mark), packet.mark.id))
        .collect();
    let (mut kept, mut changed) = (0u64, 0u64);
    for mark in arrived.iter().map(|packet| &packet.mark) {
        if mark.id != 0 && sent_contents.contains(&contents(mark)) {
            let is_kept = sent_ids.contains(&(contents(mark), mark.id));
            kept += u64::from(is_kept);
            changed += u64::from(!is_kept);
        }
    }
    let by_id = kept > changed;
    let key = |mark: &PacketMark| (contents(mark), if by_id { mark.id } else { 0 });
    let mut groups: HashMap<_, EqualPackets> = HashMap::new();
    for (index, packet) in sent.iter().enumerate() {
        groups
            .entry(key(&packet.mark))
            .or_default()
            .sent
            .push(index);
    }
    for (index, packet) in arrived.iter().enumerate() {
        let group = groups.entry(key(&packet.mark)).or_default();
        group.arrived.push(index);
    }
    groups.into_values().collect()
}

/// The delay in nanoseconds; 0 if a time is unknown.
fn delay(sent: &PairedPacket, arrived: &PairedPacket) -> i128 {
    let (Some(sent), Some(arrived)) = (sent.at, arrived.at) else {
        return 0;
    };
    i128::from(arrived.as_nanos()) - i128::from(sent.as_nanos())
}

/// Packets with a certain arrival, to compare others with.
struct Neighbours<'a> {
    sent: &'a [PairedPacket],
    arrived: &'a [PairedPacket],
    /// In the order of sending.
    anchors: Vec<Anchor>,
    /// Smallest possible delay: that of all of them, less the tolerance.
    possible: i128,
}

impl Neighbours<'_> {
    /// Assigns the packets of a group.
    fn resolve(&self, group: &EqualPackets, assignment: &mut Assignment) {
        match group.sent.len().checked_sub(group.arrived.len()) {
            Some(missing) if missing > 0 => self.find_missing(group, missing, assignment),
            _ => self.find_copies(group, assignment),
        }
    }

    /// Assigns a group with fewer arrivals than sent packets.
    fn find_missing(&self, group: &EqualPackets, missing: usize, assignment: &mut Assignment) {
        if group.arrived.len().saturating_mul(missing + 1) > WORK {
            assignment.unassigned += group.sent.len() as u64;
            return;
        }
        let chosen = self.choose(group, missing);
        let mut next = chosen.iter().copied().zip(&group.arrived).peekable();
        let mut before = None;
        for (number, sent) in group.sent.iter().enumerate() {
            if let Some((_, arrived)) = next.next_if(|(chosen, _)| *chosen == number) {
                if self.is_possible(*sent, *arrived) {
                    assignment.arrivals.push((*sent, *arrived));
                } else {
                    // It was sent before the sender's capture began.
                    assignment.missing.push(*sent);
                    assignment.unsent += 1;
                }
                before = Some((*sent, *arrived));
                continue;
            }
            let after = next.peek().map(|(chosen, to)| (group.sent[*chosen], **to));
            let neighbours = [before, after].into_iter().flatten();
            let is_uncertain = neighbours
                .into_iter()
                .any(|(own, arrived)| self.is_as_likely(*sent, own, arrived));
            assignment.missing.push(*sent);
            if is_uncertain {
                assignment.uncertain.push(*sent);
            }
        }
    }

    /// Assigns a group with at least as many arrivals as sent packets: in order, or if one would then have arrived
    /// sooner than any packet can, each arrival to the packet that it fits best.
    fn find_copies(&self, group: &EqualPackets, assignment: &mut Assignment) {
        let pairs = || {
            group
                .sent
                .iter()
                .copied()
                .zip(group.arrived.iter().copied())
        };
        let is_in_order = pairs().all(|(sent, arrived)| self.is_possible(sent, arrived));
        if is_in_order || group.sent.len().saturating_mul(group.arrived.len()) > WORK {
            assignment.arrivals.extend(pairs());
            let copies = group.arrived.len() - group.sent.len();
            let last = group.sent.last().copied();
            let copies = last.into_iter().cycle().take(copies);
            assignment.copies.extend(copies);
            return;
        }
        let mut seen = HashSet::new();
        for arrived in &group.arrived {
            let best = (group.sent.iter()).min_by_key(|sent| self.deviation(**sent, *arrived));
            let best = best.filter(|sent| self.is_possible(**sent, *arrived));
            let Some(best) = best.copied() else {
                // It was sent before the sender's capture began.
                assignment.unsent += 1;
                continue;
            };
            if seen.insert(best) {
                assignment.arrivals.push((best, *arrived));
            } else {
                assignment.copies.push(best);
            }
        }
        let missing = group.sent.iter().filter(|sent| !seen.contains(sent));
        assignment.missing.extend(missing);
    }

    /// Numbers of the sent packets, in order, that fit the arrivals of the group with the smallest deviation. Of equal
    /// choices, the later packet: a sender repeats a packet because the first one did not arrive.
    fn choose(&self, group: &EqualPackets, missing: usize) -> Vec<usize> {
        let width = missing + 1;
        let worst = (u64::MAX, u64::MAX);
        // Arrival n belongs to a packet from n to n + missing. Row n has the best sums for each, and where it was taken.
        let mut sums = vec![(0, 0); width];
        let mut taken = Vec::with_capacity(group.arrived.len() * width);
        for (number, arrived) in group.arrived.iter().enumerate() {
            let mut best = worst;
            for (offset, sum) in sums.iter_mut().enumerate() {
                let deviation = self.deviation(group.sent[number + offset], *arrived);
                let here = add(*sum, deviation);
                let is_best = here <= best;
                if is_best {
                    best = here;
                }
                taken.push(is_best);
                *sum = best;
            }
        }
        let mut chosen = Vec::with_capacity(group.arrived.len());
        let mut offset = missing;
        for number in (0..group.arrived.len()).rev() {
            while !taken[number * width + offset] {
                offset -= 1;
            }
            chosen.push(number + offset);
        }
        chosen.reverse();
        chosen
    }

    /// True if the arrival fits this packet hardly worse than its own.
    fn is_as_likely(&self, sent: usize, own: usize, arrived: usize) -> bool {
        let (overtaken, nanos) = self.deviation(sent, arrived);
        let (own_overtaken, own_nanos) = self.deviation(own, arrived);
        let (_, _, variation) = self.expected_delay(own);
        let tolerance = TOLERANCE.max(variation);
        overtaken <= own_overtaken && nanos <= own_nanos.saturating_add(tolerance)
    }

    /// True unless the packet would have arrived sooner than any other does.
    fn is_possible(&self, sent: usize, arrived: usize) -> bool {
        delay(&self.sent[sent], &self.arrived[arrived]) >= self.possible
    }

    /// Distance of an arrival from the order and the delay of the packets sent before and after this one. The largest
    /// if the packet cannot have arrived so soon.
    fn deviation(&self, sent: usize, arrived: usize) -> Deviation {
        if !self.is_possible(sent, arrived) {
            return (u64::MAX, u64::MAX);
        }
        let (before, after) = self.around(sent);
        let (first, last) = match (before, after) {
            (Some(before), Some(after)) => {
                let (low, high) = (before.arrived, after.arrived);
                (low.min(high), low.max(high))
            }
            (Some(before), None) => (before.arrived, usize::MAX),
            (None, Some(after)) => (0, after.arrived),
            (None, None) => (0, usize::MAX),
        };
        let overtaken = first
            .saturating_sub(arrived)
            .max(arrived.saturating_sub(last));
        let (least, most, _) = self.expected_delay(sent);
        let delay = delay(&self.sent[sent], &self.arrived[arrived]);
        let beyond = (least - delay).max(delay - most).max(0);
        (overtaken as u64, u64::try_from(beyond).unwrap_or(u64::MAX))
    }

    /// Smallest and largest delay of the packets next to this one, and their difference in nanoseconds. Without any,
    /// all delays are expected.
    fn expected_delay(&self, sent: usize) -> (i128, i128, u64) {
        let (before, after) = self.around(sent);
        let both = [before, after]
            .into_iter()
            .flatten()
            .map(|anchor| anchor.delay);
        let (Some(least), Some(most)) = (both.clone().min(), both.max()) else {
            return (i128::MIN / 2, i128::MAX / 2, 0);
        };
        (least, most, u64::try_from(most - least).unwrap_or(u64::MAX))
    }

    /// The nearest packets sent before and after this one whose arrival is certain.
    fn around(&self, sent: usize) -> (Option<Anchor>, Option<Anchor>) {
        let next = self.anchors.partition_point(|anchor| anchor.sent < sent);
        let before = next.checked_sub(1).map(|last| self.anchors[last]);
        (before, self.anchors.get(next).copied())
    }
}

fn add(one: Deviation, other: Deviation) -> Deviation {
    (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
}
