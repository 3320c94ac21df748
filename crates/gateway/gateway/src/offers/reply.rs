//! Fields of replies about the offer, and rejections of requests without an adequate one.

use std::fmt::Write as _;

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use posthaste_qos::Money;
use posthaste_qos::selection::{Ground, NoOffer, PassReason, TermBounds};
use posthaste_soap::{Code, Detail, EXTENSION_NAMESPACE, Fault};
use posthaste_units::Span;

use super::offer_request::{FallbackReason, OfferRequest};
use super::thread::ThreadTable;
use crate::error::Rejection;
use crate::request::preferences::soap_media;
use crate::retry_after::advice;

/// Reason for the offer of a reply.
pub(super) const DECISION: HeaderName = HeaderName::from_static(DECISION_FIELD);
const DECISION_FIELD: &str = "offer-decision";

/// Offers that a field or a rejection names as passed over. Longer lists serve nobody, and each costs time.
const NAMED: usize = 3;

/// Maximum bytes of a name in a field.
const LABEL: usize = 64;

/// Estimated time until measurements or offers change.
const RETRY: Span = Span::from_secs(1);

/// The name for fields: printable ASCII without separators, others as `%XX`; a long name is cut.
pub(super) fn printable(name: &str) -> String {
    let mut label = String::new();
    for byte in name.bytes() {
        if label.len() >= LABEL {
            label.push_str("...");
            break;
        }
        let is_plain = byte.is_ascii_graphic() && !b"\"\\,;%".contains(&byte);
        if is_plain {
            label.push(char::from(byte));
        } else {
            let _ = write!(label, "%{byte:02X}");
        }
    }
    label
}

/// `NAME;provider="PROVIDER";price="0.10 EUR"`.
pub(super) fn offer_field(label: &str, provider: Option<&str>, price: Money) -> HeaderValue {
    HeaderValue::from_str(&offer_text(label, provider, price)).expect("labels are printable")
}

fn offer_text(label: &str, provider: Option<&str>, price: Money) -> String {
    let provider = provider.map(|provider| format!(";provider=\"{provider}\""));
    format!("{label}{};price=\"{price}\"", provider.unwrap_or_default())
}

/// The value of `Offer-Decision` for the configured upstreams.
pub(super) fn fallback_decision(reason: FallbackReason) -> HeaderValue {
    HeaderValue::from_static(match reason {
        FallbackReason::Waiting => "fallback;reason=waiting",
        FallbackReason::Lapsed => "fallback;reason=lapsed",
        FallbackReason::NoOffer => "fallback;reason=no-offer",
    })
}

/// The value of `Offer-Decision`: the reason for the choice, and the cheapest offers that were passed over with the
/// reason against each. `in_flight` is that of the choice.
pub(super) fn decision(
    request: &OfferRequest,
    in_flight: impl Fn(u32) -> Option<usize>,
) -> HeaderValue {
    let choice = request.choice;
    let ground = match choice.ground {
        Ground::Selected => return HeaderValue::from_static("selected"),
        Ground::Probe => return HeaderValue::from_static("probe"),
        Ground::Cheapest if choice.position == 0 && request.selected.is_none() => {
            return HeaderValue::from_static("cheapest");
        }
        Ground::Cheapest => "cheapest",
    };
    let mut text = ground.to_owned();
    let table = &request.table.published.table;
    if let Some(selected) = &request.selected {
        let reason = table.position_of(selected).map_or("unknown", |position| {
            let objection = table.objection(&request.bounds, position, &in_flight);
            objection.map_or("unreachable", PassReason::name)
        });
        let _ = write!(text, ";selected={reason}");
    }
    let passed = passed_over(&request.table, &request.bounds, choice.position, &in_flight);
    if !passed.is_empty() {
        let _ = write!(text, ";passed-over=\"{passed}\"");
    }
    HeaderValue::from_str(&text).expect("labels are printable")
}

/// The cheapest offers before `end` with an objection, as `a: measured-slow, b: unreachable, 3 more`. Counts them.
fn passed_over(
    table: &ThreadTable,
    bounds: &TermBounds,
    end: usize,
    in_flight: impl Fn(u32) -> Option<usize>,
) -> String {
    let mut text = String::new();
    let offers = &table.published.table.offers()[..end];
    for (index, offer) in offers.iter().enumerate().take(NAMED) {
        // Without an objection it has the price of the chosen one and more requests in flight.
        let objection = table.published.table.objection(bounds, index, &in_flight);
        let Some(reason) = objection else {
            continue;
        };
        offer.data.class.pass(reason);
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{}: {}", offer.data.label, reason.name());
    }
    if end > NAMED && !text.is_empty() {
        // Of equal price, some may be adequate and busier.
        let _ = write!(text, ", {} more", end - NAMED);
    }
    text
}

/// The rejection of a request for which no offer is adequate. SOAP requests get a SOAP fault.
pub(super) fn rejection(
    head: &Parts,
    table: &ThreadTable,
    bounds: &TermBounds,
    none: NoOffer,
) -> Rejection {
    let offers = table.published.table.offers();
    let current = none.too_expensive.map(|index| {
        let offer = &offers[index];
        (offer.data.label.clone(), offer.price)
    });
    let (status, text) = match &current {
        Some((name, price)) => (
            StatusCode::PAYMENT_REQUIRED,
            format!(
                "the cheapest adequate offer, {name}, costs {price}: raise Max-Price, or lower the other terms"
            ),
        ),
        None => {
            let in_flight = |endpoint| table.in_flight(endpoint);
            let passed = passed_over(table, bounds, offers.len(), in_flight);
            let text = format!(
                "no offer satisfies the terms of the request ({passed}): lower them, or try again later"
            );
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    };
    let media = soap_media(head);
    let mut rejection = match &media {
        None => Rejection::new(status, text),
        Some(media) => {
            let detail = current.as_ref().map(|(name, price)| Detail {
                namespace: EXTENSION_NAMESPACE,
                name: "CurrentOffer",
                fields: vec![("name", name.clone()), ("price", price.to_string())],
            });
            let fault = Fault {
                detail,
                ..Fault::new(Code::Server, &text)
            };
            Rejection::fault(media.version, &fault)
        }
    };
    if let Some((name, price)) = current {
        let value = offer_text(&name, None, price);
        rejection.fields.push(("current-offer", value));
    }
    rejection.fields.push(("retry-after", advice(RETRY)));
    rejection
}

/// The rejection of a request without a valid offer and without configured upstreams.
pub(super) fn without_offers(reason: FallbackReason) -> Rejection {
    let mut rejection = Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason.text());
    rejection
        .fields
        .push((DECISION_FIELD, format!("none;reason={}", reason.name())));
    rejection.fields.push(("retry-after", advice(RETRY)));
    rejection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_cannot_break_a_field() {
        assert_eq!(printable("standard@0.30"), "standard@0.30");
        assert_eq!(
            printable("a\"b,c;d\\e\r\nf%"),
            "a%22b%2Cc%3Bd%5Ce%0D%0Af%25"
        );
        assert_eq!(printable("é"), "%C3%A9");
        assert!(printable(&"x".repeat(500)).len() <= LABEL + 3);
        let price = "0.10 EUR".parse().unwrap();
        let field = offer_field(&printable("a b"), Some(&printable("é")), price);
        assert_eq!(field, "a%20b;provider=\"%C3%A9\";price=\"0.10 EUR\"");
    }
}
