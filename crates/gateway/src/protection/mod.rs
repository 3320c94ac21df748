//! Who is let in: by a rate, by how many are in service, or by a price; and what became of those who were.
//!
//! [`Protection::enter`] is asked once for a request, before anything is sent to an upstream.
//! All threads share one door, which is locked twice for a request and never for longer than a look into a
//! few maps. The price moves beside the path of requests ([`pricing`]).

mod ask;
mod counts;
mod pass;
mod pricing;
mod tell;
mod watched;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use posthaste_serve::Peer;
use posthaste_units::{Instant, Ratio, Span};
use posthaste_wsqos::market::{
    Admitted, Bucket, Delivery, Key, Limit, Market, Monitor, Promise, Terms, Why,
};
use posthaste_wsqos::qos::Priorities;
use rustix::rand::{GetRandomFlags, getrandom};

use self::ask::{Asked, client};
use self::counts::Counts;
use crate::config::{Guard, Prices, Protection as Config};
use crate::preference::Wishes;
use crate::refusal::Refusal;
use crate::site::{Plan, Route};
use crate::workshop::now;

pub(crate) use pass::Pass;
pub(crate) use pricing::{Offering, start as start_pricing};

/// In windows of this length what was promised is held against what was delivered.
const WINDOW: Span = Span::from_secs(60);

/// What guards the upstreams of a gateway.
#[derive(Debug)]
pub(crate) struct Protection {
    config: Config,
    /// What every offer promises.
    promise: Promise,
    /// What every offer promises of the network, where it does.
    priorities: Option<Priorities>,
    door: Mutex<Door>,
    counts: Counts,
}

/// What all threads share.
#[derive(Debug)]
struct Door {
    in_service: u32,
    by: By,
    monitor: Monitor,
    /// Of the replies since the last sample of [`Pricing`].
    served: u64,
    waited: Span,
    /// Requests that pay and found no room since then.
    crowded_out: u64,
}

/// Who says who is let in.
#[derive(Debug)]
enum By {
    Nobody,
    Rate(Bucket),
    Limit(Limit),
    Prices(Limit, Box<Market>),
}

/// What there is to be seen of it.
pub(crate) struct Shown {
    pub(crate) in_service: u32,
    pub(crate) limit: Option<u32>,
    pub(crate) price: Option<Price>,
}

/// The present offer.
pub(crate) struct Price {
    pub(crate) offer: String,
    /// Of one request, in units of its currency.
    pub(crate) amount: f64,
    /// The same for a person.
    pub(crate) words: String,
    pub(crate) quoted: f64,
    pub(crate) turns: u64,
}

impl Protection {
    /// What the configuration says.
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

    /// Lets a request in, or says why not and what it could do.
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

    /// What there is to be seen.
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

    /// A thread that panicked holding the lock has left counts, nothing that could be half done.
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is let in.
struct Entered {
    by: counts::Entrance,
    /// The offer on which it is, where there are prices.
    offer: Option<String>,
    /// What its reply says of its price and of a quote.
    fields: Vec<(&'static str, String)>,
}

/// A request that is not.
struct Turned {
    why: counts::Reason,
    /// The present offer, where there are prices: its name and its price.
    current: Option<(String, String)>,
    /// When it is worth coming back.
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
                        // The others did not take the offer.
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
            let life = quote.until.since(at).as_nanos() / 1_000_000;
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

/// A key that nobody else has.
fn key() -> Key {
    let mut bytes = [0; 32];
    // So few bytes come at once and whole (getrandom(2)).
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the system's random numbers");
    Key::new(&bytes)
}
