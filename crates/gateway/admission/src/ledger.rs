//! Issued quotes and their use. A quote is issued only if the sum of all quoted rates stays within the capacity.
//!
//! Quotes end in the order of issue: all have the same lifetime, and after it was shortened, a new quote lasts at least
//! until the one before it. A queue holds them, and the number of a quote
//! gives its position. A client has one quote at a time, so that a client that discards its quotes cannot use up the
//! capacity of others.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use super::bucket::Bucket;
use super::offers::Published;
use super::quote::{LONGEST_CLIENT, Quote};

/// Maximum number of live quotes: 64 Ki.
const MOST_QUOTES: usize = 1 << 16;

/// Rates are summed in whole millionths of a request per second, so that the sum does not drift.
const MICROS: f64 = 1e6;

/// All live quotes.
#[derive(Debug)]
pub struct Ledger {
    life: Span,
    burst: u32,
    capacity: u64,
    quoted: u64,
    /// Number of the first quote in the queue.
    first: u64,
    quotes: VecDeque<LedgerEntry>,
    clients: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct LedgerEntry {
    client: Arc<str>,
    until: Instant,
    rate: u64,
    uses: Bucket,
}

/// Reason why a quote does not admit a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpaid {
    /// Requests arrive faster than the quote's rate.
    Overused,
    /// The quote has expired.
    Expired,
}

impl Ledger {
    /// Creates an empty ledger. Quotes have the lifetime `life`, admit `burst` requests at once (at least 1), and add
    /// up to `capacity` requests per second at most.
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

    /// Sets the lifetime and the burst of new quotes. Existing quotes stay as they are.
    pub fn set_terms(&mut self, life: Span, burst: u32) {
        (self.life, self.burst) = (life, burst);
    }

    /// Ends every quote. Their numbers are not used again.
    pub fn clear(&mut self) {
        self.first += self.quotes.len() as u64;
        self.quotes.clear();
        self.clients.clear();
        self.quoted = 0;
        self.assert_invariants();
    }

    /// Sets the capacity for new quotes. Existing quotes stay valid.
    pub fn set_capacity(&mut self, capacity: f64) {
        self.capacity = whole(capacity);
    }

    /// Issues a quote at the terms of an offer to a client with a request that was just admitted, which is the first
    /// use. Returns `None` if the client has a quote already, its name is too long, or no capacity is left.
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
        let last = self.quotes.back().map_or(now, |entry| entry.until);
        let (until, owner) = ((now + self.life).max(last), Arc::<str>::from(client));
        let number = self.first + self.quotes.len() as u64;
        self.clients.insert(Arc::clone(&owner));
        self.quotes.push_back(LedgerEntry {
            client: owner,
            until,
            rate: micros,
            uses,
        });
        self.quoted += micros;
        self.assert_invariants();
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
        let entry = self.entry(now, quote).ok_or(Unpaid::Expired)?;
        entry.uses.take(now).map_err(|_| Unpaid::Overused)
    }

    /// Time until a quote admits its next request. `None` if it has expired.
    pub fn wait(&mut self, now: Instant, quote: &Quote) -> Option<Span> {
        Some(self.entry(now, quote)?.uses.wait(now))
    }

    /// The entry of a valid quote.
    fn entry(&mut self, now: Instant, quote: &Quote) -> Option<&mut LedgerEntry> {
        self.expire(now);
        let index = quote.number.checked_sub(self.first)?;
        let entry = self.quotes.get_mut(index as usize)?;
        let same = entry.until == quote.until && *entry.client == *quote.client;
        same.then_some(entry)
    }

    /// Sum of the live quotes' rates, in requests per second.
    pub fn quoted(&mut self, now: Instant) -> f64 {
        self.expire(now);
        self.quoted as f64 / MICROS
    }

    fn assert_invariants(&self) {
        debug_assert_eq!(
            self.clients.len(),
            self.quotes.len(),
            "a client without a quote, or with several"
        );
        debug_assert!(self.quotes.len() <= MOST_QUOTES, "too many quotes");
        debug_assert!(
            !self.quotes.is_empty() || self.quoted == 0,
            "a rate of {} without a quote",
            self.quoted
        );
    }

    fn expire(&mut self, now: Instant) {
        while self.quotes.front().is_some_and(|entry| entry.until <= now) {
            if let Some(entry) = self.quotes.pop_front() {
                self.first += 1;
                self.quoted -= entry.rate;
                self.clients.remove(&entry.client);
            }
        }
        self.assert_invariants();
    }
}

/// Millionths of `rate`. Negative and NaN become zero.
fn whole(rate: f64) -> u64 {
    (rate * MICROS) as u64
}
