//! What all threads of a gateway know: what is served, what was counted, how busy it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use posthaste_serve::Counters;
use posthaste_wsqos::Outlook;
use tokio::sync::watch;

use crate::access::AccessLog;
use crate::config::Watch;
use crate::demand::reported;
use crate::metrics::Metrics;
use crate::protection::Protection;
use crate::site::Plan;
use crate::traces::Traces;

/// What is shared.
pub(crate) struct House {
    pub(crate) plan: watch::Sender<Arc<Plan>>,
    /// Of what all workers protect together; each has its own where they protect themselves.
    pub(crate) outlook: watch::Sender<Outlook>,
    /// The busy share last seen of what is protected, as bits, not a number before; of workers the [`Outlook`] says it.
    pub(crate) latest: AtomicU64,
    pub(crate) protection: Protection,
    pub(crate) metrics: Metrics,
    pub(crate) counters: Arc<Counters>,
    pub(crate) log: Option<AccessLog>,
    pub(crate) traces: Option<Traces>,
    pub(crate) start: Instant,
}

impl House {
    /// What is served by now.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        self.plan.borrow().clone()
    }

    /// What the workers go by now.
    pub(crate) fn outlook(&self) -> Outlook {
        match self.plan().config.demand.watch {
            Watch::Workers => self.metrics.outlooks.all(),
            _ => *self.outlook.borrow(),
        }
    }

    /// How busy what is protected was when it was last looked at, 0 to 1; none where it could not be seen.
    pub(crate) fn busy(&self) -> Option<f64> {
        match self.plan().config.demand.watch {
            Watch::Workers => Some(self.outlook().busy.into()),
            // It is there as soon as a reply has brought it.
            Watch::Upstream(_) => reported(self),
            _ => Some(f64::from_bits(self.latest.load(Relaxed))).filter(|busy| !busy.is_nan()),
        }
    }
}

impl std::fmt::Debug for House {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("House").finish_non_exhaustive()
    }
}
