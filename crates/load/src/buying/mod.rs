//! Clients that choose by price: before every request the best offer there is, as a broker tells it.
//!
//! The [`catalogue`] follows the broker, so that a choice asks nobody: what is [`known`] is in memory. Each event loop
//! is one client, a [`Buyer`] with [`quotes`] of its own. What is asked of the service goes into header fields: of a
//! SOAP message too, whose body stays as it was written.

mod catalogue;
mod known;
mod present;
mod quotes;

use jiff::{SignedDuration, Timestamp};
use posthaste_units::Span;
use posthaste_wsqos::qos::{Definition, Money};

use self::catalogue::Catalogue;
pub(crate) use self::catalogue::Followed;
use self::known::Choice;
pub use self::quotes::QuoteUse;
pub(crate) use self::quotes::Quotes;

/// How clients choose.
#[derive(Clone, Debug)]
pub struct Buying {
    /// The broker's URL.
    pub broker: String,
    /// The type of interface that they call; without it, the only one for which the broker has offers.
    pub kind: Option<String>,
    /// What an offer must be enough for; its price is the most they pay. Custom metrics match no offer: their
    /// ontologies are the broker's. Without a price, offers are compared in the currency of the first.
    pub wanted: Definition,
    /// What they do while the broker is gone and every offer that it told has expired.
    pub without: Without,
    /// How often they ask. In between each goes on with what it chose, expired or not, and with what a refusal
    /// tells it. Without it they ask before every request.
    pub ask_every: Option<Span>,
}

/// What a client does that cannot know the offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Without {
    /// It sends nothing.
    #[default]
    Decline,
    /// It sends its requests, naming no offer.
    Send,
}

impl Buying {
    /// The most that is paid for a request.
    pub(crate) const fn most(&self) -> Option<Money> {
        self.wanted.price
    }
}

/// One client: the choice it made last, for as long as that is the best, or until it asks again.
pub(crate) struct Buyer<'r> {
    catalogue: &'r Catalogue,
    /// The catalogue's version when it chose, and when it chooses again at the latest.
    chosen: (u64, Timestamp),
    /// How long it goes on with its next choice, where it does not follow.
    pause: Option<Span>,
    /// Why it sends nothing, if so.
    declines: Option<String>,
    /// What its requests say: the last offer it chose.
    fields: String,
    pub(crate) quotes: Quotes,
}

impl<'r> Buyer<'r> {
    /// `phase`, from 0 to 1, is the part of the first pause after which it asks again: clients that begin together do
    /// not ask together.
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

    /// Chooses anew where the offers have changed or the chosen one has expired, or where it is time to ask; the reason
    /// where nothing is to be sent.
    pub(crate) fn choose(&mut self, now: Timestamp) -> Result<(), &str> {
        let (version, until) = self.chosen;
        let is_old = self.pause.is_none() && version != self.catalogue.version();
        if is_old || now >= until {
            let (version, choice) = self.catalogue.choose(now);
            let until = match (self.pause, &choice) {
                (Some(pause), _) => now + signed(pause),
                (None, Choice::Buy { until, .. }) => *until,
                (None, _) => Timestamp::MAX,
            };
            self.pause = self.catalogue.ask_every();
            self.chosen = (version, until);
            self.take(choice);
        }
        self.declines.as_deref().map_or(Ok(()), Err)
    }

    /// Takes the present offer that a refusal names, until it asks again; whether it can be understood. Who follows the
    /// broker has been told.
    pub(crate) fn learn(&mut self, value: &[u8]) -> bool {
        if self.pause.is_none() {
            return true;
        }
        let Some((name, price)) = present::read(value) else {
            return false;
        };
        let pays =
            |most: Money| most.currency() == price.currency() && most.micros() >= price.micros();
        let until = self.chosen.1;
        self.take(match self.catalogue.most().is_none_or(pays) {
            true => Choice::Buy { name, until },
            false => Choice::Decline(format!(
                "the service refuses what is not {name}, for {price}"
            )),
        });
        true
    }

    fn take(&mut self, choice: Choice) {
        let most = self.catalogue.most();
        let most = most.map_or_else(String::new, |most| format!("Max-Price: {most}\r\n"));
        self.declines = None;
        match choice {
            Choice::Buy { name, .. } => self.fields = format!("Selected-Offer: {name}\r\n{most}"),
            Choice::Unknown => self.fields = most,
            Choice::Decline(reason) => self.declines = Some(reason),
        }
    }

    /// Puts what was chosen behind the request line of `request`, with a quote where there is one.
    pub(crate) fn sign(&self, quote: Option<&str>, request: &mut Vec<u8>) {
        let behind = memchr::memchr(b'\n', request).map_or(0, |end| end + 1);
        let quote = quote.map_or_else(String::new, |token| format!("Quote: {token}\r\n"));
        let fields = self.fields.bytes().chain(quote.bytes());
        request.splice(behind..behind, fields);
    }
}

fn signed(span: Span) -> SignedDuration {
    SignedDuration::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}
