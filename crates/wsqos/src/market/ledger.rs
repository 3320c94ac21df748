//! What is quoted, to whom, and what has been used of it: never more than the service can do.
//!
//! Quotes live equally long, so they end in the order in which they were given: a queue holds them all, a
//! quote's number says where in it. A client has one quote at a time: one that throws its quotes away
//! cannot use up what others could be promised.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use super::bucket::Bucket;
use super::offers::Published;
use super::quote::{LONGEST_CLIENT, Quote};

/// Quotes that live at the same time, at most: 64 Ki.
const MOST_QUOTES: usize = 1 << 16;

/// Rates are summed in whole millionths of a request per second, so that no sum drifts.
const MICROS: f64 = 1e6;

/// All quotes that live.
#[derive(Debug)]
pub struct Ledger {
    life: Span,
    burst: u32,
    capacity: u64,
    quoted: u64,
    /// The number of the quote in front.
    first: u64,
    quotes: VecDeque<Entry>,
    clients: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    client: Arc<str>,
    until: Instant,
    rate: u64,
    uses: Bucket,
}

/// Why a quote does not pay for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpaid {
    /// It came sooner than the quote's rate allows.
    Overused,
    /// The quote has ended.
    Expired,
}

impl Ledger {
    /// An empty ledger of quotes that live so long, admit `burst` requests at once (at least 1), and add up
    /// to `capacity` requests per second at most.
    pub fn new(life: Span, burst: u32, capacity: f64) -> Self {
        Self {
            life,
            burst,
            capacity: whole(capacity),
            quoted: 0,
            first: 0,
            quotes: VecDeque::new(),
            clients: HashSet::new(),
        }
    }

    /// What may be quoted from now on. What has been quoted already stays so.
    pub fn set_capacity(&mut self, capacity: f64) {
        self.capacity = whole(capacity);
    }

    /// Quotes what an offer says to a client whose request is just let in, which is its first use; `None` where it has a
    /// quote already, its name is too long, or there is no capacity left.
    pub fn give(
        &mut self,
        now: Instant,
        client: &str,
        offer: &Published,
        rate: f64,
    ) -> Option<Quote> {
        self.expire(now);
        let micros = whole(rate);
        let sum = self.quoted.checked_add(micros);
        let fits = micros > 0 && sum.is_some_and(|sum| sum <= self.capacity);
        let has_room = self.quotes.len() < MOST_QUOTES && client.len() <= LONGEST_CLIENT;
        if !fits || !has_room || self.clients.contains(client) {
            return None;
        }
        let rate = micros as f64 / MICROS;
        let mut uses = Bucket::new(rate, self.burst);
        uses.take(now).ok()?;
        let (until, owner) = (now + self.life, Arc::<str>::from(client));
        let number = self.first + self.quotes.len() as u64;
        self.clients.insert(Arc::clone(&owner));
        self.quotes.push_back(Entry {
            client: owner,
            until,
            rate: micros,
            uses,
        });
        self.quoted += micros;
        Some(Quote {
            number,
            client: client.to_owned(),
            price: offer.price,
            open: offer.open,
            rate,
            until,
        })
    }

    /// Uses a quote for one request.
    pub fn take(&mut self, now: Instant, quote: &Quote) -> Result<(), Unpaid> {
        self.expire(now);
        let place = quote
            .number
            .checked_sub(self.first)
            .ok_or(Unpaid::Expired)?;
        let entry = self.quotes.get_mut(place as usize);
        let same =
            |entry: &&mut Entry| entry.until == quote.until && *entry.client == *quote.client;
        let entry = entry.filter(same).ok_or(Unpaid::Expired)?;
        entry.uses.take(now).map_err(|_| Unpaid::Overused)
    }

    /// Requests per second that are quoted.
    pub fn quoted(&mut self, now: Instant) -> f64 {
        self.expire(now);
        self.quoted as f64 / MICROS
    }

    fn expire(&mut self, now: Instant) {
        while self.quotes.front().is_some_and(|entry| entry.until <= now) {
            if let Some(entry) = self.quotes.pop_front() {
                self.first += 1;
                self.quoted -= entry.rate;
                self.clients.remove(&entry.client);
            }
        }
    }
}

/// Negative and NaN become zero.
fn whole(rate: f64) -> u64 {
    (rate * MICROS) as u64
}
