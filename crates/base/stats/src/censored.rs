//! Times of which some have only a known lower bound: right-censored data.
//!
//! A request that was abandoned after 500 ms has no response time, only a lower bound. Omitting it causes survivorship
//! bias: the percentiles of an overloaded service would improve with every unanswered request. Here such a request
//! counts as longer than every known time. A percentile with a rank among the censored requests is unknown. Its lower
//! bound is the percentile of the known times together with the waiting times.

use std::fmt;

use posthaste_units::Span;

use crate::Histogram;

/// A time or its lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Measured.
    Known(Span),
    /// Longer than this: the request was abandoned while it waited.
    Above(Span),
    /// Longer than every bound: the request ended without a reply, so no waiting time would have been enough.
    Never,
}

/// A [`Histogram`] of known times, and counts of the requests without a known time.
///
/// Quantiles are of all values. [`Self::known`] is the distribution of the known times alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CensoredHistogram {
    pub(crate) known: Histogram,
    pub(crate) waited: Histogram,
    pub(crate) never: u64,
}

impl Time {
    /// The time, if it was measured.
    pub fn known(self) -> Option<Span> {
        match self {
            Self::Known(time) => Some(time),
            Self::Above(_) | Self::Never => None,
        }
    }

    /// Largest known lower bound; `None` for [`Self::Never`].
    pub fn lower_bound(self) -> Option<Span> {
        match self {
            Self::Known(time) | Self::Above(time) => Some(time),
            Self::Never => None,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(time) => time.fmt(f),
            Self::Above(bound) => write!(f, "> {bound}"),
            Self::Never => f.write_str("no reply"),
        }
    }
}

impl CensoredHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a known time.
    pub fn record(&mut self, value: Span) {
        self.known.record(value);
    }

    /// Counts a request without a time: abandoned after `waited`, or ended without a reply (`None`).
    pub fn record_censored(&mut self, waited: Option<Span>) {
        self.record_many_censored(waited, 1);
    }

    /// Counts several requests without a time that waited equally long.
    pub fn record_many_censored(&mut self, waited: Option<Span>, count: u64) {
        match waited {
            Some(waited) => self.waited.record_many(waited, count),
            None => self.never += count,
        }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.known.merge(&other.known);
        self.waited.merge(&other.waited);
        self.never += other.never;
    }

    /// Adds known times.
    pub fn merge_known(&mut self, other: &Histogram) {
        self.known.merge(other);
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.known.clear();
        self.waited.clear();
        self.never = 0;
    }

    /// Number of all values, known and censored.
    pub fn count(&self) -> u64 {
        self.known.count() + self.censored()
    }

    /// Number of values without a known time.
    pub fn censored(&self) -> u64 {
        self.waited.count() + self.never
    }

    /// The known times alone.
    pub fn known(&self) -> &Histogram {
        &self.known
    }

    /// Mean of all values, exact to the nanosecond; zero when empty.
    ///
    /// Its lower bound counts a request that ended without a reply as zero.
    pub fn mean(&self) -> Time {
        if self.censored() == 0 {
            return Time::Known(self.known.mean());
        }
        let sum = |times: &Histogram| times.mean_nanos() * times.count() as f64;
        let sum = sum(&self.known) + sum(&self.waited);
        Time::Above(Span::from_nanos((sum / self.count() as f64) as u64))
    }

    /// The largest value; zero when empty.
    pub fn max(&self) -> Time {
        match (self.never, self.waited.count()) {
            (0, 0) => Time::Known(self.known.max()),
            (0, _) => Time::Above(self.known.max().max(self.waited.max())),
            _ => Time::Never,
        }
    }

    /// Longest time, known or waited; zero when empty.
    pub fn longest(&self) -> Span {
        self.known.max().max(self.waited.max())
    }

    /// Value that a share `quantile` (0 to 1) of all values do not exceed; zero when empty.
    ///
    /// Resolution of a thousandth, as in [`Histogram::quantile`].
    pub fn quantile(&self, quantile: f64) -> Time {
        if self.censored() == 0 {
            return Time::Known(self.known.quantile(quantile));
        }
        let count = self.count();
        let rank = (quantile.clamp(0.0, 1.0) * count as f64).ceil() as u64;
        let rank = rank.clamp(1, count);
        if rank <= self.known.count() {
            return Time::Known(at_rank(&self.known, rank));
        }
        let mut finite = self.known.clone();
        finite.merge(&self.waited);
        if rank <= finite.count() {
            Time::Above(at_rank(&finite, rank))
        } else {
            Time::Never
        }
    }
}

/// The value with this rank, counted from 1.
fn at_rank(values: &Histogram, rank: u64) -> Span {
    // The middle of the rank's share, so that rounding cannot reach a neighbour.
    values.quantile((rank as f64 - 0.5) / values.count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn histogram(known: &[u64], waited: &[u64], never: usize) -> CensoredHistogram {
        let mut all = CensoredHistogram::new();
        known.iter().for_each(|value| all.record(ms(*value)));
        let waited = waited.iter().map(|value| Some(ms(*value)));
        waited
            .chain(std::iter::repeat_n(None, never))
            .for_each(|waited| all.record_censored(waited));
        all
    }

    /// Compares with the resolution of the bins.
    fn near(found: Option<Span>, millis: u64) -> bool {
        found.is_some_and(|found| (found.as_millis_f64() / millis as f64 - 1.0).abs() < 0.002)
    }

    #[test]
    fn half_without_a_reply_leaves_the_median_and_no_more() {
        let all = histogram(&[100, 200, 300], &[500, 500, 500], 0);
        assert!(near(all.quantile(0.5).known(), 300));
        let p99 = all.quantile(0.99);
        assert!(matches!(p99, Time::Above(_)) && near(p99.lower_bound(), 500));
        assert!(near(all.mean().lower_bound(), 350) && all.mean().known().is_none());
        assert!(matches!(all.max(), Time::Above(_)));
        assert_eq!(
            (all.count(), all.censored(), all.known().count()),
            (6, 3, 3)
        );
    }

    #[test]
    fn a_request_that_never_comes_has_no_bound() {
        let refused = histogram(&[5], &[], 9);
        assert_eq!(refused.quantile(0.99), Time::Never);
        assert_eq!(refused.quantile(0.99).to_string(), "no reply");
        assert!(near(refused.quantile(0.1).known(), 5));
        // Abandoned requests sort before those without a reply: the lower of two ranks has a bound, the higher none.
        let mixed = histogram(&[], &[500], 1);
        assert!(matches!(mixed.quantile(0.5), Time::Above(_)));
        assert_eq!(mixed.quantile(0.6), Time::Never);
    }

    #[test]
    fn the_bound_counts_known_times_beyond_those_that_were_waited() {
        // Abandoned after 50 ms, with replies after 3 s: the third of four is at least the first reply.
        let all = histogram(&[3_000, 3_000], &[50, 50], 0);
        assert!(near(all.quantile(0.5).known(), 3_000));
        assert!(near(all.quantile(0.75).lower_bound(), 3_000));
    }

    #[test]
    fn empty_is_zero() {
        let none = CensoredHistogram::new();
        assert_eq!(none.quantile(0.99), Time::Known(Span::ZERO));
        assert_eq!(none.mean(), Time::Known(Span::ZERO));
    }

    proptest! {
        #[test]
        fn quantiles_are_order_statistics_of_all(
            known in prop::collection::vec(1u64..1_000, 0..60),
            waited in prop::collection::vec(1u64..1_000, 0..60),
            never in 0usize..20,
            share in 0.001f64..1.0,
        ) {
            prop_assume!(known.len() + waited.len() + never > 0);
            let all = histogram(&known, &waited, never);
            let (mut known, mut finite) = (known.clone(), [known, waited].concat());
            known.sort_unstable();
            finite.sort_unstable();
            let rank = (share * all.count() as f64).ceil() as usize;
            match all.quantile(share) {
                Time::Known(found) => prop_assert!(near(Some(found), known[rank - 1])),
                Time::Above(bound) => {
                    prop_assert!(rank > known.len());
                    prop_assert!(near(Some(bound), finite[rank - 1]));
                }
                Time::Never => prop_assert!(rank > finite.len()),
            }
        }
    }
}
