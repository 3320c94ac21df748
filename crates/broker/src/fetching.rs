//! The thread that fetches offers from providers, and asks the registry of services who they are.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::shelf::Shelf;
use crate::sources::Source;
use crate::uddi::Watch;

/// Documents that are fetched at the same time at most.
const AT_ONCE: usize = 64;

/// What the tasks use.
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

/// The thread. Dropping it ends it.
pub(crate) struct Fetching {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Fetching {
    /// Begins to fetch these, and what the registry names, if there are any.
    pub(crate) fn start(
        sources: Vec<Source>,
        registry: Option<Watch>,
        means: Means,
    ) -> std::io::Result<Option<Self>> {
        if sources.is_empty() && registry.is_none() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, mut stopped) = watch::channel(false);
        let body = move || {
            runtime.block_on(async move {
                let mut tasks = JoinSet::new();
                for source in sources {
                    tasks.spawn(Shelf::from(source).keep(means.clone()));
                }
                if let Some(registry) = registry {
                    tasks.spawn(registry.run(means));
                }
                // Dropped or told: either is the end, and the tasks end with it.
                let _ = stopped.changed().await;
            });
        };
        let thread = std::thread::Builder::new()
            .name("fetch".to_owned())
            .spawn(body)?;
        let thread = Some(thread);
        Ok(Some(Self { stop, thread }))
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread that fetches offers has panicked");
        }
    }
}
