//! Context shared by the fetching tasks.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::metrics::BrokerMetrics;
use crate::registry::Registry;
use crate::writer::StoreWriter;

/// Maximum number of concurrent fetches.
const AT_ONCE: usize = 64;

/// Context shared by the fetching tasks.
#[derive(Clone)]
pub(crate) struct FetchContext {
    pub(crate) registry: Arc<Registry>,
    pub(crate) writer: StoreWriter,
    pub(crate) metrics: Arc<BrokerMetrics>,
    pub(crate) at_once: Arc<Semaphore>,
}

impl FetchContext {
    pub(crate) fn new(
        registry: Arc<Registry>,
        writer: StoreWriter,
        metrics: Arc<BrokerMetrics>,
    ) -> Self {
        let at_once = Arc::new(Semaphore::new(AT_ONCE));
        Self {
            registry,
            writer,
            metrics,
            at_once,
        }
    }
}
