//! Background thread that fetches offers from providers and queries the UDDI registry.

use posthaste_serve::Background;
use tokio::task::JoinSet;

use crate::fetching::config::SourceConfig;
use crate::fetching::context::FetchContext;
use crate::fetching::source::OfferSource;
use crate::uddi::Watch;

/// Starts to fetch from `sources` and registered services, until the result is dropped. `None` if there are none.
pub(crate) fn start(
    sources: Vec<SourceConfig>,
    registry: Option<Watch>,
    context: FetchContext,
) -> std::io::Result<Option<Background>> {
    if sources.is_empty() && registry.is_none() {
        return Ok(None);
    }
    let fetching = Background::start("fetch", move || async move {
        let mut tasks = JoinSet::new();
        for source in sources {
            tasks.spawn(OfferSource::from(source).poll_forever(context.clone()));
        }
        if let Some(registry) = registry {
            tasks.spawn(registry.run(context));
        }
        // The tasks never return. A panic of one task has been logged and does not stop the others.
        while tasks.join_next().await.is_some() {}
    });
    fetching.map(Some)
}
