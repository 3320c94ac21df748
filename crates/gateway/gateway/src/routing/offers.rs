//! The offers of the current configuration, followed on a thread of their own.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use posthaste_serve::Background;
use tokio::sync::watch;
use tokio::task::{AbortHandle, LocalSet};

use super::resolved::ResolvedConfig;
use crate::config::Resolver;
use crate::offers::following::keep;
use crate::offers::shared::RouteOffers;

/// Follows the offers of each new configuration from its start.
pub(crate) fn start(configs: watch::Receiver<Arc<ResolvedConfig>>) -> io::Result<Background> {
    Background::start("posthaste-offers", || async move {
        LocalSet::new().run_until(follow(configs)).await;
    })
}

/// The running tasks by the address of their route's offers, which live as long as their entry.
type Running = HashMap<*const RouteOffers, (Arc<RouteOffers>, AbortHandle)>;

async fn follow(mut configs: watch::Receiver<Arc<ResolvedConfig>>) {
    let mut running = Running::new();
    let mut rules = Resolver::default();
    loop {
        let config = configs.borrow_and_update().clone();
        let is_same = rules == config.config.resolver;
        rules = config.config.resolver.clone();
        let offers = config.routes().filter_map(|route| route.offers.cloned());
        let offers: HashMap<_, _> = offers
            .map(|offers| (Arc::as_ptr(&offers), offers))
            .collect();
        drop(config);
        running.retain(|pointer, (_, task)| {
            let stays = is_same && offers.contains_key(pointer);
            if !stays {
                task.abort();
            }
            stays
        });
        for (pointer, offers) in offers {
            running.entry(pointer).or_insert_with(|| {
                let keeping = keep(offers.clone(), rules.clone());
                (offers, tokio::task::spawn_local(keeping).abort_handle())
            });
        }
        if configs.changed().await.is_err() {
            return;
        }
    }
}
