//! Limits on the requests of one route or of one client: a rate and a number in service.

use std::collections::HashMap;

use posthaste_units::{Instant, Span};

use super::bucket::Bucket;

/// Clients with a state of their own. Those beyond share one.
const MOST_CLIENTS: usize = 1 << 16;

/// Configuration of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestLimits {
    /// Requests per second in the long run, and at once. `None` limits no rate.
    pub rate: Option<(f64, u32)>,
    /// Maximum number of requests in service or waiting. `None` limits no number.
    pub concurrency: Option<u32>,
}

/// The limit that rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The rate, for this time.
    Rate(Span),
    /// The number of requests.
    Concurrency,
}

/// The requests of one route or client, within limits.
#[derive(Clone, Debug)]
pub struct Limited {
    bucket: Option<Bucket>,
    present: u32,
}

/// The requests of all clients, within the same limits for each. At most 65,536 clients have a state of their own; the
/// requests of further ones count as those of one client.
#[derive(Debug)]
pub struct ClientLimits {
    limits: RequestLimits,
    clients: HashMap<u64, Limited>,
    others: Limited,
    /// Requests of clients without a state of their own.
    beyond: u64,
    /// Requests of new clients that came when all places were taken.
    crowded: u64,
}

/// A client whose request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedClient(Option<u64>);

impl RequestLimits {
    /// Returns true if nothing is limited.
    pub const fn is_empty(&self) -> bool {
        self.rate.is_none() && self.concurrency.is_none()
    }
}

impl Limited {
    /// Starts without a request.
    pub fn new(limits: &RequestLimits) -> Self {
        Self {
            bucket: limits.rate.map(|(rate, burst)| Bucket::new(rate, burst)),
            present: 0,
        }
    }

    /// Changes the limits. Requests stay counted, and the bucket keeps its level.
    pub fn change(&mut self, now: Instant, limits: &RequestLimits) {
        self.bucket = limits.rate.map(|(rate, burst)| match self.bucket {
            Some(mut bucket) => {
                bucket.change(now, rate, burst);
                bucket
            }
            None => Bucket::new(rate, burst),
        });
    }

    /// Admits a request or says which limit rejects it. A rejected one uses nothing up.
    pub fn enter(&mut self, now: Instant, limits: &RequestLimits) -> Result<(), Exceeded> {
        if limits.concurrency.is_some_and(|most| self.present >= most) {
            return Err(Exceeded::Concurrency);
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now).map_err(Exceeded::Rate)?;
        }
        self.present += 1;
        Ok(())
    }

    /// A request has ended.
    pub const fn leave(&mut self) {
        debug_assert!(self.present > 0, "a request leaves that did not enter");
        self.present -= 1;
    }

    /// Requests in service or waiting.
    pub const fn present(&self) -> u32 {
        self.present
    }

    /// Returns true if the state is that of a new client.
    fn is_idle(&self, now: Instant) -> bool {
        self.present == 0 && self.bucket.is_none_or(|bucket| bucket.is_full(now))
    }
}

impl ClientLimits {
    /// Starts without a request.
    pub fn new(limits: RequestLimits) -> Self {
        Self {
            others: Limited::new(&limits),
            clients: HashMap::new(),
            beyond: 0,
            crowded: 0,
            limits,
        }
    }

    /// Changes the limits. Requests stay counted, and buckets keep their levels.
    pub fn change(&mut self, now: Instant, limits: RequestLimits) {
        if limits == self.limits {
            return;
        }
        for client in self.clients.values_mut() {
            client.change(now, &limits);
        }
        self.others.change(now, &limits);
        self.limits = limits;
    }

    /// Admits a request of a client, given as a hash of its name.
    pub fn enter(&mut self, now: Instant, client: u64) -> Result<LimitedClient, Exceeded> {
        let known = self.has_place(now, client).then_some(client);
        let limits = self.limits;
        self.limited(known).enter(now, &limits)?;
        Ok(LimitedClient(known))
    }

    /// A request of the client has ended.
    pub fn leave(&mut self, client: LimitedClient) {
        self.limited(client.0).leave();
    }

    fn limited(&mut self, client: Option<u64>) -> &mut Limited {
        let limits = &self.limits;
        match client {
            Some(client) => {
                let new = || Limited::new(limits);
                self.clients.entry(client).or_insert_with(new)
            }
            None => &mut self.others,
        }
    }

    /// Requests of clients without a state of their own.
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns true if the client has or may get a state of its own. If there are too many clients, idle ones are
    /// forgotten, in one of 1,024 such requests.
    fn has_place(&mut self, now: Instant, client: u64) -> bool {
        if self.clients.len() < MOST_CLIENTS || self.clients.contains_key(&client) {
            return true;
        }
        if self.crowded.is_multiple_of(1024) {
            self.clients.retain(|_, limited| !limited.is_idle(now));
        }
        self.crowded += 1;
        let has_place = self.clients.len() < MOST_CLIENTS;
        self.beyond += u64::from(!has_place);
        has_place
    }
}
