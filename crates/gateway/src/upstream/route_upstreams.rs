//! The upstreams of a route, with the state that its threads share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::target::UpstreamTarget;
use crate::config::RouteConfig;
use crate::error::TargetError;

/// The upstreams of a route. Shared by all threads.
pub(crate) struct RouteUpstreams {
    pub(crate) targets: Vec<Arc<UpstreamTarget>>,
    /// Counts the changes of their addresses.
    pub(super) changes: Arc<AtomicU64>,
}

impl RouteUpstreams {
    pub(crate) fn new(route: &RouteConfig) -> Result<Self, TargetError> {
        let changes = Arc::default();
        Ok(Self {
            targets: UpstreamTarget::all(route, &changes)?,
            changes,
        })
    }

    /// Takes over from `known`, the same route in an earlier configuration, the knowledge about each address that both
    /// have. Must be called before this is shared.
    pub(crate) fn remember(&mut self, known: &Self) {
        for target in &mut self.targets {
            let target = Arc::get_mut(target).expect("a new configuration is not shared yet");
            let mut known = known.targets.iter();
            if let Some(known) = known.find(|known| known.name == target.name) {
                target.remember(known);
            }
        }
    }
}
