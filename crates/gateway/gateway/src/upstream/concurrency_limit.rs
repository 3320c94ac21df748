//! Concurrency limit: the number of requests that one thread has under way to upstreams.
//!
//! Each request costs more if more are under way, because each has its own connection. A connection must be opened and,
//! among a thousand, is no longer in the CPU caches when its reply arrives. Requests gathered during a stall would then
//! be served more slowly than new ones arrive. So excess requests wait here in arrival order, and few warm connections
//! serve them. Slow upstreams need more: whenever the event loop has completed a round without a reply, one more permit
//! is added, so that no request waits for an idle thread.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;

/// Permits while replies keep coming: some requests for every round of the loop. 16 and 64 perform as well, 8 are too
/// few (docs/decisions/0003-crowds-of-connections.md).
const PERMITS: usize = 32;

/// The concurrency limit of one thread.
pub(crate) struct ConcurrencyLimit {
    free: Semaphore,
    /// Permits added beyond [`PERMITS`].
    added: Cell<usize>,
    waiting: Cell<usize>,
    /// Notified when a request starts to wait.
    queued: Notify,
    /// A reply has arrived since the last round of the loop.
    replied: Cell<bool>,
}

/// The permit of a request, held until its reply has arrived.
pub(crate) struct Permit<'p> {
    limit: &'p ConcurrencyLimit,
    /// The request had to wait for the permit.
    pub(crate) waited: bool,
}

/// A request that waits for a permit.
struct QueueEntry<'p>(&'p ConcurrencyLimit);

impl ConcurrencyLimit {
    pub(crate) fn new() -> Self {
        Self {
            free: Semaphore::new(PERMITS),
            added: Cell::new(0),
            waiting: Cell::new(0),
            queued: Notify::new(),
            replied: Cell::new(false),
        }
    }

    /// Takes a permit, in order of arrival.
    pub(crate) async fn acquire(&self) -> Permit<'_> {
        let (limit, waited) = (self, self.free.available_permits() == 0);
        let _waiting = waited.then(|| QueueEntry::begin(self));
        let permit = self.free.acquire().await;
        // Dropping the `Permit` returns it.
        permit.expect("the semaphore is never closed").forget();
        Permit { limit, waited }
    }

    /// Adds permits while requests wait and no reply arrives. Never returns.
    pub(crate) async fn grow_while_idle(self: Rc<Self>) {
        loop {
            self.queued.notified().await;
            while self.waiting.get() > 0 {
                self.replied.set(false);
                yield_now().await;
                if self.waiting.get() > 0 && !self.replied.get() {
                    self.added.set(self.added.get() + 1);
                    self.free.add_permits(1);
                }
            }
        }
    }
}

impl<'p> QueueEntry<'p> {
    fn begin(limit: &'p ConcurrencyLimit) -> Self {
        limit.waiting.set(limit.waiting.get() + 1);
        limit.queued.notify_one();
        Self(limit)
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        debug_assert!(self.0.waiting.get() > 0, "a request leaves the queue twice");
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl Drop for Permit<'_> {
    /// Returns the permit. While others wait, an added permit is removed instead, since it may no longer be needed.
    fn drop(&mut self) {
        let ConcurrencyLimit { free, added, .. } = self.limit;
        self.limit.replied.set(true);
        if added.get() > 0 && self.limit.waiting.get() > 0 {
            added.set(added.get() - 1);
        } else {
            free.add_permits(1);
        }
        debug_assert!(
            free.available_permits() <= PERMITS + added.get(),
            "a permit is returned twice"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::task::{JoinSet, LocalSet};

    use super::*;

    /// A thread with requests to an upstream.
    struct TestThread {
        limit: Rc<ConcurrencyLimit>,
        under_way: Rc<Cell<usize>>,
        most: Rc<Cell<usize>>,
        requests: JoinSet<()>,
    }

    impl TestThread {
        fn begin() -> Self {
            let limit = Rc::new(ConcurrencyLimit::new());
            tokio::task::spawn_local(limit.clone().grow_while_idle());
            Self {
                limit,
                under_way: Rc::default(),
                most: Rc::default(),
                requests: JoinSet::new(),
            }
        }

        /// Starts `count` requests, each answered after `rounds` rounds of the loop.
        fn ask(&mut self, count: usize, rounds: usize) {
            for _ in 0..count {
                let (limit, under_way) = (self.limit.clone(), self.under_way.clone());
                let most = self.most.clone();
                self.requests.spawn_local(async move {
                    let _permit = limit.acquire().await;
                    under_way.set(under_way.get() + 1);
                    most.set(most.get().max(under_way.get()));
                    for _ in 0..rounds {
                        yield_now().await;
                    }
                    under_way.set(under_way.get() - 1);
                });
            }
        }

        /// Waits for all requests and returns the maximum that was under way at once.
        async fn most(&mut self) -> usize {
            while self.requests.join_next().await.is_some() {}
            self.most.replace(0)
        }
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), test);
    }

    #[test]
    fn a_crowd_waits_while_replies_come() {
        run(async {
            let mut thread = TestThread::begin();
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, PERMITS);
        });
    }

    #[test]
    fn all_go_on_to_an_upstream_that_does_not_answer() {
        run(async {
            let mut thread = TestThread::begin();
            thread.ask(1_000, usize::MAX);
            for _ in 0..100_000 {
                if thread.under_way.get() == 1_000 {
                    return;
                }
                yield_now().await;
            }
            panic!("{} of 1,000", thread.under_way.get());
        });
    }

    #[test]
    fn permits_for_a_slow_upstream_end_once_it_is_fast_again() {
        run(async {
            let mut thread = TestThread::begin();
            thread.ask(200, 500);
            assert_eq!(thread.most().await, 200);
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, 200);
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, PERMITS);
        });
    }

    #[test]
    fn cancelled_waiters_leave_the_queue() {
        run(async {
            let limit = ConcurrencyLimit::new();
            let mut held = Vec::new();
            for _ in 0..PERMITS {
                held.push(limit.acquire().await);
            }
            let mut waits = Box::pin(limit.acquire());
            let is_pending = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending()));
            assert!(is_pending.await);
            drop(waits);
            held.pop();
            assert!(!limit.acquire().await.waited);
            assert_eq!(limit.waiting.get(), 0);
        });
    }
}
