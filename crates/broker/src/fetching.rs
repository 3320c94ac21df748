//! Background thread that fetches offers from providers and queries the UDDI registry.

use std::sync::Arc;

use posthaste_serve::Background;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::shelf::Shelf;
use crate::sources::Source;
use crate::uddi::Watch;

/// Maximum number of concurrent fetches.
const AT_ONCE: usize = 64;

/// Context shared by the fetching tasks.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) registry: Arc<Registry>,
    pub(crate) keeper: Keeper,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) at_once: Arc<Semaphore>,
}

impl Means {
    pub(crate) fn new(registry: Arc<Registry>, keeper: Keeper, metrics: Arc<Metrics>) -> Self {
        let at_once = Arc::new(Semaphore::new(AT_ONCE));
        Self {
            registry,
            keeper,
            metrics,
            at_once,
        }
    }
}

/// Starts to fetch from `sources` and registered services, until the result is dropped. `None` if there are none.
pub(crate) fn start(
    sources: Vec<Source>,
    registry: Option<Watch>,
    means: Means,
) -> std::io::Result<Option<Background>> {
    if sources.is_empty() && registry.is_none() {
        return Ok(None);
    }
    let fetching = Background::start("fetch", move || async move {
        let mut tasks = JoinSet::new();
        for source in sources {
            tasks.spawn(Shelf::from(source).keep(means.clone()));
        }
        if let Some(registry) = registry {
            tasks.spawn(registry.run(means));
        }
        // The tasks never return. A panic of one task has been logged and does not stop the others.
        while tasks.join_next().await.is_some() {}
    });
    fetching.map(Some)
}
