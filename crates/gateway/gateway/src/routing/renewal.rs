//! The names of the current configuration, resolved again and again on a thread of their own.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use posthaste_serve::Background;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::resolved::ResolvedConfig;
use crate::config;
use crate::upstream::resolution::HostName;

/// Keeps the names of upstreams resolved, of each new configuration from its start.
pub(crate) fn start(configs: watch::Receiver<Arc<ResolvedConfig>>) -> io::Result<Background> {
    Background::start("posthaste-names", || follow(configs))
}

/// The running tasks by the address of their name. A name lives as long as its entry.
type Running = HashMap<*const HostName, (Arc<HostName>, AbortHandle)>;

async fn follow(mut configs: watch::Receiver<Arc<ResolvedConfig>>) {
    let mut running = Running::new();
    let mut rules = config::Resolver::default();
    loop {
        let config = configs.borrow_and_update().clone();
        let names: HashMap<_, _> = config
            .host_names()
            .map(|name| (Arc::as_ptr(&name), name))
            .collect();
        let is_same = rules == config.config.resolver;
        rules = config.config.resolver.clone();
        drop(config);
        // A lookup under way is not interrupted by a change of something else.
        running.retain(|name, (_, task)| {
            let stays = is_same && names.contains_key(name);
            if !stays {
                task.abort();
            }
            stays
        });
        for (pointer, name) in names {
            running.entry(pointer).or_insert_with(|| {
                let (looked_up, rules) = (name.clone(), rules.clone());
                let keeping = async move { looked_up.keep_current(&rules).await };
                (name, tokio::spawn(keeping).abort_handle())
            });
        }
        if configs.changed().await.is_err() {
            return;
        }
    }
}
