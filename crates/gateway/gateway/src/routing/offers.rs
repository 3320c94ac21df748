//! The offers of the current configuration, followed on a thread of their own.

use std::io;
use std::sync::Arc;

use posthaste_gateway_config::Resolver;
use posthaste_serve::{Background, spawn_task};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::resolved::ResolvedConfig;
use crate::offers::following::keep;
use crate::offers::shared::RouteOffers;

/// Follows the offers of each new configuration from its start.
pub(crate) fn start(configs: watch::Receiver<Arc<ResolvedConfig>>) -> io::Result<Background> {
    Background::start("posthaste-offers", || follow(configs))
}

/// The running task of each route's offers.
type Running = Vec<(Arc<RouteOffers>, AbortHandle)>;

async fn follow(mut configs: watch::Receiver<Arc<ResolvedConfig>>) {
    let mut running = Running::new();
    let mut rules = Resolver::default();
    loop {
        let config = configs.borrow_and_update().clone();
        let is_same = rules == config.config.resolver;
        rules = config.config.resolver.clone();
        let offers = config.routes().filter_map(|route| route.offers.cloned());
        let offers: Vec<_> = offers.collect();
        drop(config);
        running.retain(|(known, task)| {
            let stays = is_same && offers.iter().any(|other| Arc::ptr_eq(known, other));
            if !stays {
                task.abort();
            }
            stays
        });
        for offers in offers {
            if !running.iter().any(|(known, _)| Arc::ptr_eq(&offers, known)) {
                let keeping = keep(offers.clone(), rules.clone());
                running.push((offers, spawn_task(keeping).abort_handle()));
            }
        }
        if configs.changed().await.is_err() {
            return;
        }
    }
}
