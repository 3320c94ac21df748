//! The waiting requests of one tier, in fair order: start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) with
//! requests of equal size.
//!
//! Each request has a start tag: that of the client's request before plus one, but not less than the highest tag
//! served, minus [`CREDIT`]. The smallest tag is served next. So a client that sends ten times as much waits behind its
//! own requests. One that sends rarely does not wait for it, and a few requests at once do not make it wait.

use std::collections::{BTreeSet, HashMap, VecDeque};

use posthaste_units::{Instant, Span};

/// Requests by which a client may lag behind the others and make up for it later.
const CREDIT: u64 = 4;

/// Clients without a waiting request whose tags are remembered.
const MOST_IDLE: usize = 1 << 14;

/// A client, as a hash of its name.
pub(super) type ClientHash = u64;

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Rising in the order of arrival.
    pub(super) number: u64,
    pub(super) client: ClientHash,
    pub(super) kind: usize,
    pub(super) since: Instant,
    /// Longest wait, from the terms under which it arrived.
    pub(super) wait: Span,
}

/// Waiting requests, by client.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    /// Highest start tag of a request that was served.
    clock: u64,
    clients: HashMap<ClientHash, ClientQueue>,
    /// Clients with waiting requests: start tag, number and client of the first one.
    heads: BTreeSet<(u64, u64, ClientHash)>,
    /// The same clients: start tag after the last one, and client.
    tails: BTreeSet<(u64, ClientHash)>,
    length: usize,
}

#[derive(Debug, Default)]
struct ClientQueue {
    /// Start tag of the first waiting request, or of the next one that arrives.
    start: u64,
    /// Time since which the client has had waiting requests. That they are discarded does not end it.
    standing: Option<Instant>,
    waiting: VecDeque<Waiting>,
}

impl ClientQueue {
    fn tail(&self) -> u64 {
        self.start + self.waiting.len() as u64
    }
}

impl FairQueue {
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a request.
    pub(super) fn push(&mut self, request: Waiting) {
        let least = self.least();
        self.update(request.client, |queue| {
            if queue.waiting.is_empty() {
                queue.start = queue.start.max(least);
                queue.standing.get_or_insert(request.since);
            }
            queue.waiting.push_back(request);
        });
        self.length += 1;
    }

    /// Counts a request that is served without waiting.
    pub(super) fn pass(&mut self, client: ClientHash) {
        debug_assert!(self.is_empty(), "a request passes those that wait");
        let least = self.least();
        let queue = self.clients.entry(client).or_default();
        let start = queue.start.max(least);
        queue.start = start + 1;
        queue.standing = None;
        self.clock = self.clock.max(start);
        self.forget();
    }

    /// Returns the next request, and the time since which its client has had waiting requests.
    pub(super) fn first(&self) -> Option<(&Waiting, Instant)> {
        let (_, _, client) = self.heads.first()?;
        let queue = &self.clients[client];
        let first = queue.waiting.front()?;
        Some((first, queue.standing.unwrap_or(first.since)))
    }

    /// Removes the next request, which is served.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let (start, _, client) = *self.heads.first()?;
        self.clock = self.clock.max(start);
        let served = self.update(client, |queue| {
            queue.start += 1;
            let served = queue.waiting.pop_front();
            if queue.waiting.is_empty() {
                queue.standing = None;
            }
            served
        });
        self.length -= 1;
        self.forget();
        served
    }

    /// Removes the next request, which is not served.
    pub(super) fn discard_first(&mut self) -> Option<Waiting> {
        let (_, _, client) = *self.heads.first()?;
        let discarded = self.update(client, |queue| queue.waiting.pop_front());
        self.length -= 1;
        self.forget();
        discarded
    }

    /// Returns true if a new request of the client would be served after all that wait.
    pub(super) fn would_be_last(&self, client: ClientHash) -> bool {
        let queue = self.clients.get(&client);
        let tag = queue.map_or(0, ClientQueue::tail).max(self.least());
        self.tails.last().is_none_or(|(tail, _)| tag + 1 >= *tail)
    }

    /// Removes the newest request of the client that would be served last.
    pub(super) fn discard_last(&mut self) -> Option<Waiting> {
        let (_, client) = *self.tails.last()?;
        let discarded = self.update(client, |queue| queue.waiting.pop_back());
        self.length -= 1;
        self.forget();
        discarded
    }

    /// Removes a request, wherever it is. Returns false if it does not wait.
    pub(super) fn remove(&mut self, client: ClientHash, number: u64) -> bool {
        if !self.clients.contains_key(&client) {
            return false;
        }
        let removed = self.update(client, |queue| {
            let index = queue
                .waiting
                .binary_search_by_key(&number, |request| request.number);
            index.is_ok_and(|index| queue.waiting.remove(index).is_some())
        });
        self.length -= usize::from(removed);
        self.forget();
        removed
    }

    /// Removes a request, wherever it is, which is served before others. Its client has had its turn. Returns false if it
    /// does not wait.
    pub(super) fn serve(&mut self, client: ClientHash, number: u64) -> bool {
        if !self.remove(client, number) {
            return false;
        }
        let served = self.update(client, |queue| {
            let start = queue.start;
            queue.start += 1;
            if queue.waiting.is_empty() {
                queue.standing = None;
            }
            start
        });
        self.clock = self.clock.max(served);
        true
    }

    /// Start tag of a new client.
    const fn least(&self) -> u64 {
        self.clock.saturating_sub(CREDIT)
    }

    /// Changes the queue of a client, and its place among the others.
    fn update<T>(&mut self, client: ClientHash, change: impl FnOnce(&mut ClientQueue) -> T) -> T {
        let queue = self.clients.entry(client).or_default();
        if let Some(first) = queue.waiting.front() {
            self.heads.remove(&(queue.start, first.number, client));
            self.tails.remove(&(queue.tail(), client));
        }
        let result = change(queue);
        if let Some(first) = queue.waiting.front() {
            self.heads.insert((queue.start, first.number, client));
            self.tails.insert((queue.tail(), client));
        }
        result
    }

    /// Forgets clients without a waiting request if there are too many: first those with the tag of a new client, then
    /// the tags of all.
    fn forget(&mut self) {
        if self.clients.len() <= MOST_IDLE + self.heads.len() {
            return;
        }
        let least = self.least();
        let is_ahead = |queue: &ClientQueue| queue.start > least;
        self.clients
            .retain(|_, queue| !queue.waiting.is_empty() || is_ahead(queue));
        if self.clients.len() > MOST_IDLE / 2 + self.heads.len() {
            self.clients.retain(|_, queue| !queue.waiting.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_without_a_request_do_not_fill_the_memory() {
        let mut queue = FairQueue::default();
        (0..100_000).for_each(|client| queue.pass(client));
        assert!(queue.clients.len() <= MOST_IDLE);
        let request = |number| Waiting {
            number,
            kind: 0,
            client: number,
            since: Instant::ORIGIN,
            wait: Span::ZERO,
        };
        (0..100_000).for_each(|number| queue.push(request(number)));
        assert!(std::iter::from_fn(|| queue.pop()).count() == 100_000);
        assert!(queue.is_empty() && queue.heads.is_empty() && queue.tails.is_empty());
        assert!(queue.clients.len() <= MOST_IDLE);
    }

    /// As while a service hangs: no request is served, and all are given up.
    #[test]
    fn clients_that_give_up_do_not_fill_the_memory() {
        let mut queue = FairQueue::default();
        for number in 0..100_000 {
            queue.push(Waiting {
                number,
                kind: 0,
                client: number,
                since: Instant::ORIGIN,
                wait: Span::ZERO,
            });
            assert!(queue.remove(number, number));
        }
        assert!(queue.is_empty() && queue.heads.is_empty());
        assert!(queue.clients.len() <= MOST_IDLE);
    }

    /// A client whose second request is served early waits behind the others for its next turn.
    #[test]
    fn a_request_that_is_served_early_is_its_clients_turn() {
        let mut queue = FairQueue::default();
        for (number, client) in [(1, 7), (2, 7), (3, 7), (4, 8), (5, 8)] {
            queue.push(Waiting {
                number,
                kind: 0,
                client,
                since: Instant::ORIGIN,
                wait: Span::ZERO,
            });
        }
        assert!(queue.serve(7, 2) && !queue.serve(7, 2));
        let order = std::iter::from_fn(|| queue.pop()).map(|request| request.number);
        assert_eq!(order.collect::<Vec<_>>(), [4, 1, 5, 3]);
        assert!(
            queue
                .clients
                .values()
                .all(|client| client.standing.is_none())
        );
    }

    #[test]
    fn the_newest_request_of_the_client_with_most_is_discarded() {
        let mut queue = FairQueue::default();
        for (number, client) in [(1, 7), (2, 8), (3, 7), (4, 7)] {
            let since = Instant::ORIGIN;
            queue.push(Waiting {
                number,
                kind: 0,
                client,
                since,
                wait: Span::ZERO,
            });
        }
        assert_eq!(queue.discard_last().map(|request| request.number), Some(4));
        let order = std::iter::from_fn(|| queue.pop()).map(|request| request.number);
        assert_eq!(order.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
