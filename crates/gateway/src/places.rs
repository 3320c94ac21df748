//! How many requests of one thread are under way at upstreams: as many as keep it busy, and no more.
//!
//! The more are under way, the more each costs: each has a connection to its upstream, which has to be opened and,
//! among a thousand, has left the processor's caches by the time its reply comes. What a stall has gathered is then
//! served more slowly than more of it comes. So a crowd waits here, in the order in which it came, and few connections
//! that stay warm serve it. An upstream that takes its time needs more of them: whenever the event loop has gone round
//! without a reply, one more request goes on, so that none waits for a thread that has nothing to do.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;

/// Requests under way while replies keep coming: enough to have some of each in every round of the loop. 16 and 64 are
/// as good, 8 are too few (docs/decisions/0003-crowds-of-connections.md).
const PLACES: usize = 32;

/// One thread's places.
pub(crate) struct Places {
    free: Semaphore,
    /// More than [`PLACES`], as long as they are needed.
    added: Cell<usize>,
    waiting: Cell<usize>,
    /// Told when somebody begins to wait.
    crowd: Notify,
    /// Whether a reply has come since the loop last went round.
    replied: Cell<bool>,
}

/// A request's place, until its reply has come.
pub(crate) struct Place<'p> {
    places: &'p Places,
    /// Whether none was free at once.
    pub(crate) waited: bool,
}

struct Waiting<'p>(&'p Places);

impl Places {
    pub(crate) fn new() -> Self {
        Self {
            free: Semaphore::new(PLACES),
            added: Cell::new(0),
            waiting: Cell::new(0),
            crowd: Notify::new(),
            replied: Cell::new(false),
        }
    }

    /// Takes a place, in the order of asking.
    pub(crate) async fn take(&self) -> Place<'_> {
        let (places, waited) = (self, self.free.available_permits() == 0);
        let _waiting = waited.then(|| Waiting::begin(self));
        // An error would say that the semaphore is closed: it never is.
        if let Ok(permit) = self.free.acquire().await {
            // The place brings it back.
            permit.forget();
        }
        Place { places, waited }
    }

    /// Adds places where requests wait and no reply comes. Never ends.
    pub(crate) async fn look_after(self: Rc<Self>) {
        loop {
            self.crowd.notified().await;
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

impl<'p> Waiting<'p> {
    fn begin(places: &'p Places) -> Self {
        places.waiting.set(places.waiting.get() + 1);
        places.crowd.notify_one();
        Self(places)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl Drop for Place<'_> {
    /// While others wait, an added place is given up: what needed it may be over.
    fn drop(&mut self) {
        let Places { free, added, .. } = self.places;
        self.places.replied.set(true);
        if added.get() > 0 && self.places.waiting.get() > 0 {
            added.set(added.get() - 1);
        } else {
            free.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::task::{JoinSet, LocalSet};

    use super::*;

    /// A thread that asks an upstream.
    struct Thread {
        places: Rc<Places>,
        under_way: Rc<Cell<usize>>,
        most: Rc<Cell<usize>>,
        requests: JoinSet<()>,
    }

    impl Thread {
        fn begin() -> Self {
            let places = Rc::new(Places::new());
            tokio::task::spawn_local(places.clone().look_after());
            Self {
                places,
                under_way: Rc::default(),
                most: Rc::default(),
                requests: JoinSet::new(),
            }
        }

        /// So many requests at once, each answered after so many rounds of the loop.
        fn ask(&mut self, count: usize, rounds: usize) {
            for _ in 0..count {
                let (places, under_way) = (self.places.clone(), self.under_way.clone());
                let most = self.most.clone();
                self.requests.spawn_local(async move {
                    let _place = places.take().await;
                    under_way.set(under_way.get() + 1);
                    most.set(most.get().max(under_way.get()));
                    for _ in 0..rounds {
                        yield_now().await;
                    }
                    under_way.set(under_way.get() - 1);
                });
            }
        }

        /// The most that were under way at once until all were answered.
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
            let mut thread = Thread::begin();
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, PLACES);
        });
    }

    #[test]
    fn all_go_on_to_an_upstream_that_does_not_answer() {
        run(async {
            let mut thread = Thread::begin();
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
    fn what_an_upstream_needed_that_took_its_time_is_given_up_when_it_is_quick_again() {
        run(async {
            let mut thread = Thread::begin();
            thread.ask(200, 500);
            assert_eq!(thread.most().await, 200);
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, 200);
            thread.ask(1_000, 1);
            assert_eq!(thread.most().await, PLACES);
        });
    }

    #[test]
    fn who_goes_away_leaves_the_queue() {
        run(async {
            let places = Places::new();
            let mut held = Vec::new();
            for _ in 0..PLACES {
                held.push(places.take().await);
            }
            let mut waits = Box::pin(places.take());
            let is_pending = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending()));
            assert!(is_pending.await);
            drop(waits);
            held.pop();
            assert!(!places.take().await.waited);
            assert_eq!(places.waiting.get(), 0);
        });
    }
}
