//! Whether a request may enter, and at what price.
//!
//! A quote that holds comes first, whatever the price and the load are. Without one a request enters where
//! its sender accepts the present price and there is room; it pays that price, which is never more than it
//! accepted. What it accepted is `most` where it says so, else the price of the offer it selected, else
//! nothing.
//!
//! What the present price is depends on the request alone: on whether it leaves compression to the server. So a
//! quote at the lower price is none for a request that does not.

use std::fmt;

use posthaste_units::Instant;

use super::Market;
use super::ledger::Unpaid;
use super::quote::Quote;
use crate::qos::Money;

/// What a request says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// Who sends it: a name that its sender cannot choose, such as an address or an account.
    pub client: &'a str,
    /// The name of the offer that it has selected.
    pub selected: Option<&'a str>,
    /// The price that it accepts at most.
    pub most: Option<Money>,
    /// The token of its quote.
    pub token: Option<&'a str>,
    /// The rate of the quote that it would like, in requests per second.
    pub rate: Option<f64>,
    /// It leaves it to the server whether its reply is compressed.
    pub open: bool,
}

/// A request that enters.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// What it costs.
    pub price: Money,
    /// A new quote for its sender, with its token.
    pub quote: Option<(Quote, String)>,
    /// On what ground it enters.
    pub by: By,
}

/// On what ground a request enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Its quote.
    Quote,
    /// The present price, which it accepts.
    Offer,
    /// It accepts no price, or that of an offer that has ended, and the price is 0.
    Free,
}

/// A request that does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: Why,
    /// What it would have to accept now.
    pub current: Money,
}

/// Why a request does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It accepts less than the present price.
    TooCheap,
    /// The offer that it selected, or its quote, has ended, and it accepts nothing else.
    Expired,
    /// Its quote was not given to it.
    Forged,
    /// It comes sooner than its quote's rate allows, and accepts nothing else.
    Overused,
    /// It accepts the price, but there is no room.
    Full,
    /// It states no price, and the price is not 0.
    NoOffer,
    /// It states a price in another currency.
    OtherCurrency,
    /// Its quote, or the offer that it selected, is for requests that leave compression to the server, and it accepts
    /// nothing else.
    NotOpen,
}

/// Every reason for a refusal.
pub const REFUSALS: [Why; 8] = [
    Why::TooCheap,
    Why::Expired,
    Why::Forged,
    Why::Overused,
    Why::Full,
    Why::NoOffer,
    Why::OtherCurrency,
    Why::NotOpen,
];

impl Why {
    /// Its name, a label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooCheap => "too-cheap",
            Self::Expired => "expired",
            Self::Forged => "forged",
            Self::Overused => "overused",
            Self::Full => "full",
            Self::NoOffer => "no-offer",
            Self::OtherCurrency => "other-currency",
            Self::NotOpen => "not-open",
        }
    }

    /// Its place in [`REFUSALS`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl By {
    /// Its name, a label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quote => "quote",
            Self::Offer => "offer",
            Self::Free => "free",
        }
    }
}

impl Market {
    /// Whether a request may enter. `room`: fewer requests are in service than the limit; only a quote
    /// passes without it.
    pub fn admit(&mut self, now: Instant, ask: &Ask<'_>, room: bool) -> Result<Admitted, Refused> {
        self.enter(now, ask, room).map_err(|why| Refused {
            why,
            current: self.current(ask.open).price,
        })
    }

    fn enter(&mut self, now: Instant, ask: &Ask<'_>, room: bool) -> Result<Admitted, Why> {
        if ask
            .most
            .is_some_and(|most| most.currency() != self.terms.currency)
        {
            return Err(Why::OtherCurrency);
        }
        let void = match self.by_quote(now, ask)? {
            Some(Ok(price)) => {
                let (quote, by) = (None, By::Quote);
                return Ok(Admitted { price, quote, by });
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        let by = self.by_offer(now, ask).map_err(|why| match (void, why) {
            (Some(Why::Overused), _) => Why::Overused,
            (Some(void), Why::NoOffer) => void,
            (_, why) => why,
        })?;
        if !room {
            return Err(Why::Full);
        }
        Ok(Admitted {
            price: self.current(ask.open).price,
            quote: self.quote(now, ask, by),
            by,
        })
    }

    /// The price of its quote, if it shows one that costs no more than it accepts, or why that does not pay.
    fn by_quote(&mut self, now: Instant, ask: &Ask<'_>) -> Result<Option<Result<Money, Why>>, Why> {
        let Some(token) = ask.token else {
            return Ok(None);
        };
        let quote = self.key.read(token, ask.client).map_err(|_| Why::Forged)?;
        if quote.open && !ask.open {
            return Ok(Some(Err(Why::NotOpen)));
        }
        let price = match quote.open {
            true => quote.price,
            false => self.offers.due(quote.price, ask.open),
        };
        if ask.most.is_some_and(|most| most.micros() < price.micros()) {
            return Ok(None);
        }
        let paid = self
            .ledger
            .take(now, &quote)
            .map_err(|unpaid| match unpaid {
                Unpaid::Overused => Why::Overused,
                Unpaid::Expired => Why::Expired,
            });
        Ok(Some(paid.map(|()| price)))
    }

    /// Whether it accepts the present price.
    fn by_offer(&self, now: Instant, ask: &Ask<'_>) -> Result<By, Why> {
        let price = self.current(ask.open).price.micros();
        let selected = ask.selected.map(|name| self.offers.selected(name, now));
        let (accepted, else_why) = match (ask.most, selected) {
            (Some(most), _) => (most, Why::TooCheap),
            (None, Some(Some(offer))) if offer.open && !ask.open => (offer.price, Why::NotOpen),
            (None, Some(Some(offer))) => (offer.price, Why::TooCheap),
            (None, _) if price == 0 => return Ok(By::Free),
            (None, Some(None)) => return Err(Why::Expired),
            (None, None) => return Err(Why::NoOffer),
        };
        match accepted.micros() >= price {
            true => Ok(By::Offer),
            false => Err(else_why),
        }
    }

    /// A quote at the present price, for who can make use of one: a request that states neither price nor
    /// rate would not know what to do with it.
    fn quote(&mut self, now: Instant, ask: &Ask<'_>, by: By) -> Option<(Quote, String)> {
        if by == By::Free && ask.rate.is_none() {
            return None;
        }
        let rate = ask
            .rate
            .unwrap_or(self.terms.rate)
            .min(self.terms.most_rate);
        let offer = self.offers.current(ask.open);
        let quote = self.ledger.give(now, ask.client, offer, rate)?;
        let token = self.key.sign(&quote);
        Some((quote, token))
    }
}
