//! The admission stage: admits requests by rate, by number in service, or by price, and records their outcome.
//!
//! [`Protection::enter`] is called once per request, before anything is sent to an upstream. All threads share one
//! state. A request locks it twice, each time only for lookups in a few maps. The price is adjusted outside the path of
//! requests ([`pricing`]).

mod ask;
mod counts;
mod pass;
mod pricing;
mod tell;
mod watched;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use posthaste_admission::{
    Admitted, Bucket, Delivery, Key, Limit, Market, Monitor, Promise, Terms, Why,
};
use posthaste_qos::Priorities;
use posthaste_serve::Peer;
use posthaste_units::{Instant, Ratio, Span};
use rustix::rand::{GetRandomFlags, getrandom};

use self::ask::{Asked, client};
use self::counts::Counts;
use crate::clock::now;
use crate::config::{Guard, Prices, Protection as Config};
use crate::preference::Wishes;
use crate::refusal::Refusal;
use crate::site::{Plan, Route};

pub(crate) use pass::Pass;
pub(crate) use pricing::{Offering, start as start_pricing};

/// Window for comparing promises with delivery.
const WINDOW: Span = Span::from_secs(60);

/// Admission control of a gateway.
#[derive(Debug)]
pub(crate) struct Protection {
    config: Config,
    /// Promises of every offer.
    promise: Promise,
    /// Network priorities that every offer promises, if any.
    priorities: Option<Priorities>,
    door: Mutex<Door>,
    counts: Counts,
}

/// State shared by all threads.
#[derive(Debug)]
struct Door {
    in_service: u32,
    by: By,
    monitor: Monitor,
    /// Replies since the last sample of [`pricing`], and their total time.
    served: u64,
    waited: Span,
    /// Paying requests rejected for lack of capacity since then.
    crowded_out: u64,
}

/// The policy with its state.
#[derive(Debug)]
enum By {
    Nobody,
    Rate(Bucket),
    Limit(Limit),
    Prices(Limit, Box<Market>),
}

/// The state for display.
pub(crate) struct Shown {
    pub(crate) in_service: u32,
    pub(crate) limit: Option<u32>,
    pub(crate) price: Option<Price>,
}

/// The current offer.
pub(crate) struct Price {
    pub(crate) offer: String,
    /// Price of one request, in units of its currency.
    pub(crate) amount: f64,
    /// The price as text.
    pub(crate) words: String,
    pub(crate) quoted: f64,
    pub(crate) turns: u64,
}

impl Protection {
    /// Creates the state from the configuration.
    pub(crate) fn new(plan: &Plan) -> Self {
        let config = &plan.config.protection;
        let prices = plan.config.prices.clone().unwrap_or_default();
        let limit = || Limit::new(config.limiter.clone(), config.least, config.most);
        let by = match config.policy {
            Guard::None => By::Nobody,
            Guard::Rate => {
                let rate = config.rate.unwrap_or_default().as_per_second();
                By::Rate(Bucket::new(rate, config.burst))
            }
            Guard::Limit => By::Limit(limit()),
            Guard::Prices => By::Prices(limit(), Box::new(Market::new(terms(&prices), key()))),
        };
        let share = Ratio::new(0.99).unwrap_or_default();
        Self {
            config: config.clone(),
            promise: plan.offering.promise,
            priorities: plan.offering.priorities.clone(),
            door: Mutex::new(Door {
                in_service: 0,
                by,
                monitor: Monitor::new(WINDOW, share, now()),
                served: 0,
                crowded_out: 0,
                waited: Span::ZERO,
            }),
            counts: Counts::default(),
        }
    }

    /// Admits a request, or rejects it with a reason and advice.
    pub(crate) fn enter(
        &self,
        head: &mut Parts,
        wishes: &Wishes,
        route: &Route,
        peer: &Peer,
    ) -> Result<Pass<'_>, Refusal> {
        if self.config.policy == Guard::None {
            return Ok(Pass::free(self));
        }
        let at = now();
        let client = client(head, peer, self.config.client.as_deref());
        let asked = Asked::read(&head.headers, wishes, route);
        let mut door = self.door();
        let entered = door.enter(at, &asked, &client);
        let in_service = door.in_service;
        drop(door);
        match entered {
            Ok(entered) => {
                self.counts.entered(entered.by);
                let client = client.into_owned();
                if self.config.policy == Guard::Prices {
                    ask::strip(&mut head.headers);
                }
                Ok(Pass::new(self, at, in_service, client, entered))
            }
            Err(turned) => {
                self.counts.refused(turned.why);
                Err(tell::refusal(head, turned))
            }
        }
    }

    /// Returns the state for display.
    pub(crate) fn shown(&self) -> Shown {
        let mut door = self.door();
        let in_service = door.in_service;
        let (limit, price) = match &mut door.by {
            By::Nobody | By::Rate(_) => (None, None),
            By::Limit(limit) => (Some(limit.now()), None),
            By::Prices(limit, market) => {
                let quoted = market.quoted(now());
                let present = market.current(false);
                let price = Price {
                    quoted,
                    turns: market.turns(),
                    offer: present.name.clone(),
                    amount: present.price.micros() as f64 / 1e6,
                    words: tell::price(present.price),
                };
                (Some(limit.now()), Some(price))
            }
        };
        Shown {
            in_service,
            limit,
            price,
        }
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// A panic with the lock held cannot leave the counts inconsistent.
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An admitted request.
struct Entered {
    by: counts::Entrance,
    /// The request's offer, if prices apply.
    offer: Option<String>,
    /// Fields for the reply: the price and a quote.
    fields: Vec<(&'static str, String)>,
}

/// A rejected request.
struct Turned {
    why: counts::Reason,
    /// Name and price of the current offer, if prices apply.
    current: Option<(String, String)>,
    /// Suggested time before a retry.
    later: Option<Span>,
}

impl Door {
    fn enter(&mut self, at: Instant, asked: &Asked<'_>, client: &str) -> Result<Entered, Turned> {
        let is_below = |limit: &Limit, in_service: u32| in_service < limit.now();
        let entered = match &mut self.by {
            By::Nobody => Entered::plainly(),
            By::Rate(bucket) => match bucket.take(at) {
                Ok(()) => Entered::plainly(),
                Err(later) => return Err(Turned::plainly(counts::Reason::Rate, Some(later))),
            },
            By::Limit(limit) if is_below(limit, self.in_service) => Entered::plainly(),
            By::Limit(_) => return Err(Turned::plainly(counts::Reason::Limit, None)),
            By::Prices(limit, market) => {
                let room = is_below(limit, self.in_service);
                match market.admit(at, &asked.of(client), room) {
                    Ok(admitted) => {
                        let offer = market.offer_at(admitted.price, asked.open);
                        Entered::paying(offer, &admitted, at)
                    }
                    Err(refused) => {
                        let name = market.current(asked.open).name.clone();
                        let full = refused.why == Why::Full;
                        // Requests rejected for other reasons did not accept the offer.
                        if full {
                            self.monitor.record(at, &name, client, Delivery::Refused);
                            self.crowded_out += 1;
                        }
                        return Err(Turned {
                            why: counts::Reason::Price(refused.why),
                            current: Some((name, tell::price(refused.current))),
                            later: (full || refused.why == Why::Overused)
                                .then_some(Span::from_secs(1)),
                        });
                    }
                }
            }
        };
        self.in_service += 1;
        Ok(entered)
    }
}

impl Entered {
    fn plainly() -> Self {
        Self {
            by: counts::Entrance::Plain,
            offer: None,
            fields: Vec::new(),
        }
    }

    fn paying(offer: String, admitted: &Admitted, at: Instant) -> Self {
        let mut fields = vec![("price", tell::price(admitted.price))];
        if let Some((quote, token)) = &admitted.quote {
            let life = quote.until.saturating_since(at).as_nanos() / 1_000_000;
            let words = format!("{token};rate={};life={life}", quote.rate);
            fields.push(("quote", words));
        }
        Self {
            by: counts::Entrance::Price(admitted.by),
            offer: Some(offer),
            fields,
        }
    }
}

impl Turned {
    fn plainly(why: counts::Reason, later: Option<Span>) -> Self {
        Self {
            why,
            current: None,
            later: later.or(Some(Span::from_secs(1))),
        }
    }
}

fn terms(prices: &Prices) -> Terms {
    Terms {
        controller: prices.controller.clone(),
        discount: prices.discount,
        life: prices.life,
        rate: prices.rate.as_per_second(),
        most_rate: prices.most_rate.as_per_second(),
        burst: prices.burst,
        capacity: prices.capacity.map(|rate| rate.as_per_second()),
        ..Terms::new(&prices.offer, prices.currency)
    }
}

/// Creates a random secret key.
fn key() -> Key {
    let mut bytes = [0; 32];
    // 32 bytes arrive at once and completely (getrandom(2)).
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the system's random numbers");
    Key::new(&bytes)
}
