//! Names of upstreams and their addresses over time.
//!
//! A name is looked up when its time to live ends, and after a failed connection to one of its addresses. All routes
//! and all configurations in use share what is known of a name, so a request that began under an earlier configuration
//! follows its changes, too.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use Ordering::Relaxed;
use posthaste_serve::client::block_on;
use tokio::sync::Notify;
use tokio::time::timeout_at;

use super::lookup::{Addresses, LookupError, lookup};
use crate::config;

/// Outcomes of lookups, in the order of [`LookupOutcome`].
pub(crate) const LOOKUPS: [&str; 4] = ["changed", "unchanged", "no-address", "failed"];

/// The outcome of a lookup.
#[derive(Clone, Copy)]
enum LookupOutcome {
    Changed,
    Unchanged,
    NoAddress,
    Failed,
}

/// A user of the addresses of a name.
pub(crate) trait AddressUser: Send + Sync {
    /// Replaces the addresses. They are in their own order.
    fn set_addresses(&self, addresses: &[IpAddr]);

    /// Learns that a lookup has ended, after its change.
    fn looked_up(&self);
}

/// A name with its current addresses.
pub(crate) struct HostName {
    name: String,
    known: Mutex<Known>,
    /// Upstreams of this name, in all configurations in use.
    users: Mutex<Vec<Weak<dyn AddressUser>>>,
    /// Lookups requested because a connection failed.
    requested: AtomicU64,
    /// Value of `requested` at the start of the last finished lookup.
    served: AtomicU64,
    /// Wakes the task that looks up the name.
    wake: Notify,
    /// The last lookup gave no address.
    is_failing: AtomicBool,
    /// In the order of [`LOOKUPS`].
    pub(crate) lookups: [AtomicU64; LOOKUPS.len()],
}

/// The last addresses of a name.
struct Known {
    addresses: Addresses,
    /// Earliest time of the next lookup, `min_ttl` after the start of the last one.
    earliest: Instant,
}

/// The names of one configuration, for its upstreams. Each is looked up once.
pub(crate) struct Names<'a> {
    rules: &'a config::Resolver,
    by_name: BTreeMap<String, Arc<HostName>>,
}

impl HostName {
    fn new(name: &str, addresses: Addresses, earliest: Instant) -> Self {
        Self {
            name: name.to_owned(),
            known: Mutex::new(Known {
                addresses,
                earliest,
            }),
            users: Mutex::default(),
            requested: AtomicU64::new(0),
            served: AtomicU64::new(0),
            wake: Notify::new(),
            is_failing: AtomicBool::new(false),
            lookups: Default::default(),
        }
    }

    /// The current addresses, in their own order.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.known().addresses.list.clone()
    }

    /// Requests a lookup before the time to live ends, because the addresses may be outdated.
    pub(crate) fn request(&self) {
        self.requested.fetch_add(1, Relaxed);
        self.wake.notify_one();
    }

    /// True if a requested lookup has not ended, and runs or starts before `deadline`.
    pub(super) fn is_pending(&self, deadline: Instant) -> bool {
        self.is_requested() && self.known().earliest <= deadline
    }

    fn is_requested(&self) -> bool {
        self.served.load(Ordering::Acquire) != self.requested.load(Relaxed)
    }

    /// Makes `user` follow the addresses.
    pub(super) fn add_user(&self, user: Arc<dyn AddressUser>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|user| user.strong_count() > 0);
        users.push(Arc::downgrade(&user));
        // They may have changed since the user was created.
        user.set_addresses(&self.addresses());
    }

    /// Looks up the name whenever it is due, forever.
    pub(crate) async fn keep_current(&self, rules: &config::Resolver) {
        loop {
            self.wait_until_due().await;
            let requested = self.requested.load(Relaxed);
            let earliest = Instant::now() + Duration::from(rules.min_ttl);
            let found = lookup(&self.name, rules, &self.addresses()).await;
            self.apply(found, earliest.max(Instant::now()));
            self.served.store(requested, Ordering::Release);
            self.users().iter().for_each(|user| user.looked_up());
        }
    }

    async fn wait_until_due(&self) {
        loop {
            let (until, earliest) = {
                let known = self.known();
                (known.addresses.until, known.earliest)
            };
            let due = match self.is_requested() {
                true => until.min(earliest),
                false => until,
            };
            let woken = timeout_at(due.into(), self.wake.notified()).await;
            if woken.is_err() {
                return;
            }
        }
    }

    /// Applies the outcome of a lookup. Without an address the last ones stay in use, also if the name does not exist:
    /// an answer without addresses is more often an error of a zone or of a name server than the wish to stop a
    /// service, and requests to old addresses fail no worse than requests to none.
    fn apply(&self, found: Result<Addresses, LookupError>, earliest: Instant) {
        let outcome = match found {
            Ok(addresses) => {
                if self.is_failing.swap(false, Relaxed) {
                    tracing::info!(name = self.name, "the name is resolved again");
                }
                self.replace(addresses, earliest)
            }
            Err(error) => {
                if !self.is_failing.swap(true, Relaxed) {
                    let name = &self.name;
                    tracing::warn!(name, %error, "it cannot be resolved: its last addresses stay in use");
                }
                let mut known = self.known();
                known.earliest = earliest;
                known.addresses.until = earliest;
                match error {
                    LookupError::NoAddress => LookupOutcome::NoAddress,
                    LookupError::Failed(_) | LookupError::TimedOut => LookupOutcome::Failed,
                }
            }
        };
        self.lookups[outcome as usize].fetch_add(1, Relaxed);
    }

    /// Replaces the addresses, also those of all users.
    fn replace(&self, addresses: Addresses, earliest: Instant) -> LookupOutcome {
        let list = addresses.list.clone();
        let before = std::mem::replace(
            &mut *self.known(),
            Known {
                addresses,
                earliest,
            },
        );
        // Under its lock, so that a user that is added meanwhile gets the new addresses, too.
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        for user in users.iter().filter_map(Weak::upgrade) {
            user.set_addresses(&list);
        }
        drop(users);
        if before.addresses.list == list {
            return LookupOutcome::Unchanged;
        }
        let old = before.addresses.list;
        tracing::info!(name = self.name, ?old, new = ?list, "the name has other addresses");
        LookupOutcome::Changed
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn users(&self) -> Vec<Arc<dyn AddressUser>> {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.iter().filter_map(Weak::upgrade).collect()
    }
}

impl<'a> Names<'a> {
    /// Starts with the names that earlier configurations use. Their addresses are known.
    pub(crate) fn new(
        rules: &'a config::Resolver,
        known: impl IntoIterator<Item = Arc<HostName>>,
    ) -> Self {
        let known = known.into_iter();
        Self {
            rules,
            by_name: known.map(|host| (host.name.clone(), host)).collect(),
        }
    }

    /// Returns a name, looked up if it is not known. Blocks.
    pub(super) fn get(&mut self, name: &str) -> io::Result<Arc<HostName>> {
        if let Some(known) = self.by_name.get(name) {
            return Ok(known.clone());
        }
        let earliest = Instant::now() + Duration::from(self.rules.min_ttl);
        // The caller may run inside a runtime.
        let found = std::thread::scope(|scope| {
            let looking = scope.spawn(|| block_on(lookup(name, self.rules, &[])));
            looking.join().expect("a lookup does not panic")
        });
        let addresses = found?.map_err(io::Error::other)?;
        let host = Arc::new(HostName::new(name, addresses, earliest));
        self.by_name.insert(name.to_owned(), host.clone());
        Ok(host)
    }
}
