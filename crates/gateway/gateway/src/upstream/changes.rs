//! Notice of changes of addresses, from the upstreams of a route to its threads.

use std::sync::atomic::AtomicU64;

use tokio::sync::Notify;

/// Changes of the addresses of a route's upstreams.
#[derive(Default)]
pub(super) struct Changes {
    /// Sets of addresses that were replaced.
    pub(super) count: AtomicU64,
    /// Wakes requests without a usable address at the end of each lookup.
    pub(super) looked_up: Notify,
}
