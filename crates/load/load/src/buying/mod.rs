//! Clients that choose by price: the best offer of a broker before every request.
//!
//! The [`catalogue`] follows the broker, so a choice needs no request: [`known_offers`] are in memory. Each event loop
//! is one client, a [`Buyer`] with [`quotes`] of its own. The choice is sent in header fields, also for a SOAP message,
//! whose body stays unchanged.

mod catalogue;
mod current_offer;
mod known_offers;
mod quotes;

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::{Definition, Money};
use posthaste_units::Span;
use serde::{Deserialize, Serialize};

use self::catalogue::Catalogue;
pub(crate) use self::catalogue::FollowedCatalogue;
use self::known_offers::OfferChoice;
pub use self::quotes::QuoteUse;
pub(crate) use self::quotes::Quotes;
use crate::exact;

/// Settings of the clients' choice.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buying {
    /// The broker's URL.
    pub broker: String,
    /// The type of interface that they call. By default the only one for which the broker has offers.
    pub kind: Option<String>,
    /// Requirements on an offer. Its price is the clients' maximum price. Custom metrics match no offer, because their
    /// ontologies are the broker's. Without a price, offers are compared in the currency of the first.
    pub wanted: Definition,
    /// Behaviour while the broker is unavailable and all its offers have expired.
    pub without: WithoutOffers,
    /// Interval between choices. Until the next choice a client keeps the last one, expired or not, and applies the
    /// offers that refusals name. `None`: before every request.
    #[serde(with = "exact::optional_nanos")]
    pub ask_every: Option<Span>,
}

/// Behaviour of a client that cannot know the offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutOffers {
    /// Send nothing.
    #[default]
    Decline,
    /// Send requests without naming an offer.
    Send,
}

impl Buying {
    /// The maximum price for a request.
    pub const fn max_price(&self) -> Option<Money> {
        self.wanted.price
    }
}

/// One client with its last choice. The choice stands while it is the best, or until the next choice is due.
pub(crate) struct Buyer<'r> {
    catalogue: &'r Catalogue,
    /// The catalogue's version at the last choice, and the latest time of the next choice.
    chosen: (u64, Timestamp),
    /// Lifetime of the next choice, if the client does not follow the broker.
    pause: Option<Span>,
    /// The reason for sending nothing, if the client declines.
    declines: Option<String>,
    /// Header fields of its requests: the offer chosen last.
    fields: String,
    pub(crate) quotes: Quotes,
}

impl<'r> Buyer<'r> {
    /// Creates a client. `phase`, from 0 to 1, is the part of the first pause until its next choice, so that clients
    /// that start together do not choose together.
    pub(crate) fn new(catalogue: &'r Catalogue, phase: f64) -> Self {
        let first = |every: Span| Span::from_secs_f64(every.as_secs_f64() * phase);
        Self {
            catalogue,
            chosen: (0, Timestamp::MIN),
            pause: catalogue.ask_every().map(first),
            declines: None,
            fields: String::new(),
            quotes: Quotes::default(),
        }
    }

    /// Chooses again if the offers have changed, the chosen one has expired, or the next choice is due. The error is
    /// the reason for sending nothing.
    pub(crate) fn choose(&mut self, now: Timestamp) -> Result<(), &str> {
        let (version, until) = self.chosen;
        let is_old = self.pause.is_none() && version != self.catalogue.version();
        if is_old || now >= until {
            let (version, choice) = self.catalogue.choose(now);
            let until = match (self.pause, &choice) {
                (Some(pause), _) => now + signed(pause),
                (None, OfferChoice::Buy { until, .. }) => *until,
                (None, _) => Timestamp::MAX,
            };
            self.pause = self.catalogue.ask_every();
            self.chosen = (version, until);
            self.apply(choice);
        }
        self.declines.as_deref().map_or(Ok(()), Err)
    }

    /// Applies the current offer that a refusal names, until the next choice is due. Returns false if it cannot be
    /// parsed. A client that follows the broker ignores it.
    pub(crate) fn apply_current_offer(&mut self, value: &[u8]) -> bool {
        if self.pause.is_none() {
            return true;
        }
        let Some((name, price)) = current_offer::read(value) else {
            return false;
        };
        let pays =
            |most: Money| most.currency() == price.currency() && most.micros() >= price.micros();
        let until = self.chosen.1;
        self.apply(if self.catalogue.max_price().is_none_or(pays) {
            OfferChoice::Buy { name, until }
        } else {
            OfferChoice::Decline(format!(
                "the service refuses what is not {name}, for {price}"
            ))
        });
        true
    }

    fn apply(&mut self, choice: OfferChoice) {
        let most = self.catalogue.max_price();
        let most = most.map_or_else(String::new, |most| format!("Max-Price: {most}\r\n"));
        self.declines = None;
        match choice {
            OfferChoice::Buy { name, .. } => {
                self.fields = format!("Selected-Offer: {name}\r\n{most}")
            }
            OfferChoice::Unknown => self.fields = most,
            OfferChoice::Decline(reason) => self.declines = Some(reason),
        }
    }

    /// Inserts the choice, and a quote if there is one, after the request line of `request`.
    pub(crate) fn insert_fields(&self, quote: Option<&str>, request: &mut Vec<u8>) {
        let behind = memchr::memchr(b'\n', request).map_or(0, |end| end + 1);
        let quote = quote.map_or_else(String::new, |token| format!("Quote: {token}\r\n"));
        let fields = self.fields.bytes().chain(quote.bytes());
        request.splice(behind..behind, fields);
    }
}

fn signed(span: Span) -> SignedDuration {
    SignedDuration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}
