//! Compares promises with deliveries, per offer and per client, with a verdict.
//!
//! Keeps counts of the current and the previous window, and no latencies: a promised processing time needs only the
//! number of slower requests. Shares are judged by Wilson's interval, so a handful of requests never decides a verdict
//! ([`report`]).

mod report;

use std::collections::HashMap;

use posthaste_units::{Instant, Ratio, Span};

pub use report::{Delivery, Judged, PROCESSING_TIME, REQUESTS_PER_SECOND, Report, Tally, Verdict};

use super::quote::LONGEST_CLIENT;

/// The promises of an offer. `None` is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Maximum time from a request's arrival to its reply, for the [`Monitor`]'s share of the requests.
    pub processing_time: Option<Span>,
    /// Minimum rate of served requests per second, for clients that send at least that many.
    pub rate: Option<f64>,
    /// Minimum share of the admitted requests that end well.
    pub reliability: Option<Ratio>,
    /// Minimum share of the requests that are admitted.
    pub availability: Option<Ratio>,
}

/// Maximum number of monitored offers.
const MOST_OFFERS: usize = 256;
/// Maximum number of monitored clients of all offers together. [`Monitor::clients`] visits all of them.
const MOST_CLIENTS: usize = 16_384;

/// Counts of deliveries on each offer, and to each client on it.
#[derive(Debug)]
pub struct Monitor {
    window: Span,
    /// Share of requests that must meet the processing time.
    share: f64,
    began: Instant,
    /// A window precedes the current one.
    has_past: bool,
    offers: HashMap<String, OfferRecord>,
    /// Number of monitored clients of all offers.
    clients: usize,
    unwatched: u64,
}

#[derive(Debug, Default)]
struct OfferRecord {
    promise: Promise,
    /// Counts since the first promise.
    ever: Tally,
    all: WindowCounts,
    clients: HashMap<String, WindowCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct WindowCounts {
    now: Tally,
    before: Tally,
}

impl Monitor {
    /// Creates a monitor with windows of this length. `share` of the requests must meet a promised processing time.
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

    /// Sets the promise of an offer. At 256 offers, a new one first removes all offers without requests in two windows.
    /// If that frees nothing, the new one is not monitored and counted in [`Monitor::unwatched`].
    pub fn promise(&mut self, now: Instant, offer: &str, promise: Promise) {
        self.advance(now);
        if self.offers.len() >= MOST_OFFERS && !self.offers.contains_key(offer) {
            self.offers.retain(|_, offer| offer.all.requests() > 0);
            if self.offers.len() >= MOST_OFFERS {
                self.unwatched += 1;
                return;
            }
        }
        self.offers.entry(offer.to_owned()).or_default().promise = promise;
    }

    /// Counts a request of `client` on an offer. An offer without a promise is not monitored. A client is counted for
    /// the offer alone if its name exceeds 256 bytes or 16,384 clients are monitored already.
    pub fn record(&mut self, now: Instant, offer: &str, client: &str, delivery: Delivery) {
        self.advance(now);
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

    /// Report on an offer, for one client or for all. `None` if it is not monitored.
    pub fn report(&mut self, now: Instant, offer: &str, client: Option<&str>) -> Option<Report> {
        self.advance(now);
        let offer = self.offers.get(offer)?;
        let counts = match client {
            Some(client) => offer.clients.get(client)?,
            None => &offer.all,
        };
        Some(self.judge(now, offer, counts))
    }

    /// Reports on each client of each offer, as offer, client, report. At most 16,384.
    pub fn clients(&mut self, now: Instant) -> impl Iterator<Item = (&str, &str, Report)> {
        self.advance(now);
        let monitor = &*self;
        monitor.offers.iter().flat_map(move |(name, offer)| {
            let clients = offer.clients.iter();
            clients.map(move |(client, counts)| {
                let report = monitor.judge(now, offer, counts);
                (name.as_str(), client.as_str(), report)
            })
        })
    }

    /// The monitored offers and their counts since the first promise.
    pub fn offers(&self) -> impl Iterator<Item = (&str, Tally)> {
        let offers = self.offers.iter();
        offers.map(|(name, offer)| (name.as_str(), offer.ever))
    }

    /// Requests and promises that were not monitored: too many offers or clients, too long a client name, or no
    /// promise.
    pub const fn unwatched(&self) -> u64 {
        self.unwatched
    }

    fn judge(&self, now: Instant, offer: &OfferRecord, counts: &WindowCounts) -> Report {
        let past = if self.has_past {
            self.window
        } else {
            Span::ZERO
        };
        let over = now.saturating_since(self.began) + past;
        let seen = counts.now.plus(&counts.before);
        Report::new(seen, over, &offer.promise, self.share)
    }

    /// Starts a new window if the current one has ended. Forgets clients without requests in two windows.
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.began);
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
            offer.all.advance(is_next);
            offer.clients.retain(|_, counts| {
                counts.advance(is_next);
                counts.requests() > 0
            });
            self.clients += offer.clients.len();
        }
        debug_assert!(self.clients <= MOST_CLIENTS, "too many clients are watched");
    }
}

impl WindowCounts {
    fn advance(&mut self, is_next: bool) {
        let now = std::mem::take(&mut self.now);
        self.before = if is_next { now } else { Tally::default() };
    }

    const fn requests(&self) -> u64 {
        self.now.requests() + self.before.requests()
    }
}
