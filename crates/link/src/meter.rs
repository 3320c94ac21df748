//! Time by bandwidth: when what is sent at a rate is through, exact to a fraction of a nanosecond.

use posthaste_units::{BitRate, Instant};

const NANOS_PER_SECOND_BY_BITS: u128 = 8 * 1_000_000_000;

/// The end of what has been sent so far: `whole` ns and `part / rate` of another.
///
/// The fraction is carried from one packet to the next, so that back-to-back packets take exactly
/// the time their bits take together, however they are cut. After idling it starts from nothing:
/// no burst makes up for unused time.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    whole: u64,
    part: u64,
    rate: u64,
}

impl Meter {
    pub(crate) const fn new() -> Self {
        Self {
            whole: 0,
            part: 0,
            rate: 1,
        }
    }

    /// When the next can begin, rounded up.
    pub(crate) const fn free(&self) -> Instant {
        Instant::from_nanos(self.whole.saturating_add((self.part > 0) as u64))
    }

    /// Sends `bytes` at `rate` from `at` on, or from when the ones before are through; returns
    /// when they are through, rounded up. Without a rate they take no time.
    pub(crate) fn send(&mut self, at: Instant, bytes: u64, rate: Option<BitRate>) -> Instant {
        if at >= self.free() {
            (self.whole, self.part) = (at.as_nanos(), 0);
        }
        let Some(rate) = rate.map(BitRate::as_bits) else {
            return self.free();
        };
        if rate != self.rate {
            let part = u128::from(self.part) * u128::from(rate) / u128::from(self.rate);
            self.part = part as u64;
            self.rate = rate;
        }
        let work = u128::from(bytes) * NANOS_PER_SECOND_BY_BITS + u128::from(self.part);
        let rate = u128::from(rate);
        let whole = u64::try_from(work / rate).unwrap_or(u64::MAX);
        self.whole = self.whole.saturating_add(whole);
        self.part = (work % rate) as u64;
        self.free()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn back_to_back_is_as_one(sizes in proptest::collection::vec(1u32..10_000, 1..200), bits in 1u64..10_000_000_000) {
            let rate = BitRate::per_second(bits);
            let (mut cut, mut whole) = (Meter::new(), Meter::new());
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
            let end = Meter::new().send(Instant::ORIGIN, bytes, BitRate::per_second(bits)).as_nanos();
            let (end, work) = (u128::from(end), u128::from(bytes) * NANOS_PER_SECOND_BY_BITS);
            prop_assert!(end * u128::from(bits) >= work && (end - 1) * u128::from(bits) < work);
        }
    }
}
