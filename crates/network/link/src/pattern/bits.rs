//! Bits to flip in a packet: ranges in order, shared by the packets of one entry.

use std::sync::Arc;

use super::PatternRefusal;

/// The bits of one packet that flip, at least one. Bit 0 is the most significant bit of the first byte of the IP
/// packet.
///
/// Bits beyond the end of a packet have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bits(Arc<[(u32, u32)]>);

impl Bits {
    /// Largest bit number: the last bit of the longest IP packet, 65,535 bytes.
    pub const LAST: u32 = 65_535 * 8 - 1;

    /// Maximum number of ranges in one entry of a pattern, so that its line stays within [`LINE`](super::LINE).
    pub const RANGES: usize = 4096;

    /// The bits in these ranges, both ends included, in any order. `None` if there are none, or if a range lies beyond
    /// [`Self::LAST`], runs backwards or overlaps another.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Option<Self> {
        let mut ranges: Vec<(u32, u32)> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            if first > last || last > Self::LAST {
                return None;
            }
            match merged.last_mut() {
                Some(before) if before.1 >= first => return None,
                Some(before) if before.1 + 1 == first => before.1 = last,
                _ => merged.push((first, last)),
            }
        }
        debug_assert!(
            merged.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0),
            "ranges of bits overlap, touch or are out of order"
        );
        (!merged.is_empty()).then(|| Self(merged.into()))
    }

    /// The ranges in order, both ends included. Adjacent ranges are joined.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Error for an entry with more ranges than [`Self::RANGES`].
    pub(super) fn too_many_ranges() -> PatternRefusal {
        PatternRefusal::new(
            format!("more than {} ranges of bits in one entry", Self::RANGES),
            "flip fewer bits, or join neighbours to ranges (0-63 is one)",
        )
    }

    /// Each bit, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Number of flipped bits.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }
}
