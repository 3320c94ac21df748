//! How busy is what is protected? Looked at five times a second, never on a request's path.
//!
//! By default each worker protects itself (`own`): a mean over several would let one of them drown.
//! Anything else that is protected (`other`) has one busy share for all workers.

pub(crate) mod idle;
mod other;
mod own;

use std::time::Duration;

use posthaste_units::Span;
use posthaste_wsqos::{Demand, Outlook, Sample, Threshold, Work};

use crate::workshop::now;

pub(crate) use other::{Watcher, reported};
pub(crate) use own::look_after;

/// How often. Some of the kernel's counters advance by its ticks, of 1 to 10 ms.
const EVERY: Duration = Duration::from_millis(200);

/// From busy shares to outlooks, by the threshold that the configuration says at the time.
struct Controller {
    demand: Demand,
    threshold: Threshold,
    processors: f64,
}

impl Controller {
    /// The count begins now, with so much work done.
    fn new(threshold: Threshold, processors: f64, work: Work) -> Self {
        let mut demand = Demand::new(threshold, processors);
        let (at, busy) = (now(), 0.0);
        demand.push(Sample { at, busy, work });
        Self {
            demand,
            threshold,
            processors,
        }
    }

    fn push(&mut self, threshold: Threshold, busy: f64, work: Work) -> Outlook {
        if threshold != self.threshold {
            *self = Self::new(threshold, self.processors, work);
        }
        let at = now();
        self.demand.push(Sample { at, busy, work })
    }
}

/// `part` of `whole`, 0 to 1.
fn share(part: Span, whole: Span) -> f64 {
    let whole = whole.as_nanos().max(1);
    (part.as_nanos() as f64 / whole as f64).min(1.0)
}
