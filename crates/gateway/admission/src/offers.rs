//! The offers in use: the current ones, and earlier ones that have not expired.
//!
//! There is one price. With a discount for requests that leave compression to the server, there are two offers, and
//! both follow from that price and change together. The name of an offer contains its price, so a selected name states
//! the price that the client accepts.

use std::collections::HashMap;

use posthaste_units::{Instant, Ratio, Span};

use super::Amount;
use posthaste_qos::{Money, Protocols, Requires, Term};
use posthaste_soap::EXTENSION_NAMESPACE;

/// An offer as published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name, one per price: "standard@0.30", or "standard-open@0.24".
    pub name: String,
    /// Price of a request.
    pub price: Money,
    /// Lifetime, from its publication.
    pub life: Span,
    /// Valid only for requests that leave compression to the server.
    pub open: bool,
}

/// The current offers and those that may still be selected.
#[derive(Debug)]
pub(super) struct Offers {
    base: String,
    /// Discount in millionths of the price.
    discount: u64,
    life: Span,
    price: Money,
    /// The offer for every request. With a discount, a second one for requests that leave compression to the server.
    present: Vec<Published>,
    /// Time of the last publication of the current offers. `None` before the first sample.
    published: Option<Instant>,
    /// Earlier offers by name, with their end. At most two per price within a lifetime.
    ending: HashMap<String, (Published, Instant)>,
}

impl Published {
    /// Condition on the client, in the vocabulary of a broker: it must state the protocol `open-compression` and so
    /// leave compression to the server.
    pub fn condition(&self) -> Option<Protocols> {
        self.open.then(|| Protocols {
            protocols: vec![Term {
                name: "open-compression".to_owned(),
                ontology: EXTENSION_NAMESPACE.to_owned(),
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

    /// The current offer for requests that leave compression to the server, or for all others.
    pub(super) fn current(&self, open: bool) -> &Published {
        let last = if open { self.present.len() - 1 } else { 0 };
        &self.present[last]
    }

    /// Price for a request of this kind. Rounded up to a millionth, so only a price of 0 becomes 0.
    pub(super) fn due(&self, price: Money, open: bool) -> Money {
        debug_assert!(self.discount <= 1_000_000, "a discount above the price");
        let micros = u128::from(price.micros());
        let less = micros * u128::from(self.discount) / 1_000_000;
        let due = if open { micros - less } else { micros };
        Amount::from_micros(due as u64).to_money(price.currency())
    }

    /// Name of the offer at which a request of this kind pays this price.
    pub(super) fn name(&self, price: Money, open: bool) -> String {
        let kind = if open && self.discount > 0 {
            "-open"
        } else {
            ""
        };
        format!("{}{kind}@{}", self.base, price.amount())
    }

    /// Changes name, discount and lifetime. Published offers can still be selected until they end.
    pub(super) fn change(&mut self, base: &str, life: Span, discount: Ratio) {
        self.retire();
        let next = Self::new(base, self.price, life, discount);
        let ending = std::mem::take(&mut self.ending);
        *self = Self { ending, ..next };
    }

    /// Moves the current offers to those that end, if they were published. New offers must follow.
    fn retire(&mut self) {
        if let Some(published) = self.published.take() {
            let until = published + self.life;
            let before = std::mem::take(&mut self.present).into_iter();
            let ending = before.map(|offer| (offer.name.clone(), (offer, until)));
            self.ending.extend(ending);
        }
    }

    /// Sets the price. Returns the offers to publish, if any.
    pub(super) fn set(&mut self, price: Money, now: Instant) -> &[Published] {
        self.ending.retain(|_, (_, until)| *until > now);
        if price != self.price {
            self.retire();
            self.present = self.at(price);
            self.price = price;
        }
        let rests = |at: Instant| now.saturating_since(at) < self.life / 2;
        if self.published.is_some_and(rests) {
            return &[];
        }
        self.published = Some(now);
        &self.present
    }

    /// The offer that a client has selected by this name. `None` if it is unknown or has expired.
    pub(super) fn selected(&self, name: &str, now: Instant) -> Option<&Published> {
        let present = self.present.iter().find(|offer| offer.name == name);
        present.or_else(|| {
            let (offer, until) = self.ending.get(name)?;
            (*until > now).then_some(offer)
        })
    }
}
