//! Orders to end a run before its plan does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use posthaste_units::{Instant, Span};

/// The time of the run at which all its processes stop, if one is set.
#[derive(Debug)]
pub struct StopTime(AtomicU64);

/// The orders that the event loops of a run obey.
#[derive(Clone, Copy, Debug)]
pub struct StopOrders<'r> {
    /// Stops at once.
    pub now: &'r AtomicBool,
    /// Stops at a time of the run.
    pub at: &'r StopTime,
}

impl StopTime {
    /// No time.
    pub const fn never() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Sets the time since the run's origin. An earlier one stays.
    pub fn set(&self, at: Span) {
        self.0.fetch_min(at.as_nanos(), Relaxed);
    }

    /// The time, if one is set.
    pub fn get(&self) -> Option<Span> {
        let at = self.0.load(Relaxed);
        (at < u64::MAX).then(|| Span::from_nanos(at))
    }
}

impl StopOrders<'_> {
    /// The time at which the run was stopped, if it was until `now`.
    pub(crate) fn reached(self, now: Instant) -> Option<Instant> {
        let at = self.at.get().map(|at| Instant::ORIGIN + at);
        match at.filter(|at| *at <= now) {
            None => self.now.load(Relaxed).then_some(now),
            at => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stops_at_the_earliest_order() {
        let (flag, time) = (AtomicBool::new(false), StopTime::never());
        let orders = StopOrders {
            now: &flag,
            at: &time,
        };
        let at = |millis| Instant::ORIGIN + Span::from_millis(millis);
        assert_eq!(orders.reached(at(1_000)), None);
        time.set(Span::from_millis(300));
        time.set(Span::from_millis(400));
        assert_eq!(orders.reached(at(299)), None);
        assert_eq!(orders.reached(at(350)), Some(at(300)));
        flag.store(true, Relaxed);
        assert_eq!(orders.reached(at(299)), Some(at(299)));
    }
}
