//! The endpoints of a route as one thread uses them: each with its connections, and the choice among them.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::changes::Changes;
use super::endpoint::UpstreamEndpoint;
use super::error::UpstreamError;
use super::known_pools::KnownPools;
use super::pool::Pool;
use super::route_upstreams::RouteUpstreams;
use super::target::UpstreamTarget;
use crate::record::metrics::GatewayMetrics;

/// An endpoint with the connections of this thread to it.
pub(super) struct Member {
    /// Index of the upstream in its route.
    pub(super) index: usize,
    pub(super) target: Arc<UpstreamTarget>,
    pub(super) endpoint: Arc<UpstreamEndpoint>,
    pub(super) pool: Rc<Pool>,
}

/// The members of a route for one thread.
pub(super) struct Members {
    metrics: Arc<GatewayMetrics>,
    targets: Vec<Arc<UpstreamTarget>>,
    changes: Arc<Changes>,
    /// The count of changes that `list` follows.
    seen: Cell<u64>,
    list: RefCell<Vec<Rc<Member>>>,
    /// Position at which the next choice starts, so that members with equal load take turns.
    next: Cell<usize>,
}

/// State of one request over its attempts.
#[derive(Default)]
pub(super) struct Tried {
    /// The deadline of a gRPC call.
    pub(super) deadline: Option<Instant>,
    /// The request has other upstreams, and does not wait for a lookup.
    pub(super) has_others: bool,
    /// Endpoints that took nothing of the request. It does not go there again.
    pub(super) failed: Vec<MemberKey>,
    /// Endpoints that got the request. They get it again only if there is no other.
    pub(super) attempted: Vec<MemberKey>,
}

/// The identity of a member over changes of the list.
pub(super) type MemberKey = (usize, SocketAddr);

impl Tried {
    pub(super) fn new(deadline: Option<Instant>) -> Self {
        Self {
            deadline,
            ..Self::default()
        }
    }

    /// True after the deadline.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| end <= Instant::now())
    }
}

impl Member {
    pub(super) fn key(&self) -> MemberKey {
        (self.index, self.endpoint.address)
    }

    pub(super) fn parts(&self) -> (&UpstreamTarget, &UpstreamEndpoint, &Rc<Pool>) {
        (&self.target, &self.endpoint, &self.pool)
    }
}

impl Members {
    /// Addresses with known `pools` keep their connections.
    pub(super) fn new(
        metrics: &Arc<GatewayMetrics>,
        upstreams: &RouteUpstreams,
        pools: &KnownPools,
    ) -> Self {
        let changes = upstreams.changes.clone();
        let members = Self {
            metrics: metrics.clone(),
            targets: upstreams.targets.clone(),
            seen: Cell::new(changes.count.load(Relaxed)),
            changes,
            list: RefCell::default(),
            next: Cell::new(0),
        };
        members.rebuild(pools);
        members
    }

    /// Adds the connections of each member that a later configuration may use.
    pub(super) fn add_pools(&self, pools: &mut KnownPools) {
        self.refresh();
        for member in self.list.borrow().iter() {
            if !member.target.has_authority() {
                pools.add(&member.endpoint, &member.pool);
            }
        }
    }

    /// Leaves the pools to a later configuration. Those that it does not use close.
    pub(super) fn retire(&self) {
        for member in self.list.borrow().iter() {
            member.pool.leave();
        }
    }

    /// Returns the usable member with the fewest requests of this thread in flight. Members with equally many take
    /// turns. In this order:
    ///
    /// 1. members that are not in `tried`
    /// 2. members that have had the request
    /// 3. ejected members: a request to one of them is better than none
    pub(super) fn choose(&self, tried: &Tried) -> Option<Rc<Member>> {
        self.refresh();
        let has_failed = |member: &Member| tried.failed.contains(&member.key());
        let was_attempted = |member: &Member| tried.attempted.contains(&member.key());
        let list = self.list.borrow();
        let chosen = self
            .least(&list, |member| {
                member.endpoint.is_usable() && !has_failed(member) && !was_attempted(member)
            })
            .or_else(|| {
                self.least(&list, |member| {
                    member.endpoint.is_usable() && !has_failed(member)
                })
            })
            .or_else(|| {
                self.least(&list, |member| {
                    member.endpoint.health.is_up() && !has_failed(member)
                })
            })?;
        // Further choices of a request do not count: with two members, each request would start at the same one.
        if tried.failed.is_empty() && tried.attempted.is_empty() {
            self.next.set(chosen + 1);
        }
        Some(list[chosen].clone())
    }

    fn least(&self, list: &[Rc<Member>], is_allowed: impl Fn(&Member) -> bool) -> Option<usize> {
        let (before, after) = list.split_at(self.next.get().min(list.len()));
        let (start, after) = (before.len(), after.iter().enumerate());
        let after = after.map(|(index, member)| (start + index, member));
        after
            .chain(before.iter().enumerate())
            .filter(|(_, member)| is_allowed(member))
            .min_by_key(|(_, member)| member.pool.in_use())
            .map(|(index, _)| index)
    }

    /// Fewest requests of this thread in flight to a usable member. `None` if no member is usable.
    pub(super) fn least_in_flight(&self) -> Option<usize> {
        self.refresh();
        let list = self.list.borrow();
        let usable = list.iter().filter(|member| member.endpoint.is_usable());
        usable.map(|member| member.pool.in_use()).min()
    }

    /// The failure of a request for which no member can be chosen.
    pub(super) fn reason_without_any(&self) -> UpstreamError {
        if self.list.borrow().is_empty() {
            UpstreamError::Unresolved
        } else {
            UpstreamError::NoneHealthy
        }
    }

    /// Shortest time until an excluded member may be used again.
    pub(super) fn first_return(&self) -> Option<Duration> {
        let list = self.list.borrow();
        let returns = list
            .iter()
            .map(|member| member.endpoint.health.returns_in());
        returns.min()
    }

    /// Closes connections that have been unused for `idle`, and all unused ones to addresses that are gone.
    pub(super) fn close_unused(&self, idle: Duration) {
        self.refresh();
        for member in self.list.borrow().iter() {
            member.pool.close_unused(idle);
        }
    }

    /// Waits for a lookup that a failed connection has requested. False if there is none, or none that ends in time.
    pub(super) async fn wait_for_change(&self, deadline: Instant) -> bool {
        let looked_up = self.changes.looked_up.notified();
        let mut targets = self.targets.iter();
        let is_pending = targets.any(|target| {
            let host = target.host_name.as_ref();
            host.is_some_and(|host| host.is_pending(deadline))
        });
        // In this order: the end of a lookup follows its change.
        if self.changes.count.load(Relaxed) != self.seen.get() {
            return true;
        }
        is_pending && timeout_at(deadline, looked_up).await.is_ok()
    }

    /// Follows the changes of addresses. Costs one load if there are none.
    fn refresh(&self) {
        // Relaxed suffices: the lock of the endpoints orders the change itself, which precedes its count.
        let changes = self.changes.count.load(Relaxed);
        if changes != self.seen.get() {
            self.seen.set(changes);
            self.rebuild(&KnownPools::default());
        }
    }

    /// Makes the list anew. Members that stay keep their connections. The others close those that are unused; requests
    /// in flight end on theirs.
    #[cold]
    fn rebuild(&self, pools: &KnownPools) {
        let mut known = self.list.take();
        let mut list = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            for endpoint in target.endpoints().iter() {
                let is_same = |member: &Rc<Member>| Arc::ptr_eq(&member.endpoint, endpoint);
                list.push(match known.iter().position(is_same) {
                    Some(index) => known.swap_remove(index),
                    None => Rc::new(Member {
                        index,
                        target: target.clone(),
                        endpoint: endpoint.clone(),
                        pool: pools.get(endpoint).map_or_else(
                            || Rc::new(Pool::new(self.metrics.clone())),
                            |pool| pool.stay(),
                        ),
                    }),
                });
            }
        }
        self.list.replace(list);
        for member in known {
            member.pool.retire();
        }
    }
}
