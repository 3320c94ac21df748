//! Change of a mean between two recorders whose values belong together.
//!
//! Two runs with the same randomness, such as a simulation with and without a remedy, differ far less from each other
//! than each of them from the truth. The interval of their change therefore comes from the differences between batches
//! of the same moments, and not from the intervals of both means.

use posthaste_stats::{FEWEST_FOR_INTERVAL, Recorder};
use posthaste_units::Span;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Minimum number of batches of both sides.
const FEWEST_BATCHES: usize = 16;

/// Sums and counts of a recorder's complete batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BatchSums {
    /// Width of the batches.
    width: Span,
    /// Number of values in all batches, complete or not.
    values: u64,
    /// Sum in nanoseconds and number of values of each.
    batches: Vec<(f64, f64)>,
}

impl BatchSums {
    /// Sums of a recorder whose values all have a known time.
    pub(crate) fn new(recorder: &Recorder) -> Self {
        let batches = || recorder.batches();
        // The last batch is usually incomplete.
        let complete = batches().take(batches().count().saturating_sub(1));
        Self {
            width: batches().next().map_or(Span::ZERO, |batch| batch.width),
            values: recorder.distribution().count(),
            batches: complete
                .map(|batch| {
                    let mean = batch.mean().unwrap_or(Span::ZERO).as_nanos() as f64;
                    (mean * batch.count() as f64, batch.count() as f64)
                })
                .collect(),
        }
    }
}

impl BatchSums {
    /// 95 % interval of this mean divided by the mean of `before`, less one. Both have values of the same moments.
    ///
    /// `None` with fewer than 1,500 values or 16 batches on a side, and for batches of different moments. Assumes that
    /// batches are independent of each other, as those of simulated transactions are.
    pub(crate) fn change_since(&self, before: &Self) -> Option<[f64; 2]> {
        let number = self.batches.len();
        let enough = self.values.min(before.values) >= FEWEST_FOR_INTERVAL;
        let alike = number == before.batches.len() && self.width == before.width;
        if !enough || !alike || number < FEWEST_BATCHES {
            return None;
        }
        let [now, then] = [self, before].map(Self::totals);
        // Each batch's part of the logarithm of the ratio: the first-order terms of its deviation.
        let part = |(sum, count): (f64, f64), (all, counts): (f64, f64)| sum / all - count / counts;
        let pairs = self.batches.iter().zip(&before.batches);
        let squares: f64 = pairs
            .map(|(one, other)| (part(*one, now) - part(*other, then)).powi(2))
            .sum();
        let number = number as f64;
        let student = StudentsT::new(0.0, 1.0, number - 1.0).ok()?;
        let half_width = student.inverse_cdf(0.975) * (squares * number / (number - 1.0)).sqrt();
        let ratio = (now.0 / now.1) / (then.0 / then.1);
        let ends = [-half_width, half_width].map(|end| ratio * end.exp() - 1.0);
        ends.into_iter().all(f64::is_finite).then_some(ends)
    }

    fn totals(&self) -> (f64, f64) {
        let batches = self.batches.iter();
        batches.fold((0.0, 0.0), |(sums, counts), (sum, count)| {
            (sums + sum, counts + count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A random number below 1 (SplitMix64).
    fn drawn(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }

    /// Two runs of `count` transactions: response times around 600 ms, and the same times 1 % shorter, each with a
    /// difference of its own.
    fn pair(seed: u64, count: u64) -> [BatchSums; 2] {
        let mut state = seed << 32;
        let mut recorders = [Recorder::new(), Recorder::new()];
        for number in 1..=count {
            let usual = 500.0 + 200.0 * drawn(&mut state);
            let shorter = 0.99 * usual + 2.0 * (drawn(&mut state) - 0.5);
            for (recorder, ms) in recorders.iter_mut().zip([usual, shorter]) {
                recorder.record(Span::from_millis(number), Span::from_secs_f64(ms / 1e3));
            }
        }
        recorders.map(|recorder| BatchSums::new(&recorder))
    }

    #[test]
    fn the_interval_of_a_paired_change_is_narrow_and_covers() {
        let covers = (0..200).filter(|seed| {
            let [usual, shorter] = pair(*seed, 3000);
            let [low, high] = shorter.change_since(&usual).unwrap();
            assert!(high - low < 0.001, "{low} {high}");
            low <= -0.01 && -0.01 <= high
        });
        let covers = covers.count();
        assert!((180..=199).contains(&covers), "{covers} of 200");
    }

    #[test]
    fn equal_runs_show_no_change_and_unlike_ones_no_interval() {
        let [usual, _] = pair(1, 3000);
        assert_eq!(usual.change_since(&usual), Some([0.0, 0.0]));
        let [short, shorter] = pair(1, 1000);
        assert_eq!(shorter.change_since(&short), None);
        let [longer, _] = pair(1, 6000);
        assert_eq!(longer.change_since(&usual), None);
    }
}
