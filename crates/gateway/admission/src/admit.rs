//! Admission by price: decides if a request is admitted, and at what price.
//!
//! A valid quote admits its request at any load, unless it costs more than the request accepts. Without one, a request
//! is admitted if it accepts the current price and there is capacity. It pays the current price, which is never more
//! than it accepted. The accepted price is `most` if stated, otherwise the price of the selected offer, otherwise none.
//!
//! The current price depends on the request alone: on its choice to leave compression to the server or not. A quote at
//! the lower price is therefore invalid for a request that does not leave it to the server.

use std::fmt;

use posthaste_units::{Instant, Span};

use super::Market;
use super::ledger::Unpaid;
use super::payer::Payer;
use super::quote::Quote;
use posthaste_qos::Money;

/// The statements of a request about its price.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// Client, by a name that it cannot choose, such as an address or an account.
    pub client: &'a str,
    /// Name of the selected offer.
    pub selected: Option<&'a str>,
    /// Maximum price that the request accepts.
    pub most: Option<Money>,
    /// Token of its quote.
    pub token: Option<&'a str>,
    /// Requested rate of a new quote, in requests per second.
    pub rate: Option<f64>,
    /// The request leaves compression of its reply to the server.
    pub open: bool,
    /// Issue no quote, because the client would not see it.
    pub unquoted: bool,
    /// The payer of the request.
    pub payer: Payer,
}

/// An admitted request.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// Price of the request.
    pub price: Money,
    /// New quote for the client, with its token.
    pub quote: Option<(Quote, String)>,
    /// Reason for the admission.
    pub by: By,
}

/// Reason for an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// A valid quote.
    Quote,
    /// The request accepts the current price.
    Offer,
    /// The price is 0, and the request accepts no price or that of an expired offer.
    Free,
}

/// A rejected request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Reason for the rejection.
    pub why: Why,
    /// Current price, which the request would have to accept.
    pub current: Money,
}

/// Reason for a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The request accepts less than the current price.
    TooCheap,
    /// The selected offer or the quote has expired, and the request accepts nothing else.
    Expired,
    /// The quote was not issued to this client.
    Forged,
    /// Requests arrive faster than the quote's rate, and the request accepts nothing else.
    Overused,
    /// The request accepts the price, but there is no capacity.
    Full,
    /// The request states no price, and the price is not 0.
    NoOffer,
    /// The request states a price in another currency.
    OtherCurrency,
    /// The quote or the selected offer is for requests that leave compression to the server, and the request accepts
    /// nothing else.
    NotOpen,
    /// The price is not 0, and no account of the client is identified.
    NoAccount,
    /// The price is above what is left of the account's budget.
    NoBudget,
}

/// Every reason for a rejection.
pub const REFUSALS: [Why; 10] = [
    Why::TooCheap,
    Why::Expired,
    Why::Forged,
    Why::Overused,
    Why::Full,
    Why::NoOffer,
    Why::OtherCurrency,
    Why::NotOpen,
    Why::NoAccount,
    Why::NoBudget,
];

impl Why {
    /// Its name as a label of metrics.
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
            Self::NoAccount => "no-account",
            Self::NoBudget => "no-budget",
        }
    }

    /// True if the request would have to pay, and cannot.
    pub const fn is_for_lack_of_money(self) -> bool {
        matches!(self, Self::NoAccount | Self::NoBudget)
    }

    /// Its position in [`REFUSALS`].
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
    /// Its name as a label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quote => "quote",
            Self::Offer => "offer",
            Self::Free => "free",
        }
    }
}

impl Payer {
    /// Reason against a request that would have to pay, if it cannot.
    const fn why_not(self) -> Option<Why> {
        match self {
            Self::Anyone | Self::Account { .. } => None,
            Self::Nobody => Some(Why::NoAccount),
            Self::Broke => Some(Why::NoBudget),
        }
    }

    /// The statements of a request that count.
    fn covers<'a>(self, ask: &Ask<'a>) -> Ask<'a> {
        match self {
            Self::Anyone => *ask,
            Self::Nobody | Self::Broke => Ask {
                client: ask.client,
                open: ask.open,
                payer: self,
                unquoted: true,
                ..Ask::default()
            },
            Self::Account { max_price, .. } => Ask {
                most: ask.most.or(match ask.selected {
                    None => max_price,
                    Some(_) => None,
                }),
                ..*ask
            },
        }
    }
}

impl Market {
    /// Admits or rejects a request. `room` is true if fewer requests are in service than the limit; only a quote admits
    /// a request without it.
    pub fn admit(&mut self, now: Instant, ask: &Ask<'_>, room: bool) -> Result<Admitted, Refused> {
        self.enter(now, ask, room).map_err(|why| Refused {
            why,
            current: self.current(ask.open).price,
        })
    }

    fn enter(&mut self, now: Instant, ask: &Ask<'_>, room: bool) -> Result<Admitted, Why> {
        let ask = &ask.payer.covers(ask);
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

    /// Price of the shown quote, or the reason why it is not valid. `None` if no quote is shown or it costs more than
    /// the request accepts.
    fn by_quote(&mut self, now: Instant, ask: &Ask<'_>) -> Result<Option<Result<Money, Why>>, Why> {
        let Some(token) = ask.token else {
            return Ok(None);
        };
        let quote = self.key.read(token, ask.client).map_err(|_| Why::Forged)?;
        if quote.open && !ask.open {
            return Ok(Some(Err(Why::NotOpen)));
        }
        let price = if quote.open {
            quote.price
        } else {
            self.offers.due(quote.price, ask.open)
        };
        let accepts = ask.most.is_none_or(|most| most.micros() >= price.micros());
        if !accepts || !ask.payer.can_pay(price) {
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

    /// Time until the shown quote admits its next request. `None` if it is not valid.
    pub fn wait(&mut self, now: Instant, ask: &Ask<'_>) -> Option<Span> {
        let quote = self.key.read(ask.token?, ask.client).ok()?;
        self.ledger.wait(now, &quote)
    }

    /// Decides on admission at the current price.
    fn by_offer(&self, now: Instant, ask: &Ask<'_>) -> Result<By, Why> {
        let current = self.current(ask.open).price;
        let price = current.micros();
        if let Some(why) = ask.payer.why_not()
            && price > 0
        {
            return Err(why);
        }
        let selected = ask.selected.map(|name| self.offers.selected(name, now));
        let (accepted, else_why) = match (ask.most, selected) {
            (Some(most), _) => (most, Why::TooCheap),
            (None, Some(Some(offer))) if offer.open && !ask.open => (offer.price, Why::NotOpen),
            (None, Some(Some(offer))) => (offer.price, Why::TooCheap),
            (None, _) if price == 0 => return Ok(By::Free),
            (None, Some(None)) => return Err(Why::Expired),
            (None, None) => return Err(Why::NoOffer),
        };
        if accepted.micros() < price {
            Err(else_why)
        } else if ask.payer.can_pay(current) {
            Ok(By::Offer)
        } else {
            Err(Why::NoBudget)
        }
    }

    /// Issues a quote at the current price. A request that was admitted free and states no rate gets none, because it
    /// would not use it.
    fn quote(&mut self, now: Instant, ask: &Ask<'_>, by: By) -> Option<(Quote, String)> {
        if ask.unquoted || by == By::Free && ask.rate.is_none() {
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
