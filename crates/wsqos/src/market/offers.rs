//! Which offers are out in the world: those that hold now, and those before them that have not ended yet.
//!
//! There is one price. Where those pay less who leave compression to the server, what they pay follows from it, and
//! there are two offers, which change together. An offer's name holds its price, so that what a client has
//! selected says what it was ready to pay.

use std::collections::HashMap;

use posthaste_units::{Instant, Ratio, Span};

use super::Amount;
use crate::qos::{Money, Protocols, Requires, Term};
use crate::scan::NAMESPACE;

/// An offer as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name, one for each price: "standard@0.30", or "standard-open@0.24".
    pub name: String,
    /// What a request costs.
    pub price: Money,
    /// How long it holds from when it is published.
    pub life: Span,
    /// Only requests that leave compression to the server have it.
    pub open: bool,
}

/// The present offers and those that may still be selected.
#[derive(Debug)]
pub(super) struct Offers {
    base: String,
    /// Of the price, in millionths.
    discount: u64,
    life: Span,
    price: Money,
    /// The one for every request; behind it, where there is a discount, the one for those that leave compression to
    /// the server.
    present: Vec<Published>,
    /// When the present ones were last handed out to be published; never, before the first sample.
    published: Option<Instant>,
    /// Those before them and when they end, by name. Two at most for each price within a life.
    ending: HashMap<String, (Published, Instant)>,
}

impl Published {
    /// What it asks of a client, in words that a broker matches: it has to state the protocol `open-compression`, by
    /// which it leaves compression to the server.
    pub fn condition(&self) -> Option<Protocols> {
        self.open.then(|| Protocols {
            protocols: vec![Term {
                name: "open-compression".to_owned(),
                ontology: NAMESPACE.to_owned(),
            }],
            requires: Requires::All,
        })
    }
}

impl Offers {
    pub(super) fn new(base: &str, price: Money, life: Span, discount: Ratio) -> Self {
        let mut offers = Self {
            base: base.to_owned(),
            discount: (discount.get() * 1e6).round() as u64,
            life,
            price,
            present: Vec::new(),
            published: None,
            ending: HashMap::new(),
        };
        offers.present = offers.at(price);
        offers
    }

    /// The offers at a price.
    fn at(&self, price: Money) -> Vec<Published> {
        let kinds = if self.discount > 0 {
            &[false, true][..]
        } else {
            &[false]
        };
        let kinds = kinds.iter().map(|&open| {
            let price = self.due(price, open);
            Published {
                name: self.name(price, open),
                price,
                life: self.life,
                open,
            }
        });
        kinds.collect()
    }

    /// The present offer for requests that leave compression to the server, or for all others.
    pub(super) fn current(&self, open: bool) -> &Published {
        let last = if open { self.present.len() - 1 } else { 0 };
        &self.present[last]
    }

    /// What a request of this kind pays at a price. A part of a millionth counts whole: only a price of 0 comes to 0.
    pub(super) fn due(&self, price: Money, open: bool) -> Money {
        let micros = u128::from(price.micros());
        let less = micros * u128::from(self.discount) / 1_000_000;
        let due = if open { micros - less } else { micros };
        Amount::from_micros(due as u64).of(price.currency())
    }

    /// What the offer is called on which a request of this kind pays so much.
    pub(super) fn name(&self, price: Money, open: bool) -> String {
        let kind = if open && self.discount > 0 {
            "-open"
        } else {
            ""
        };
        format!("{}{kind}@{}", self.base, price.amount())
    }

    /// Makes this the price; the offers to publish, where they must be.
    pub(super) fn set(&mut self, price: Money, now: Instant) -> &[Published] {
        self.ending.retain(|_, (_, until)| *until > now);
        if price != self.price {
            let next = self.at(price);
            let before = std::mem::replace(&mut self.present, next);
            if let Some(published) = self.published.take() {
                let until = published + self.life;
                let before = before.into_iter();
                let ending = before.map(|offer| (offer.name.clone(), (offer, until)));
                self.ending.extend(ending);
            }
            self.price = price;
        }
        let rests = |at: Instant| now.since(at) < self.life / 2;
        if self.published.is_some_and(rests) {
            return &[];
        }
        self.published = Some(now);
        &self.present
    }

    /// The offer that a client has selected by this name; `None` where it is none of ours or has ended.
    pub(super) fn selected(&self, name: &str, now: Instant) -> Option<&Published> {
        let present = self.present.iter().find(|offer| offer.name == name);
        present.or_else(|| {
            let (offer, until) = self.ending.get(name)?;
            (*until > now).then_some(offer)
        })
    }
}
