//! Temporary exclusion of endpoints that fail or are slow (`[route.ejection]`).
//!
//! [`Ejector`] has the rules of a route, `ejection_state` the statistics and the exclusion of one endpoint. Both are
//! shared by all threads. Time is an argument. `watched_request.rs` feeds them from requests.
//!
//! 1. Failures in a row eject an endpoint. A success ends the row.
//! 2. At the end of each window, an endpoint is ejected whose mean response time is more than `slow` times the median
//!    of the others' means. Means of fewer than 20 replies do not count.
//! 3. An exclusion lasts `time`, twice that if it follows the previous one soon, and so on, up to ten times. Soon is a
//!    time in service shorter than the previous exclusion.
//! 4. At most the share `max` of a route's endpoints is ejected, and never the last one that is usable.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use posthaste_gateway_config as config;
use posthaste_units::{Instant, Ratio, Span};

use super::ejection_state::Window;
use super::endpoint::UpstreamEndpoint;
use crate::record::upstream_counters::EjectionOutcome;

/// Replies in a window without which a mean says nothing.
const MIN_REPLIES: u32 = 20;

/// The rules of a route, with its window.
#[derive(Debug)]
pub(crate) struct Ejector {
    pub(super) rules: config::Ejection,
    /// End of the window in nanoseconds of the clock; 0 before the first reply.
    window_end: AtomicU64,
    /// Held while one thread decides, so that two do not eject the last two endpoints.
    deciding: Mutex<()>,
}

impl Ejector {
    pub(super) fn new(rules: &config::Ejection) -> Self {
        Self {
            rules: rules.clone(),
            window_end: AtomicU64::new(0),
            deciding: Mutex::new(()),
        }
    }

    /// Records a failure of `endpoint`. Returns the outcome if it is one too many; `all` are the endpoints of the route.
    pub(super) fn failed(
        &self,
        endpoint: &UpstreamEndpoint,
        now: Instant,
        all: impl FnOnce() -> Vec<Arc<UpstreamEndpoint>>,
    ) -> Option<EjectionOutcome> {
        let failures = endpoint.ejection.fail();
        let is_enough = self.rules.failures > 0 && failures >= self.rules.failures;
        // Late replies during an exclusion do not extend it.
        if !is_enough || endpoint.ejection.is_ejected(now) {
            return None;
        }
        let ejected = self.eject(endpoint, now, &all());
        Some(if ejected {
            EjectionOutcome::Failures
        } else {
            EjectionOutcome::NotPermitted
        })
    }

    /// Records a success of `endpoint` in `time`. True if the window has ended and the caller should judge it.
    pub(super) fn succeeded(&self, endpoint: &UpstreamEndpoint, time: Span, now: Instant) -> bool {
        let is_timed = self.rules.slow.is_some();
        endpoint.ejection.succeed(is_timed.then_some(time));
        is_timed && self.ends_window(now)
    }

    /// True for the one caller that ends the window.
    fn ends_window(&self, now: Instant) -> bool {
        let end = self.window_end.load(Relaxed);
        if now.as_nanos() < end {
            return false;
        }
        let next = (now + self.rules.interval).as_nanos();
        let swapped = self
            .window_end
            .compare_exchange(end, next, Relaxed, Relaxed);
        // The first reply only starts a window.
        swapped.is_ok() && end != 0
    }

    /// Ejects slow endpoints, the slowest first. Returns an outcome for each.
    pub(super) fn judge(
        &self,
        all: &[Arc<UpstreamEndpoint>],
        now: Instant,
    ) -> Vec<(Arc<UpstreamEndpoint>, EjectionOutcome)> {
        let Some(slow) = self.rules.slow else {
            return Vec::new();
        };
        let windows = all.iter().map(|endpoint| endpoint.ejection.take_window());
        let windows: Vec<_> = windows.collect();
        let outcome = |index: usize| {
            let endpoint = &all[index];
            let outcome = if self.eject(endpoint, now, all) {
                EjectionOutcome::Slow
            } else {
                EjectionOutcome::NotPermitted
            };
            (endpoint.clone(), outcome)
        };
        let slow = slow_ones(&windows, slow).into_iter();
        slow.filter(|index| !all[*index].ejection.is_ejected(now))
            .map(outcome)
            .collect()
    }

    /// Ejects an endpoint, if enough others stay.
    fn eject(
        &self,
        endpoint: &UpstreamEndpoint,
        now: Instant,
        all: &[Arc<UpstreamEndpoint>],
    ) -> bool {
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ejected = |other: &&Arc<UpstreamEndpoint>| other.ejection.is_ejected(now);
        let ejected = all.iter().filter(is_ejected).count();
        let others = all
            .iter()
            .filter(|other| !std::ptr::eq(&***other, endpoint));
        let usable = others.filter(|other| other.health.is_up() && !is_ejected(other));
        let may = usable.count() > 0 && ejected < max_ejected(all.len(), self.rules.max);
        if may {
            endpoint.ejection.eject(now, self.rules.time);
        }
        may
    }
}

/// Maximum number of `all` endpoints that the share `max` permits.
fn max_ejected(all: usize, max: Ratio) -> usize {
    // Binary fractions of a share such as 0.29 are slightly too small.
    (all as f64 * max.get() + 1e-9) as usize
}

/// Returns the windows whose mean is more than `slow` times the median of the others' means, slowest first.
fn slow_ones(windows: &[Window], slow: f64) -> Vec<usize> {
    let measured = windows.iter().enumerate();
    let measured: Vec<(usize, f64)> = measured
        .filter(|(_, window)| window.replies >= MIN_REPLIES)
        .map(|(index, window)| (index, window.nanos as f64 / f64::from(window.replies)))
        .collect();
    let is_slow = |(index, mean): &&(usize, f64)| {
        let others = measured.iter().filter(|(other, _)| other != index);
        let median = median(others.map(|(_, mean)| *mean).collect());
        median.is_some_and(|median| *mean > median * slow)
    };
    let mut slow: Vec<_> = measured.iter().filter(is_slow).collect();
    slow.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    slow.into_iter().map(|(index, _)| *index).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1) + Span::from_millis(millis)
    }

    fn endpoints(count: u16) -> Vec<Arc<UpstreamEndpoint>> {
        let endpoint = |port| {
            let address = ([127, 0, 0, 1], port).into();
            Arc::new(UpstreamEndpoint::new(address, &config::Health::default()))
        };
        (1..=count).map(endpoint).collect()
    }

    fn ejector(max: f64) -> Ejector {
        Ejector::new(&config::Ejection {
            failures: 3,
            slow: Some(2.0),
            interval: Span::from_secs(1),
            time: Span::from_secs(10),
            max: Ratio::new(max).unwrap(),
        })
    }

    fn windows(means: &[(u32, u64)]) -> Vec<Window> {
        let window = |(replies, mean): &(u32, u64)| Window {
            replies: *replies,
            nanos: mean * u64::from(*replies),
        };
        means.iter().map(window).collect()
    }

    #[test]
    fn failures_in_a_row_eject_for_a_while() {
        let (ejector, all) = (ejector(0.5), endpoints(2));
        let fail = |now| ejector.failed(&all[0], at(now), || all.clone());
        assert_eq!([fail(0), fail(1)], [None, None]);
        ejector.succeeded(&all[0], Span::ZERO, at(2));
        assert_eq!([fail(3), fail(4)], [None, None], "a success ends the row");
        assert_eq!(fail(5), Some(EjectionOutcome::Failures));
        let state = &all[0].ejection;
        assert!(state.is_ejected(at(6)) && state.is_ejected(at(10_004)));
        assert_eq!([fail(7), fail(8), fail(9)], [None; 3], "it is out already");
        assert!(!state.is_ejected(at(10_006)));
        assert!(!all[1].ejection.is_ejected(at(6)));
    }

    #[test]
    fn ejections_stay_within_the_share_and_spare_the_last_one() {
        for (count, max, permitted) in [
            (1, 1.0, 0),
            (2, 0.5, 1),
            (2, 0.4, 0),
            (3, 0.5, 1),
            (4, 1.0, 3),
            (100, 0.29, 29),
        ] {
            let (ejector, all) = (ejector(max), endpoints(count));
            let ejected = all
                .iter()
                .filter(|endpoint| ejector.eject(endpoint, at(0), &all));
            assert_eq!(ejected.count(), permitted, "{max} of {count}");
        }
        let (ejector, all) = (ejector(1.0), endpoints(2));
        for _ in 0..config::Health::default().failures {
            all[1].health.failed();
        }
        assert!(!ejector.eject(&all[0], at(0), &all), "the other is out");
        assert!(ejector.eject(&all[1], at(0), &all));
    }

    #[test]
    fn a_mean_far_above_the_median_of_the_others_is_slow() {
        let slow = |means: &[(u32, u64)]| slow_ones(&windows(means), 2.0);
        assert_eq!(slow(&[(20, 10), (20, 21)]), [1]);
        assert_eq!(slow(&[(20, 10), (20, 20)]), [0; 0]);
        assert_eq!(slow(&[(20, 10), (19, 50)]), [0; 0], "too few replies");
        assert_eq!(slow(&[(20, 50)]), [0; 0], "nothing to compare with");
        assert_eq!(slow(&[(20, 10), (20, 90), (20, 50), (20, 10)]), [1, 2]);
        assert_eq!(slow(&[]), [0; 0]);
    }

    #[test]
    fn each_window_is_judged_once() {
        let (ejector, all) = (ejector(0.5), endpoints(2));
        let reply = |index: usize, millis, now| {
            ejector.succeeded(&all[index], Span::from_millis(millis), at(now))
        };
        for now in 0..50 {
            assert!(!reply(0, 10, now) && !reply(1, 100, now));
        }
        assert!(reply(0, 10, 1001) && !reply(0, 10, 1002));
        let judged = ejector.judge(&all, at(1002));
        let [(slow, EjectionOutcome::Slow)] = judged.as_slice() else {
            panic!("{judged:?}");
        };
        assert!(Arc::ptr_eq(slow, &all[1]) && slow.ejection.is_ejected(at(1003)));
        assert!(ejector.judge(&all, at(1004)).is_empty(), "a new window");
    }
}
