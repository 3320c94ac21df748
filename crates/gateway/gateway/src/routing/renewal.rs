//! The names of the current configuration, resolved again and again on a thread of their own.

use std::io;
use std::sync::Arc;

use posthaste_gateway_config as config;
use posthaste_serve::{Background, spawn_task};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::resolved::ResolvedConfig;
use crate::upstream::resolution::HostName;

/// Keeps the names of upstreams resolved, of each new configuration from its start.
pub(crate) fn start(configs: watch::Receiver<Arc<ResolvedConfig>>) -> io::Result<Background> {
    Background::start("posthaste-names", || follow(configs))
}

/// The running task of each name.
type Running = Vec<(Arc<HostName>, AbortHandle)>;

async fn follow(mut configs: watch::Receiver<Arc<ResolvedConfig>>) {
    let mut running = Running::new();
    let mut rules = config::Resolver::default();
    loop {
        let config = configs.borrow_and_update().clone();
        let names: Vec<_> = config.host_names().collect();
        let is_same = rules == config.config.resolver;
        rules = config.config.resolver.clone();
        drop(config);
        // A lookup under way is not interrupted by a change of something else.
        running.retain(|(name, task)| {
            let stays = is_same && names.iter().any(|other| Arc::ptr_eq(name, other));
            if !stays {
                task.abort();
            }
            stays
        });
        for name in names {
            if !running.iter().any(|(other, _)| Arc::ptr_eq(&name, other)) {
                let (looked_up, rules) = (name.clone(), rules.clone());
                let keeping = async move { looked_up.keep_current(&rules).await };
                running.push((name, spawn_task(keeping).abort_handle()));
            }
        }
        if configs.changed().await.is_err() {
            return;
        }
    }
}
