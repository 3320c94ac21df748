//! Replies to rejected requests: status, reason, the current offer, and advice about a retry.

use hyper::StatusCode;
use hyper::http::request::Parts;
use posthaste_admission::{Market, Refused, Why};
use posthaste_soap::{Code, Detail, Fault, Version};
use posthaste_units::Span;

use super::counters::RejectionReason;
use super::offer_fields::{OfferFields, price_text};
use crate::error::Rejection;
use crate::request::preferences::soap_media;
use crate::retry_after::advice;

/// Namespace of the elements in a fault.
const NAMESPACE: &str = posthaste_soap::EXTENSION_NAMESPACE;

/// A rejected request.
pub(super) struct RejectedRequest {
    pub(super) reason: RejectionReason,
    /// Name and price of the current offer, if prices apply.
    pub(super) current: Option<(String, String)>,
    /// Estimated time until a retry may succeed:
    ///
    /// - rate or quote used up: the time until the next request is admitted
    /// - limit: the mean time of a reply, when the requests in service will have ended
    /// - price: the interval of price updates
    pub(super) retry_after: Span,
}

impl RejectedRequest {
    pub(super) fn by_market(
        market: &Market,
        fields: &OfferFields<'_>,
        refused: &Refused,
        retry_after: Span,
    ) -> Self {
        let name = market.current(fields.is_open).name.clone();
        Self {
            reason: RejectionReason::Price(refused.why),
            current: Some((name, price_text(refused.current))),
            retry_after,
        }
    }

    pub(super) fn plain(reason: RejectionReason, retry_after: Span) -> Self {
        Self {
            reason,
            current: None,
            retry_after,
        }
    }

    const fn status_and_text(&self) -> (StatusCode, &'static str) {
        const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
        const PAY: StatusCode = StatusCode::PAYMENT_REQUIRED;
        match self.reason {
            RejectionReason::Rate => (MANY, "more requests come than the rate that is set allows"),
            RejectionReason::Limit => (
                BUSY,
                "as many requests are in service as the service can do",
            ),
            RejectionReason::Wait => (
                BUSY,
                "more important requests, or those of other clients, take what the service can do",
            ),
            RejectionReason::ClientRate => (MANY, "more requests come than one client may send"),
            RejectionReason::ClientConcurrency => (
                MANY,
                "as many requests are in service as one client may have",
            ),
            RejectionReason::RouteRate => (MANY, "more requests come than this route allows"),
            RejectionReason::RouteConcurrency => {
                (BUSY, "as many requests are in service as this route allows")
            }
            RejectionReason::Price(why) => match why {
                Why::TooCheap => (PAY, "the price is above what the request accepts"),
                Why::Expired => (PAY, "the offer that the request selects has ended"),
                Why::Forged => (PAY, "the quote was not given to this client"),
                Why::NoOffer => (
                    PAY,
                    "a request states the offer that it selects, or Max-Price",
                ),
                Why::NotOpen => (
                    PAY,
                    "the price is for requests that leave it open whether the reply is compressed",
                ),
                Why::NoAccount => (
                    PAY,
                    "requests are paid from an account: send its API key, or show its certificate",
                ),
                Why::NoBudget => (PAY, "the budget of the account does not cover the price"),
                Why::OtherCurrency => (PAY, "Max-Price is in another currency than the offer"),
                Why::Overused => (MANY, "the quote is used beyond its rate"),
                Why::Full => (
                    BUSY,
                    "the price is right, but there is no room at the moment",
                ),
            },
        }
    }
}

/// Builds the rejection with advice. SOAP requests get a SOAP fault.
pub(super) fn rejection(head: &Parts, rejected: RejectedRequest) -> Rejection {
    let (status, text) = rejected.status_and_text();
    let soap = soap_media(head).map(|media| media.version);
    let mut rejection = match soap {
        None => Rejection::new(status, text),
        Some(version) => fault(version, text, &rejected),
    };
    let mut add = |name, value| rejection.fields.push((name, value));
    if let Some((offer, price)) = rejected.current {
        add("current-offer", format!("{offer};price=\"{price}\""));
    }
    add("retry-after", advice(rejected.retry_after));
    rejection
}

fn fault(version: Version, text: &str, rejected: &RejectedRequest) -> Rejection {
    let detail = rejected.current.as_ref().map(|(offer, price)| Detail {
        namespace: NAMESPACE,
        name: "CurrentOffer",
        fields: vec![("name", offer.clone()), ("price", price.clone())],
    });
    let fault = Fault {
        detail,
        ..Fault::new(Code::Server, text)
    };
    Rejection::fault(version, &fault)
}
