//! What was promised against what was delivered: per offer and per client, with a verdict.
//!
//! Counts of the present window and the one before it, no latencies kept: a promised processing time needs
//! to know only how many requests took longer. A share is judged with the certainty that its count allows
//! (Wilson's interval), so that a verdict is never a matter of a handful of requests ([`report`]).

mod report;

use std::collections::HashMap;

use posthaste_units::{Instant, Ratio, Span};

pub use report::{Delivery, Judged, PROCESSING_TIME, REQUESTS_PER_SECOND, Report, Tally, Verdict};

use super::quote::LONGEST_CLIENT;

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

/// Offers that are watched, at most.
const MOST_OFFERS: usize = 256;
/// Clients that are watched, at most, those of all offers together: whoever looks goes through all of them.
const MOST_CLIENTS: usize = 16_384;

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
    /// Those of all offers.
    clients: usize,
    unwatched: u64,
}

#[derive(Debug, Default)]
struct Offer {
    promise: Promise,
    /// Since it was first promised.
    ever: Tally,
    all: Counts,
    clients: HashMap<String, Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    now: Tally,
    before: Tally,
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
            clients: 0,
            unwatched: 0,
        }
    }

    /// Says what an offer promises from now on. A 257th takes the place of those of which two windows have seen
    /// nothing; where there is none, it is not watched, and counted as such.
    pub fn promise(&mut self, now: Instant, offer: &str, promise: Promise) {
        self.turn(now);
        if self.offers.len() >= MOST_OFFERS && !self.offers.contains_key(offer) {
            self.offers.retain(|_, offer| offer.all.asked() > 0);
            if self.offers.len() >= MOST_OFFERS {
                self.unwatched += 1;
                return;
            }
        }
        self.offers.entry(offer.to_owned()).or_default().promise = promise;
    }

    /// Counts a request of `client` on an offer. An offer that promised nothing is not watched; a client
    /// beyond 16,384, or whose name is longer than 256 bytes, is counted for the offer alone.
    pub fn record(&mut self, now: Instant, offer: &str, client: &str, delivery: Delivery) {
        self.turn(now);
        let Some(offer) = self.offers.get_mut(offer) else {
            self.unwatched += 1;
            return;
        };
        let limit = offer.promise.processing_time;
        offer.ever.add(delivery, limit);
        offer.all.now.add(delivery, limit);
        if let Some(counts) = offer.clients.get_mut(client) {
            counts.now.add(delivery, limit);
        } else if self.clients < MOST_CLIENTS && client.len() <= LONGEST_CLIENT {
            let counts = offer.clients.entry(client.to_owned()).or_default();
            counts.now.add(delivery, limit);
            self.clients += 1;
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
        Some(self.judge(now, offer, counts))
    }

    /// What was seen of each client on each offer: offer, client, report. As many as 16,384.
    pub fn clients(&mut self, now: Instant) -> impl Iterator<Item = (&str, &str, Report)> {
        self.turn(now);
        let monitor = &*self;
        monitor.offers.iter().flat_map(move |(name, offer)| {
            let clients = offer.clients.iter();
            clients.map(move |(client, counts)| {
                let report = monitor.judge(now, offer, counts);
                (name.as_str(), client.as_str(), report)
            })
        })
    }

    /// The offers that are watched, and all that was counted of each since it was first promised.
    pub fn offers(&self) -> impl Iterator<Item = (&str, Tally)> {
        let offers = self.offers.iter();
        offers.map(|(name, offer)| (name.as_str(), offer.ever))
    }

    /// Requests and promises that were not watched, because there were too many offers or clients, a client's
    /// name was too long, or the offer had promised nothing.
    pub const fn unwatched(&self) -> u64 {
        self.unwatched
    }

    fn judge(&self, now: Instant, offer: &Offer, counts: &Counts) -> Report {
        let past = if self.has_past {
            self.window
        } else {
            Span::ZERO
        };
        let over = now.since(self.began) + past;
        let seen = counts.now.plus(&counts.before);
        Report::of(seen, over, &offer.promise, self.share)
    }

    /// Begins a new window where the present one has ended. Clients of which two windows have seen nothing
    /// are forgotten.
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
        self.clients = 0;
        for offer in self.offers.values_mut() {
            offer.all.turn(is_next);
            offer.clients.retain(|_, counts| {
                counts.turn(is_next);
                counts.asked() > 0
            });
            self.clients += offer.clients.len();
        }
    }
}

impl Counts {
    fn turn(&mut self, is_next: bool) {
        let now = std::mem::take(&mut self.now);
        self.before = if is_next { now } else { Tally::default() };
    }

    const fn asked(&self) -> u64 {
        self.now.asked() + self.before.asked()
    }
}
