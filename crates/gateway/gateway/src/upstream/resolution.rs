//! Names of upstreams and their addresses over time.
//!
//! A name is looked up when its time to live ends, and after a failed connection to one of its addresses. All routes
//! and all configurations in use share what is known of a name, so a request that began under an earlier configuration
//! follows its changes, too.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use Ordering::Relaxed;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use posthaste_gateway_config as config;
use posthaste_resolver::{Addresses, LookupError, lookup};

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
    pub(super) name: String,
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
    /// In their own order. Empty until a lookup has given an address.
    list: Vec<IpAddr>,
    /// End of the time to live, or the time of the next attempt.
    until: Instant,
    /// Earliest time of the next lookup, `min_ttl` after the start of the last one.
    earliest: Instant,
}

impl HostName {
    /// A name without an address. A lookup is due at once.
    pub(super) fn new(name: &str) -> Self {
        let now = Instant::now();
        Self {
            name: name.to_owned(),
            known: Mutex::new(Known {
                list: Vec::new(),
                until: now,
                earliest: now,
            }),
            users: Mutex::default(),
            requested: AtomicU64::new(0),
            served: AtomicU64::new(0),
            wake: Notify::new(),
            is_failing: AtomicBool::new(false),
            lookups: Default::default(),
        }
    }

    /// The current addresses, in their own order. Empty if no lookup has given one.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.known().list.clone()
    }

    /// Applies the outcome of the first lookup, before the name has users. It is not counted.
    pub(super) fn begin(&self, found: &Result<Addresses, LookupError>, earliest: Instant) {
        match found {
            Ok(addresses) => {
                *self.known() = Known {
                    list: addresses.list.clone(),
                    until: addresses.until,
                    earliest,
                };
            }
            Err(_) => {
                self.is_failing.store(true, Relaxed);
                self.postpone(earliest);
            }
        }
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
                (known.until, known.earliest)
            };
            let due = if self.is_requested() {
                until.min(earliest)
            } else {
                until
            };
            let woken = timeout_at(due, self.wake.notified()).await;
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
                self.postpone(earliest);
                match error {
                    LookupError::NoAddress => LookupOutcome::NoAddress,
                    LookupError::Failed(_) | LookupError::TimedOut => LookupOutcome::Failed,
                }
            }
        };
        self.lookups[outcome as usize].fetch_add(1, Relaxed);
    }

    /// Plans the next attempt after a lookup without an address.
    fn postpone(&self, earliest: Instant) {
        let mut known = self.known();
        known.earliest = earliest;
        known.until = earliest;
    }

    /// Replaces the addresses, also those of all users.
    fn replace(&self, addresses: Addresses, earliest: Instant) -> LookupOutcome {
        let list = addresses.list.clone();
        let before = std::mem::replace(
            &mut *self.known(),
            Known {
                list: addresses.list,
                until: addresses.until,
                earliest,
            },
        );
        // Under its lock, so that a user that is added meanwhile gets the new addresses, too.
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        for user in users.iter().filter_map(Weak::upgrade) {
            user.set_addresses(&list);
        }
        drop(users);
        let old = before.list;
        if old == list {
            return LookupOutcome::Unchanged;
        }
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
