//! Transmission times at a bandwidth, exact to a fraction of a nanosecond.

use posthaste_units::{BitRate, Instant};

const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;

/// End of the data sent so far: `whole` ns, and `part` of the work after that.
///
/// Work is counted in bits times nanoseconds per second, so that it is a whole number at any rate. The remainder
/// carries over to the next packet: back-to-back packets take exactly the time of all their bits together, regardless
/// of their division. An idle meter starts from zero: no burst makes up for unused time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    whole: u64,
    part: u64,
}

/// A rate, and the time until which it holds. `None` as the rate means that transmission takes no time.
pub(crate) type Rated = (Option<BitRate>, Option<Instant>);

impl Meter {
    /// Earliest start of the next packet, rounded up.
    pub(crate) const fn free(&self) -> Instant {
        Instant::from_nanos(self.whole.saturating_add((self.part > 0) as u64))
    }

    /// Occupies the meter until `at`, which is not before [`Self::free`].
    pub(crate) const fn skip_to(&mut self, at: Instant) {
        (self.whole, self.part) = (at.as_nanos(), 0);
    }

    /// Sends `bytes` from `at` on, or after earlier packets, at the rate of each time. Returns the end, rounded up.
    #[inline]
    pub(crate) fn send(
        &mut self,
        at: Instant,
        bytes: u64,
        mut rate: impl FnMut(Instant) -> Rated,
    ) -> Instant {
        if at > self.free() {
            (self.whole, self.part) = (at.as_nanos(), 0);
        }
        let began = self.free();
        let end = self.transmit(bytes, &mut rate);
        debug_assert!(end >= at, "a transmission ends before it begins");
        debug_assert!(end >= began, "transmissions overlap");
        end
    }

    #[inline(always)]
    fn transmit(&mut self, bytes: u64, rate: &mut impl FnMut(Instant) -> Rated) -> Instant {
        let mut work = u128::from(bytes) * WORK_PER_BYTE + u128::from(self.part);
        loop {
            let (Some(bits), until) = rate(Instant::from_nanos(self.whole)) else {
                (self.whole, self.part) = (self.free().as_nanos(), 0);
                return self.free();
            };
            let bits = bits.as_bits();
            let (whole, part) = divided(work, bits);
            let left = until.map(|until| until.as_nanos().saturating_sub(self.whole));
            match left.filter(|left| *left > 0 && *left < whole) {
                Some(left) => {
                    self.whole += left;
                    work -= u128::from(left) * u128::from(bits);
                }
                None => {
                    self.whole = self.whole.saturating_add(whole);
                    self.part = part;
                    return self.free();
                }
            }
        }
    }
}

/// Whole nanoseconds of `work`, and the remainder. Uses one 64-bit division for packets of up to 2 GB, several times as
/// fast as the long division.
fn divided(work: u128, bits: u64) -> (u64, u64) {
    if let Ok(work) = u64::try_from(work) {
        return (work / bits, work % bits);
    }
    let bits = u128::from(bits);
    let whole = u64::try_from(work / bits).unwrap_or(u64::MAX);
    (whole, (work % bits) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lifted_limit_ends_nothing_before_it_begins() {
        let mut meter = Meter::default();
        let third = |_| (BitRate::per_second(3), None);
        let now = meter.send(Instant::ORIGIN, 1, third);
        assert_eq!(meter.send(now, 1, |_| (None, None)), now);
    }

    proptest! {
        #[test]
        fn back_to_back_is_as_one(sizes in proptest::collection::vec(1u32..10_000, 1..200), bits in 1u64..10_000_000_000) {
            let rate = |_| (BitRate::per_second(bits), None);
            let (mut cut, mut whole) = (Meter::default(), Meter::default());
            let start = Instant::from_nanos(77);
            let mut end = start;
            for size in &sizes {
                end = cut.send(start, u64::from(*size), rate);
            }
            let all = sizes.iter().map(|size| u64::from(*size)).sum();
            prop_assert_eq!(end, whole.send(start, all, rate));
        }

        #[test]
        fn the_time_is_rounded_up(bytes in 1u64..100_000, bits in 1u64..10_000_000_000) {
            let end = Meter::default().send(Instant::ORIGIN, bytes, |_| (BitRate::per_second(bits), None)).as_nanos();
            let (end, work) = (u128::from(end), u128::from(bytes) * WORK_PER_BYTE);
            prop_assert!(end * u128::from(bits) >= work && (end - 1) * u128::from(bits) < work);
        }
    }
}
