//! Frames captured more than once: `-i any` on a host with bridges shows each packet on each interface.
//!
//! - On another interface, a packet with equal content is a copy if it follows soon. A retransmission appears on the
//!   same interface again, and with another identification.
//! - On the same interface it is a copy only if most packets of the capture are doubled, within [`DOUBLE`]. A path that
//!   copies few packets is left for the pattern to show.

use std::collections::{HashMap, VecDeque};

use posthaste_link::pattern::infer::PacketMark;
use posthaste_units::{Instant, Span};

/// Longest time of a packet between two interfaces of a host, if its identification shows that it is the same one.
const TRANSIT: Span = Span::from_millis(100);
/// The same without identification (IPv6): a retransmission takes longer.
const ANONYMOUS_TRANSIT: Span = Span::from_millis(5);
/// Longest time between two captures of one packet on the same interface.
const DOUBLE: Span = Span::from_millis(1);
/// Maximum number of remembered packets, and of equal ones among them.
const REMEMBERED: usize = 1 << 16;
const REMEMBERED_EQUAL: usize = 64;

/// An interface within a capture: its number in the file, and in the header of the frame.
pub(super) type InterfaceId = (u32, u32);

/// Recognises copies of frames.
#[derive(Debug, Default)]
pub(super) struct Copies {
    recent: HashMap<PacketMark, VecDeque<Original>>,
    /// Marks and times of the originals in order of capture.
    order: VecDeque<(PacketMark, Instant)>,
    /// Distinct originals so far, and those seen twice on the same interface.
    originals: u64,
    doubled: u64,
}

/// A captured packet, to compare with earlier ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedFrame {
    pub at: Instant,
    pub on: InterfaceId,
    pub mark: PacketMark,
    /// No other packet can be equal within [`DOUBLE`]: it has an identification, or data that would be sent again only
    /// after a round trip.
    pub is_distinct: bool,
}

/// The first frame of a packet.
#[derive(Debug)]
struct Original {
    at: Instant,
    seen_on: Vec<InterfaceId>,
    is_doubled: bool,
}

impl Copies {
    /// Returns true if the frame shows a packet that an earlier frame has shown.
    pub(super) fn is_copy(&mut self, seen: &ComparedFrame) -> bool {
        self.forget(seen.at);
        let transit = match seen.mark.id {
            0 => ANONYMOUS_TRANSIT,
            _ => TRANSIT,
        };
        let originals = self.recent.entry(seen.mark).or_default();
        let elsewhere = originals.iter_mut().find(|original| {
            let is_near = seen.at.saturating_since(original.at) <= transit;
            is_near && !original.seen_on.contains(&seen.on)
        });
        if let Some(original) = elsewhere {
            original.seen_on.push(seen.on);
            return true;
        }
        let doubled = originals.back_mut().filter(|original| {
            seen.at.saturating_since(original.at) <= DOUBLE && !original.is_doubled
        });
        let is_double = doubled.is_some() && seen.is_distinct;
        if let Some(original) = doubled {
            self.doubled += u64::from(is_double);
            let are_doubled = self.doubled > 0 && self.doubled * 2 >= self.originals;
            original.is_doubled = are_doubled || is_double;
            if are_doubled {
                return true;
            }
        }
        if originals.len() == REMEMBERED_EQUAL {
            originals.pop_front();
        }
        originals.push_back(Original {
            at: seen.at,
            seen_on: vec![seen.on],
            is_doubled: false,
        });
        self.originals += u64::from(seen.is_distinct && !is_double);
        self.order.push_back((seen.mark, seen.at));
        false
    }

    /// Forgets packets that are too old to have copies.
    fn forget(&mut self, now: Instant) {
        while let Some((mark, at)) = self.order.front()
            && (now.saturating_since(*at) > TRANSIT || self.order.len() > REMEMBERED)
        {
            if let Some(originals) = self.recent.get_mut(mark) {
                // The oldest of many equal ones may be gone.
                if originals.front().is_some_and(|original| original.at == *at) {
                    originals.pop_front();
                }
                if originals.is_empty() {
                    self.recent.remove(mark);
                }
            }
            self.order.pop_front();
        }
    }
}
