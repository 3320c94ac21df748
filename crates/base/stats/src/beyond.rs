//! Values of a run compared with a bound.

use posthaste_units::Span;

use crate::Recorder;

/// The values of a recorder compared with a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beyond {
    /// Values, known and censored.
    pub count: u64,
    /// Values above the bound, with a resolution of 0.1 %. Censored values count as above.
    pub beyond: u64,
}

impl Recorder {
    /// Compares all values with `bound`.
    pub fn beyond(&self, bound: Span) -> Beyond {
        let all = self.histogram();
        Beyond {
            count: self.distribution().count(),
            beyond: all.count_above(bound) + self.distribution().censored(),
        }
    }
}

/// An interval of a run, with the requests due in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestPart {
    /// Requests due.
    pub count: f64,
    /// Requests without a good reply within the bound.
    pub bad: f64,
    /// Mean response time in seconds. Infinite if some have no known time.
    pub mean: f64,
}

impl Recorder {
    /// The run in at most 64 intervals of equal width, compared with `bound`. `good` has the good replies among the
    /// values; without it, all known values are good.
    pub fn request_parts(&self, good: Option<&Self>, bound: Span) -> Vec<RequestPart> {
        let good = good.unwrap_or(self);
        let shift = self.shift.max(good.shift);
        let all = self.sums_beyond(bound, shift);
        let good = good.sums_beyond(bound, shift);
        let parts = all.into_iter().enumerate().map(|(index, all)| {
            let within = good.get(index).map_or(0.0, |good| good.known - good.above);
            let count = all.known + all.censored;
            RequestPart {
                count,
                bad: (count - within).clamp(0.0, count),
                mean: if all.censored > 0.0 {
                    f64::INFINITY
                } else {
                    all.seconds / all.known.max(1.0)
                },
            }
        });
        parts.collect()
    }

    /// The sums of intervals of 2^shift ns, each of one or more batches.
    fn sums_beyond(&self, bound: Span, shift: u32) -> Vec<PartSums> {
        let at = bound.as_nanos();
        let split = self.split_of_bin(at);
        let mut sums = Vec::new();
        for (index, bucket) in self.buckets().iter().enumerate() {
            let (inside, above) = bucket.count_in_and_above(at);
            let part_index = index >> (shift - self.shift);
            if sums.len() <= part_index {
                sums.resize(part_index + 1, PartSums::default());
            }
            let part: &mut PartSums = &mut sums[part_index];
            part.known += bucket.count as f64;
            part.censored += bucket.censored as f64;
            part.above += (above - bucket.censored) as f64 + split * inside as f64;
            part.seconds += bucket.sum as f64 / 1e9;
        }
        sums
    }

    /// Share of the values in the coarse bin of a bound that are above it, by the fine histogram.
    fn split_of_bin(&self, at: u64) -> f64 {
        let Some(first) = self.buckets().first() else {
            return 0.0;
        };
        let all = self.histogram();
        let (low, high) = first.bin(at);
        let outside = all.count_from(high.saturating_add(1));
        let within = all.count_from(low).saturating_sub(outside).max(1) as f64;
        all.count_above(Span::from_nanos(at))
            .saturating_sub(outside) as f64
            / within
    }
}

/// Sums of the values of an interval.
#[derive(Clone, Copy, Default)]
struct PartSums {
    known: f64,
    censored: f64,
    /// Known values above the bound.
    above: f64,
    seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn censored_values_are_beyond_every_bound() {
        let mut recorder = Recorder::new();
        for n in 0..2_000 {
            let at = Span::from_millis(n);
            match n % 4 {
                0 => recorder.record_censored(at, Some(Span::from_millis(1))),
                _ => recorder.record(at, Span::from_millis(2)),
            }
        }
        let found = recorder.beyond(Span::from_secs(3_600));
        assert_eq!((found.count, found.beyond), (2_000, 500));
        assert_eq!(Recorder::new().beyond(Span::ZERO), Beyond::default());
    }

    #[test]
    fn nothing_is_beyond_the_longest_span() {
        let mut recorder = Recorder::new();
        for ms in 0..100 {
            recorder.record(Span::from_millis(ms), Span::MAX);
        }
        let found = recorder.beyond(Span::MAX);
        assert_eq!((found.count, found.beyond), (100, 0));
    }
}
