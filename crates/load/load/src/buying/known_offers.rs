//! Offers reported by a broker, and the choice among them.

use jiff::Timestamp;
use posthaste_broker_client::{Error, Event, FollowerEvent, Put};
use posthaste_qos::index::{Full, Index, Limits};
use posthaste_qos::{Currency, Money, Offer, Ontologies, Rates, objections};

use super::{Buying, WithoutOffers};

/// Maximum number of types that an error names.
const NAMED: usize = 10;

/// Offers as of the last news.
pub(super) struct KnownOffers {
    kind: Option<String>,
    index: Index,
    /// Offers received so far of a full list in progress.
    partial: Option<Index>,
    /// True once a full list has been received.
    pub(super) ready: bool,
    /// The reason why the broker is unavailable, if it is.
    pub(super) lost: Option<String>,
    /// Reason of the first offer that cannot be compared.
    incomparable: Option<String>,
    /// Limits on the offers accepted from a broker.
    pub(super) limits: Limits,
}

/// Instruction for a client.
#[derive(Debug, PartialEq)]
pub(super) enum OfferChoice {
    /// Send, and select this offer.
    Buy { name: String, until: Timestamp },
    /// Send without knowing an offer.
    Unknown,
    /// Send nothing, for this reason.
    Decline(String),
}

impl KnownOffers {
    pub(super) fn new(buying: &Buying) -> Self {
        Self {
            kind: buying.kind.clone(),
            index: empty(buying),
            partial: None,
            ready: false,
            lost: None,
            incomparable: None,
            limits: Limits::default(),
        }
    }

    /// If no type was given, takes the only type for which `broker` has offers. An error if there is none or more than
    /// one.
    pub(super) fn fix_kind(&mut self, broker: &str) -> Result<(), String> {
        if self.kind.is_some() {
            return Ok(());
        }
        let mut kinds: Vec<&str> = self.index.kinds().collect();
        kinds.sort_unstable();
        match &*kinds {
            [only] => {
                self.kind = Some((*only).to_owned());
                Ok(())
            }
            [] => {
                let reason = self.incomparable.as_deref().unwrap_or("there is none");
                Err(format!(
                    "the broker at {broker} has no offer to choose from: {reason}; say with --type for what one may come"
                ))
            }
            several => {
                let named = several[..several.len().min(NAMED)].join(", ");
                let more = if several.len() > NAMED { ", ..." } else { "" };
                Err(format!(
                    "the broker at {broker} has offers for {named}{more}: say with --type which"
                ))
            }
        }
    }

    /// Returns the cheapest adequate offer, or the alternative if there is none.
    pub(super) fn choose(&mut self, buying: &Buying, now: Timestamp) -> OfferChoice {
        let kind = self.kind.as_deref();
        let kind = kind.expect("a type of interface is fixed before a choice");
        let mut adequate = self.index.adequate(kind, &buying.wanted, now);
        // A name that is no valid field value cannot be selected.
        let found = adequate.find(|found| is_field_value(&found.offer.name));
        if let Some(found) = found {
            return OfferChoice::Buy {
                name: found.offer.name,
                until: found.offer.expires,
            };
        }
        drop(adequate);
        self.index.expire(now);
        match &self.lost {
            Some(_) if self.index.len_of(kind) == 0 && buying.without == WithoutOffers::Send => {
                OfferChoice::Unknown
            }
            _ => OfferChoice::Decline(self.objection(kind, buying, now)),
        }
    }

    /// Returns the reason why no offer is adequate.
    fn objection(&self, kind: &str, buying: &Buying, now: Timestamp) -> String {
        let Some(cheapest) = self.index.offers(kind).next() else {
            let reason = self.lost.as_ref().or(self.incomparable.as_ref());
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return format!("no offer for {kind}{reason}");
        };
        let objections = objections(&cheapest.offer, &buying.wanted, &self.index.world(now));
        let objections: Vec<String> = objections.iter().map(ToString::to_string).collect();
        let reasons = match &*objections {
            [] => "a name that cannot stand in a header field".to_owned(),
            some => some.join(", "),
        };
        let Offer { name, .. } = &cheapest.offer;
        format!("no offer for {kind} is enough; the cheapest, {name}: {reasons}")
    }

    /// Applies news. Returns true if a choice may have another result from now on. More offers than a broker may have
    /// by default are an error.
    pub(super) fn apply(
        &mut self,
        news: FollowerEvent,
        buying: &Buying,
        now: Timestamp,
    ) -> Result<bool, Error> {
        Ok(match news {
            FollowerEvent::Told(event) => self.event(event, buying)?,
            FollowerEvent::Lost(error) => {
                self.partial = None;
                self.lost = Some(error.to_string());
                true
            }
            FollowerEvent::Second => self.index.expire(now) > 0,
        })
    }

    fn event(&mut self, event: Event, buying: &Buying) -> Result<bool, Full> {
        let changes = !matches!(event, Event::Alive | Event::Late(_));
        match event {
            Event::Begin => self.partial = Some(empty(buying)),
            Event::Ready(_) => {
                if let Some(index) = self.partial.take() {
                    self.index = index;
                }
                self.ready = true;
            }
            Event::Changed { put, .. } => self.put(*put, buying)?,
            Event::Alive | Event::Late(_) => {}
        }
        // A full list counts once it is complete.
        let in_step = self.partial.is_none();
        Ok(in_step && (self.lost.take().is_some() || changes))
    }

    fn put(&mut self, put: Put, buying: &Buying) -> Result<(), Full> {
        if self.kind.as_ref().is_some_and(|kind| *kind != put.kind) {
            return Ok(());
        }
        let index = self.partial.as_mut().unwrap_or(&mut self.index);
        let Some(offer) = put.offer else {
            index.remove(&put.kind, &put.provider, &put.name);
            return Ok(());
        };
        // Without a price limit, the first offer sets the currency.
        if index.is_empty()
            && buying.max_price().is_none()
            && let Some(price) = offer.qos.price
        {
            *index = comparing_in(price.currency());
        }
        index.admits(&self.limits, &put.kind, &put.provider, &offer)?;
        if let Err(error) = index.put(&put.kind, &put.provider, &offer) {
            index.remove(&put.kind, &put.provider, &put.name);
            let Put { provider, name, .. } = put;
            self.incomparable
                .get_or_insert_with(|| format!("{name} by {provider} is omitted, {error}"));
        }
        Ok(())
    }
}

fn empty(buying: &Buying) -> Index {
    let anything = || "EUR".parse().expect("a currency");
    comparing_in(buying.max_price().map_or_else(anything, Money::currency))
}

fn comparing_in(currency: Currency) -> Index {
    Index::new(Rates::new(currency), Ontologies::default())
}

/// True if `text` may be the value of a header field unchanged (RFC 9110, section 5.5).
pub(super) fn is_field_value(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_graphic() || b == b' ';
    !text.is_empty() && text.trim() == text && text.bytes().all(inside)
}
