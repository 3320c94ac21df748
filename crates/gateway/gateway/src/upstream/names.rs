//! The names of the upstreams of one configuration, and their first lookup.
//!
//! A name without an address prevents neither a start nor a change of the configuration: the other routes are served,
//! and the lookups of [`HostName::keep_current`] follow.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use posthaste_gateway_config as config;
use posthaste_resolver::{Addresses, LookupError, lookup};
use posthaste_serve::client::block_on;
use posthaste_serve::environment::is_simulated;
use tokio::time::{Instant, timeout};

use super::resolution::HostName;

/// Maximum wait for the first lookups. Those that last longer are repeated while the gateway serves.
const FIRST_LOOKUPS: Duration = Duration::from_secs(5);

/// The names of one configuration. Each is looked up once.
pub(crate) struct Names<'a> {
    rules: &'a config::Resolver,
    by_name: BTreeMap<String, Arc<HostName>>,
    /// Names that no earlier configuration has.
    new: Vec<Arc<HostName>>,
}

/// A name whose first lookup has failed.
pub(crate) struct UnresolvedName {
    pub(crate) name: String,
    pub(crate) error: LookupError,
}

impl<'a> Names<'a> {
    /// Starts with the names that earlier configurations use.
    pub(crate) fn new(
        rules: &'a config::Resolver,
        known: impl IntoIterator<Item = Arc<HostName>>,
    ) -> Self {
        let known = known.into_iter();
        Self {
            rules,
            by_name: known.map(|host| (host.name.clone(), host)).collect(),
            new: Vec::new(),
        }
    }

    /// Returns a name. A new one has no address until [`Names::look_up_new`].
    pub(super) fn get(&mut self, name: &str) -> Arc<HostName> {
        if let Some(known) = self.by_name.get(name) {
            return known.clone();
        }
        let host = Arc::new(HostName::new(name));
        self.by_name.insert(name.to_owned(), host.clone());
        self.new.push(host.clone());
        host
    }

    /// Looks up all new names at the same time, before they have users. Blocks for at most [`FIRST_LOOKUPS`]. Returns
    /// the names without an address.
    pub(crate) fn look_up_new(&mut self) -> Vec<UnresolvedName> {
        let new = std::mem::take(&mut self.new);
        let earliest = Instant::now() + Duration::from(self.rules.min_ttl);
        let found = look_up_now(&new, self.rules);
        let mut unresolved = Vec::new();
        for (host, found) in new.iter().zip(found) {
            host.begin(&found, earliest);
            if let Err(error) = found {
                let name = host.name.clone();
                unresolved.push(UnresolvedName { name, error });
            }
        }
        unresolved
    }
}

/// Looks up `hosts` and blocks the thread. Nothing else runs meanwhile in a simulation, so the answers must be there at
/// once.
fn look_up_now(
    hosts: &[Arc<HostName>],
    rules: &config::Resolver,
) -> Vec<Result<Addresses, LookupError>> {
    let mut found: Vec<_> = hosts.iter().map(|_| None).collect();
    if is_simulated() {
        let mut context = Context::from_waker(Waker::noop());
        let _ = pin!(look_up_all(hosts, rules, &mut found)).poll(&mut context);
    } else if !hosts.is_empty() {
        // The caller may run inside a runtime.
        std::thread::scope(|scope| {
            let looking = look_up_all(hosts, rules, &mut found);
            let limited = async { timeout(FIRST_LOOKUPS, looking).await };
            let looking = scope.spawn(|| block_on(limited));
            let _ = looking.join().expect("a lookup does not panic");
        });
    }
    let found = found.into_iter();
    found
        .map(|found| found.unwrap_or(Err(LookupError::TimedOut)))
        .collect()
}

/// Looks up `hosts` and stores each result as it arrives.
async fn look_up_all(
    hosts: &[Arc<HostName>],
    rules: &config::Resolver,
    found: &mut [Option<Result<Addresses, LookupError>>],
) {
    let lookups = hosts.iter().zip(found);
    let mut pending: Vec<_> = lookups
        .map(|(host, found)| (lookup(&host.name, rules, &[]), found))
        .collect();
    poll_fn(|context| {
        pending.retain_mut(|(lookup, found)| match lookup.as_mut().poll(context) {
            Poll::Ready(result) => {
                **found = Some(result);
                false
            }
            Poll::Pending => true,
        });
        if pending.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
