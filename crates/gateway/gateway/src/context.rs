//! State shared by all threads of a gateway: configuration, counters, load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use posthaste_compression::LoadEstimate;
use posthaste_gateway_config::Watch;
use posthaste_serve::ConnectionCounters;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::accounts::GatewayAccounts;
use crate::admission::Admission;
use crate::clock::now;
use crate::record::access_log::AccessLog;
use crate::record::metrics::GatewayMetrics;
use crate::record::traces::Traces;
use crate::routing::resolved::ResolvedConfig;

/// The shared state.
pub(crate) struct GatewayContext {
    pub(crate) resolved: watch::Sender<Arc<ResolvedConfig>>,
    /// Load of a common protected resource. Unused if each worker protects itself.
    pub(crate) estimate: watch::Sender<LoadEstimate>,
    /// Last busy share of a common resource, as bits of an `f64`; NaN without a sample. Workers use [`LoadEstimate`].
    pub(crate) latest: AtomicU64,
    pub(crate) admission: Arc<Admission>,
    pub(crate) accounts: Arc<GatewayAccounts>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    pub(crate) counters: Arc<ConnectionCounters>,
    /// Port of HTTPS, if requests over plain HTTP are redirected to it.
    pub(crate) redirect: Option<u16>,
    pub(crate) log: Option<Arc<AccessLog>>,
    pub(crate) traces: Option<Traces>,
    pub(crate) start: Instant,
    /// The gateway is about to stop, so `/healthz` fails.
    pub(crate) is_stopping: AtomicBool,
}

impl GatewayContext {
    /// The current configuration.
    pub(crate) fn resolved(&self) -> Arc<ResolvedConfig> {
        self.resolved.borrow().clone()
    }

    /// The current load estimate.
    pub(crate) fn estimate(&self) -> LoadEstimate {
        match self.resolved().config.demand.watch {
            Watch::Workers => self.metrics.estimates.all(),
            _ => *self.estimate.borrow(),
        }
    }

    /// True if the busy share comes with replies, so that it is unknown without requests.
    pub(crate) fn is_reported(&self) -> bool {
        matches!(self.resolved().config.demand.watch, Watch::Upstream(_))
    }

    /// The last sampled busy share, 0 to 1. `None` if unknown.
    pub(crate) fn busy(&self) -> Option<f64> {
        match self.resolved().config.demand.watch {
            Watch::Workers => {
                let estimate = self.estimate();
                estimate.is_known.then(|| estimate.busy.into())
            }
            // Current as soon as a reply has carried a report.
            Watch::Upstream(_) => self.resolved().reported_busy(now()),
            _ => Some(f64::from_bits(self.latest.load(Relaxed))).filter(|busy| !busy.is_nan()),
        }
    }
}

impl std::fmt::Debug for GatewayContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayContext").finish_non_exhaustive()
    }
}
