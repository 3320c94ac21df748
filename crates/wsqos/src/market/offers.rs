//! Which offers are out in the world: the present one, and those before it that have not ended yet.
//!
//! An offer's name holds its price, so that what a client has selected says what it was ready to pay,
//! and nothing needs to be remembered of an offer but when it ends.

use std::collections::BTreeMap;

use posthaste_units::{Instant, Span};

use super::Amount;
use crate::qos::Money;

/// An offer as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name, one for each price: "standard@0.30".
    pub name: String,
    /// What a request costs.
    pub price: Money,
    /// How long it holds from when it is published.
    pub life: Span,
}

/// The present offer and those that may still be selected.
#[derive(Debug)]
pub(super) struct Offers {
    base: String,
    current: Published,
    /// When the present one was last handed out to be published; never, before the first sample.
    published: Option<Instant>,
    /// When those that are not the present one end, by price. As many as there are prices within a life.
    ending: BTreeMap<Amount, Instant>,
}

impl Offers {
    pub(super) fn new(base: &str, price: Money, life: Span) -> Self {
        let name = name(base, price);
        Self {
            base: base.to_owned(),
            current: Published { name, price, life },
            published: None,
            ending: BTreeMap::new(),
        }
    }

    pub(super) const fn current(&self) -> &Published {
        &self.current
    }

    /// Makes this the price; the offer to publish, where it must be.
    pub(super) fn set(&mut self, price: Money, now: Instant) -> Option<Published> {
        let life = self.current.life;
        self.ending.retain(|_, until| *until > now);
        if price != self.current.price {
            if let Some(published) = self.published.take() {
                let before = Amount::from_micros(self.current.price.micros());
                self.ending.insert(before, published + life);
            }
            self.current.price = price;
            self.current.name = name(&self.base, price);
        }
        let rests = |at: Instant| now.since(at) < life / 2;
        if self.published.is_some_and(rests) {
            return None;
        }
        self.published = Some(now);
        Some(self.current.clone())
    }

    /// The price that a client has accepted by selecting this name; `None` where it is none of ours or
    /// has ended.
    pub(super) fn selected(&self, name: &str, now: Instant) -> Option<Amount> {
        if name == self.current.name {
            return Some(Amount::from_micros(self.current.price.micros()));
        }
        let rest = name.strip_prefix(&self.base)?;
        let price = rest.strip_prefix('@')?.parse().ok()?;
        let until = self.ending.get(&price)?;
        (*until > now).then_some(price)
    }
}

/// An offer's name.
pub(super) fn name(base: &str, price: Money) -> String {
    format!("{base}@{}", price.amount())
}
