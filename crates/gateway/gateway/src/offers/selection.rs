//! The stage that chooses an offer for a request, before admission.

use std::sync::atomic::Ordering::Relaxed;

use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_qos::selection::{Choice, Ground, NoOffer, TermBounds};

use super::offer_request::{FallbackReason, OfferRequest, Selection};
use super::reply;
use super::shared::{OfferDecision, OffersState};
use super::terms;
use super::thread::{OfferUpstreams, ThreadTable};
use crate::clock::timestamp;
use crate::error::Rejection;
use crate::request::preferences::Preferences;

/// True before the end of an offer. Choices compare whole milliseconds, so an offer ends with the one before.
pub(super) fn is_valid(expires: Timestamp, now: Timestamp) -> bool {
    expires.as_millisecond() > now.as_millisecond()
}

impl OfferUpstreams {
    /// Chooses the offer of a request by its terms:
    ///
    /// | situation | outcome |
    /// |---|---|
    /// | an offer is adequate | the cheapest, or the one that the request selects |
    /// | only the price is against every offer | 402 with the cheapest of them |
    /// | no offer is adequate | 503 |
    /// | there is no valid offer | the configured upstreams; without them 503 |
    /// | a term cannot be read | 400 |
    pub(crate) fn select(
        &self,
        head: &Parts,
        preferences: &Preferences,
        has_fallback: bool,
    ) -> Result<Selection, Rejection> {
        let terms = terms::read(&head.headers, preferences, self.shared.config.currency)?;
        let now = timestamp();
        let table = self.current();
        let published = &table.published;
        let offers = published.table.offers();
        if !offers.iter().any(|offer| is_valid(offer.expires, now)) {
            return self.fall_back(published.state, has_fallback);
        }
        let bounds = TermBounds::new(&terms, now);
        let in_flight = |endpoint| table.in_flight(endpoint);
        let selected = terms.selected.as_deref();
        let found = published
            .table
            .choose(&bounds, selected, self.next_position(), in_flight);
        match self.or_probe(&table, &bounds, found) {
            Ok(choice) => {
                self.shared.count(match choice.ground {
                    Ground::Cheapest => OfferDecision::Cheapest,
                    Ground::Selected => OfferDecision::Selected,
                    Ground::Probe => OfferDecision::Probe,
                });
                Ok(Selection::Offer(OfferRequest {
                    table,
                    bounds,
                    selected: terms.selected,
                    choice,
                }))
            }
            Err(none) => {
                self.shared.count(match none.too_expensive {
                    Some(_) => OfferDecision::TooExpensive,
                    None => OfferDecision::None,
                });
                Err(reply::rejection(head, &table, &bounds, none))
            }
        }
    }

    /// Replaces the outcome of a choice by a probe, if one is due.
    fn or_probe(
        &self,
        table: &ThreadTable,
        bounds: &TermBounds,
        found: Result<Choice, NoOffer>,
    ) -> Result<Choice, NoOffer> {
        let end = match &found {
            Ok(choice) if choice.ground == Ground::Selected => return found,
            Ok(choice) => choice.position,
            Err(_) => usize::MAX,
        };
        if end == 0 || !self.shared.is_probe_due() {
            return found;
        }
        // Requests without a candidate leave the turn to others.
        let last = self.shared.probed.load(Relaxed);
        let in_flight = |endpoint| table.in_flight(endpoint);
        let probe = table.published.table.probe(bounds, end, last, in_flight);
        match probe {
            Some(probe) if self.shared.take_probe() => {
                self.shared.probed.store(probe.position, Relaxed);
                Ok(probe)
            }
            _ => found,
        }
    }

    fn fall_back(&self, state: OffersState, has_fallback: bool) -> Result<Selection, Rejection> {
        let reason = match state {
            OffersState::Waiting => FallbackReason::Waiting,
            OffersState::Lapsed => FallbackReason::Lapsed,
            OffersState::Current | OffersState::Held => FallbackReason::NoOffer,
        };
        if has_fallback {
            self.shared.count(OfferDecision::Fallback);
            return Ok(Selection::Fallback(reason));
        }
        self.shared.count(OfferDecision::None);
        Err(reply::without_offers(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A choice would find none in the millisecond of the end.
    #[test]
    fn an_offer_ends_with_the_millisecond_before_its_end() {
        let at = |nanos: i128| Timestamp::from_nanosecond(nanos).unwrap();
        let expires = at(5_000_600_000);
        assert!(is_valid(expires, at(4_999_999_999)));
        assert!(!is_valid(expires, at(5_000_100_000)));
    }
}
