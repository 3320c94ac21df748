//! The count of an open tunnel.

use std::sync::Arc;

use crate::record::metrics::GatewayMetrics;
use crate::record::tunnels::{SwitchOutcome, TunnelEnd};

/// An open tunnel. Counts its end when dropped.
pub(crate) struct OpenTunnel {
    pub(crate) metrics: Arc<GatewayMetrics>,
    /// The end, if it is dropped now.
    pub(crate) end: TunnelEnd,
}

impl OpenTunnel {
    /// Counts a new tunnel for `protocol`.
    pub(crate) fn begin(metrics: &Arc<GatewayMetrics>, protocol: &str) -> Self {
        metrics.tunnels.switched(protocol, SwitchOutcome::Opened);
        Self {
            metrics: metrics.clone(),
            // Before it runs, only the loss of the client ends it.
            end: TunnelEnd::ClientError,
        }
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.metrics.tunnels.ended(self.end);
    }
}
