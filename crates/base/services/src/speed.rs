//! Factors of the service time: cold start, warm-up, drift, collapse, hysteresis. They multiply.
//!
//! Active time counts from the first arrival. It includes each arrival, the service of all requests, and at most one
//! second without either. Longer idle times do not count, so a single request does not end a cold start.
//! Cold start, warm-up and drift depend on the time when a service begins, collapse and hysteresis on the arrival.

use std::collections::VecDeque;

use posthaste_units::Span;

use crate::spec::ServiceSpec;

/// Idle time that still counts as active, and the window in which arrivals are counted, in ns.
const SECOND: u64 = 1_000_000_000;

/// State of the factors.
#[derive(Clone, Debug)]
pub(crate) struct Speed {
    spec: ServiceSpec,
    /// Time without activity so far.
    idle: u64,
    /// End of the activity that is known.
    active_until: u64,
    has_begun: bool,
    /// Arrivals of the last second, if a factor depends on them.
    recent: VecDeque<u64>,
    is_slow: bool,
}

impl Speed {
    pub(crate) fn new(spec: ServiceSpec) -> Self {
        Self {
            spec,
            idle: 0,
            active_until: 0,
            has_begun: false,
            recent: VecDeque::new(),
            is_slow: false,
        }
    }

    /// Counts an arrival.
    pub(crate) fn arrive(&mut self, now: u64) {
        if !self.has_begun {
            self.has_begun = true;
            self.idle = now;
        } else if now > self.active_until {
            self.idle += now - self.active_until;
        }
        self.extend(now.saturating_add(SECOND));
        if self.spec.collapse.is_none() && self.spec.hysteresis.is_none() {
            return;
        }
        while self.recent.front().is_some_and(|at| now - at >= SECOND) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        if let Some(hysteresis) = self.spec.hysteresis {
            let threshold = if self.is_slow {
                hysteresis.below
            } else {
                hysteresis.above
            };
            let count = self.recent.len() as f64;
            self.is_slow = if self.is_slow {
                count >= threshold.as_per_second()
            } else {
                count > threshold.as_per_second()
            };
        }
    }

    /// Counts service until `departure` as activity.
    pub(crate) fn extend(&mut self, departure: u64) {
        self.active_until = self.active_until.max(departure);
    }

    /// The factor for the request that has just arrived and is served from `begin` on.
    pub(crate) fn factor(&self, begin: u64) -> f64 {
        let active = Span::from_nanos(begin.saturating_sub(self.idle));
        let mut factor = self.spec.factor_at(active);
        if let Some(rate) = self.spec.collapse {
            let capacity = self.spec.law.capacity().expect("checked with the spec");
            let (count, rate) = (self.recent.len() as f64, rate.as_per_second());
            if count > rate {
                factor *= (count * capacity / (rate * rate)).max(1.0);
            }
        }
        if let Some(hysteresis) = self.spec.hysteresis
            && self.is_slow
        {
            factor *= hysteresis.factor;
        }
        factor
    }
}
