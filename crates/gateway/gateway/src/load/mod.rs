//! Load sampling: the busy share of the protected resource, five times a second, never in the path of a request.
//!
//! By default each worker protects itself (`thread`), because a mean over several could hide one overloaded worker. Any
//! other protected resource (`resource`) has one busy share for all workers.

pub(crate) mod resource;
pub(crate) mod thread;

use std::time::Duration;

use posthaste_compression::{LoadController, LoadEstimate, Sample, Threshold, Work};
use posthaste_units::Span;

use crate::clock::now;

/// Sampling interval. Some kernel counters advance in ticks of 1 to 10 ms.
const EVERY: Duration = Duration::from_millis(200);

/// Turns busy shares into load estimates, with the currently configured threshold.
struct Controller {
    controller: LoadController,
    threshold: Threshold,
    processors: f64,
}

impl Controller {
    /// Starts a controller now, with `work` as the baseline.
    fn new(threshold: Threshold, processors: f64, work: Work) -> Self {
        let mut controller = LoadController::new(threshold, processors);
        let (at, busy) = (now(), 0.0);
        controller.push(Sample { at, busy, work });
        Self {
            controller,
            threshold,
            processors,
        }
    }

    fn push(&mut self, threshold: Threshold, busy: f64, work: Work) -> LoadEstimate {
        if threshold != self.threshold {
            *self = Self::new(threshold, self.processors, work);
        }
        let at = now();
        self.controller.push(Sample { at, busy, work })
    }
}

/// Returns `part` / `whole`, 0 to 1.
fn share(part: Span, whole: Span) -> f64 {
    let whole = whole.as_nanos().max(1);
    (part.as_nanos() as f64 / whole as f64).min(1.0)
}
