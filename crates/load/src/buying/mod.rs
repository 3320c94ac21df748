//! Clients that choose by price: before every request the best offer there is, as a broker tells it.
//!
//! The [`catalogue`] follows the broker, so that a choice asks nobody: what is [`known`] is in memory. Each event loop
//! is one client, a [`Buyer`] with [`quotes`] of its own. What is asked of the service goes into header fields: of a
//! SOAP message too, whose body stays as it was written.

mod catalogue;
mod known;
mod quotes;

use jiff::Timestamp;
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

/// One client: the choice it made last, for as long as that is the best.
pub(crate) struct Buyer<'r> {
    catalogue: &'r Catalogue,
    /// The catalogue's version when it chose, and when what it chose expires.
    chosen: (u64, Timestamp),
    /// Why it sends nothing, if so.
    declines: Option<String>,
    /// What its requests say: the last offer it chose.
    fields: String,
    pub(crate) quotes: Quotes,
}

impl<'r> Buyer<'r> {
    pub(crate) fn new(catalogue: &'r Catalogue) -> Self {
        Self {
            catalogue,
            chosen: (0, Timestamp::MIN),
            declines: None,
            fields: String::new(),
            quotes: Quotes::default(),
        }
    }

    /// Chooses anew where the offers have changed or the chosen one has expired; the reason where nothing is to be sent.
    pub(crate) fn choose(&mut self, now: Timestamp) -> Result<(), &str> {
        let (version, until) = self.chosen;
        if version != self.catalogue.version() || now >= until {
            let (version, choice) = self.catalogue.choose(now);
            self.take(version, choice);
        }
        self.declines.as_deref().map_or(Ok(()), Err)
    }

    fn take(&mut self, version: u64, choice: Choice) {
        let most = self.catalogue.most();
        let most = most.map_or_else(String::new, |most| format!("Max-Price: {most}\r\n"));
        self.declines = None;
        self.chosen = (version, Timestamp::MAX);
        match choice {
            Choice::Buy { name, until } => {
                self.chosen.1 = until;
                self.fields = format!("Selected-Offer: {name}\r\n{most}");
            }
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
