//! What was promised against what was delivered: per offer and per client, with a verdict.
//!
//! Counts of the present window and the one before it, no latencies kept: a promised processing time needs
//! to know only how many requests took longer. A share is judged with the certainty that its count allows
//! (Wilson's interval), so that a verdict is never a matter of a handful of requests.

use std::collections::HashMap;

use posthaste_units::{Instant, Ratio, Span};

/// What an offer promises. What is `None` is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// From a request's arrival to its reply, at most, for the [`Monitor`]'s share of the requests.
    pub processing_time: Option<Span>,
    /// At least so many requests per second are served to those who ask for so many.
    pub rate: Option<f64>,
    /// The share of requests let in that are answered well, at least.
    pub reliability: Option<Ratio>,
    /// The share of requests that are let in, at least.
    pub availability: Option<Ratio>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Answered well, in so much time.
    Served(Span),
    /// Let in, and not answered well.
    Failed,
    /// Not let in.
    Refused,
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Kept,
    /// It was not.
    Broken,
    /// Too few requests to say.
    #[default]
    Unknown,
}

/// What was seen in the last one to two windows, and what it says of each promise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Requests answered well.
    pub served: u64,
    /// Those of them that took longer than promised.
    pub late: u64,
    /// Requests let in and not answered well.
    pub failed: u64,
    /// Requests not let in.
    pub refused: u64,
    /// Over how long.
    pub over: Span,
    /// Of the processing time; `None` where there is no such promise, as below.
    pub processing_time: Option<Verdict>,
    /// Of the rate.
    pub rate: Option<Verdict>,
    /// Of the reliability.
    pub reliability: Option<Verdict>,
    /// Of the availability.
    pub availability: Option<Verdict>,
}

/// Offers that are watched, at most.
const MOST_OFFERS: usize = 256;
/// Clients that are watched within an offer, at most.
const MOST_CLIENTS: usize = 4096;

/// Counts what is delivered on each offer, and to each client on it.
#[derive(Debug)]
pub struct Monitor {
    window: Span,
    /// The share of requests that must keep the processing time.
    share: f64,
    began: Instant,
    /// Whether a window came before this one.
    has_past: bool,
    offers: HashMap<String, Offer>,
    unwatched: u64,
}

#[derive(Debug, Default)]
struct Offer {
    promise: Promise,
    all: Counts,
    clients: HashMap<String, Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    now: Tally,
    before: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    served: u64,
    late: u64,
    failed: u64,
    refused: u64,
}

impl Monitor {
    /// Watches in windows of this length; `share` of the requests must keep a promised processing time.
    pub fn new(window: Span, share: Ratio, now: Instant) -> Self {
        Self {
            window,
            share: share.get(),
            began: now,
            has_past: false,
            offers: HashMap::new(),
            unwatched: 0,
        }
    }

    /// Says what an offer promises from now on. Beyond 256 offers it is not watched, and counted as such.
    pub fn promise(&mut self, offer: &str, promise: Promise) {
        if self.offers.len() >= MOST_OFFERS && !self.offers.contains_key(offer) {
            self.unwatched += 1;
            return;
        }
        self.offers.entry(offer.to_owned()).or_default().promise = promise;
    }

    /// Counts a request of `client` on an offer. An offer that promised nothing is not watched; a client
    /// beyond 4096 on an offer is counted for the offer alone.
    pub fn record(&mut self, now: Instant, offer: &str, client: &str, delivery: Delivery) {
        self.turn(now);
        let Some(offer) = self.offers.get_mut(offer) else {
            self.unwatched += 1;
            return;
        };
        let limit = offer.promise.processing_time;
        offer.all.now.add(delivery, limit);
        if let Some(counts) = offer.clients.get_mut(client) {
            counts.now.add(delivery, limit);
        } else if offer.clients.len() < MOST_CLIENTS {
            let counts = offer.clients.entry(client.to_owned()).or_default();
            counts.now.add(delivery, limit);
        } else {
            self.unwatched += 1;
        }
    }

    /// What was seen of an offer: of one client's requests, or of all. `None` where nothing is watched.
    pub fn report(&mut self, now: Instant, offer: &str, client: Option<&str>) -> Option<Report> {
        self.turn(now);
        let offer = self.offers.get(offer)?;
        let counts = match client {
            Some(client) => offer.clients.get(client)?,
            None => &offer.all,
        };
        let past = if self.has_past {
            self.window
        } else {
            Span::ZERO
        };
        let over = now.since(self.began) + past;
        Some(counts.report(&offer.promise, self.share, over))
    }

    /// The offers that are watched.
    pub fn offers(&self) -> impl Iterator<Item = &str> {
        self.offers.keys().map(String::as_str)
    }

    /// Requests and promises that were not watched, because there were too many offers or clients or the
    /// offer had promised nothing.
    pub const fn unwatched(&self) -> u64 {
        self.unwatched
    }

    /// Begins a new window where the present one has ended. Clients and offers of which two windows have
    /// seen nothing are forgotten.
    fn turn(&mut self, now: Instant) {
        let passed = now.since(self.began);
        if passed < self.window {
            return;
        }
        let is_next = passed < self.window * 2;
        self.has_past = is_next;
        self.began = if is_next {
            self.began + self.window
        } else {
            now
        };
        for offer in self.offers.values_mut() {
            offer.all.turn(is_next);
            offer.clients.retain(|_, counts| {
                counts.turn(is_next);
                counts.before.asked() > 0
            });
        }
    }
}

impl Counts {
    fn turn(&mut self, is_next: bool) {
        let now = std::mem::take(&mut self.now);
        self.before = if is_next { now } else { Tally::default() };
    }

    fn report(&self, promise: &Promise, share: f64, over: Span) -> Report {
        let sum = |part: fn(&Tally) -> u64| part(&self.now) + part(&self.before);
        let (served, late) = (sum(|tally| tally.served), sum(|tally| tally.late));
        let (failed, refused) = (sum(|tally| tally.failed), sum(|tally| tally.refused));
        let entered = served + failed;
        let rate = served as f64 / over.as_secs_f64().max(1e-9);
        Report {
            served,
            late,
            failed,
            refused,
            over,
            processing_time: promise
                .processing_time
                .map(|_| judge(served - late, served, share)),
            rate: promise.rate.map(|promised| match () {
                () if rate >= promised => Verdict::Kept,
                // Fewer were served than promised, and some who asked were not.
                () if failed + refused > 0 => Verdict::Broken,
                () => Verdict::Unknown,
            }),
            reliability: promise
                .reliability
                .map(|least| judge(served, entered, least.get())),
            availability: promise
                .availability
                .map(|least| judge(entered, entered + refused, least.get())),
        }
    }
}

impl Tally {
    fn add(&mut self, delivery: Delivery, limit: Option<Span>) {
        match delivery {
            Delivery::Served(time) => {
                self.served += 1;
                self.late += u64::from(limit.is_some_and(|limit| time > limit));
            }
            Delivery::Failed => self.failed += 1,
            Delivery::Refused => self.refused += 1,
        }
    }

    const fn asked(&self) -> u64 {
        self.served + self.failed + self.refused
    }
}

/// Fewer requests are no ground for a verdict: Wilson's interval says too much of a handful.
const FEWEST: u64 = 20;

/// Whether at least `least` of all are good, if `good` of `count` seen were: where 95 % certainty leaves
/// it open, it is not known.
fn judge(good: u64, count: u64, least: f64) -> Verdict {
    if count < FEWEST {
        return Verdict::Unknown;
    }
    let (count, z2) = (count as f64, 1.96 * 1.96);
    let share = good as f64 / count;
    let middle = (share + z2 / (2.0 * count)) / (1.0 + z2 / count);
    let spread = (share * (1.0 - share) / count + z2 / (4.0 * count * count)).sqrt();
    let half = 1.96 * spread / (1.0 + z2 / count);
    match () {
        () if middle - half >= least => Verdict::Kept,
        () if middle + half < least => Verdict::Broken,
        () => Verdict::Unknown,
    }
}
