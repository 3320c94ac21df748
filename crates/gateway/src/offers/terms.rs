//! The terms of a request, from its head and its SOAP header.

use std::str::FromStr;

use hyper::header::HeaderName;
use hyper::{HeaderMap, StatusCode};
use posthaste_qos::selection::{LatencyBound, Percentile, RequestTerms};
use posthaste_qos::{Currency, Money};
use posthaste_units::Ratio;

use crate::error::Rejection;
use crate::request::preferences::Preferences;

/// The selected offer, by its name at the broker. In replies, the offer that served the request.
pub(super) const SELECTED: HeaderName = HeaderName::from_static("selected-offer");
/// The maximum price: `0.40 EUR`.
const MAX_PRICE: HeaderName = HeaderName::from_static("max-price");
/// The maximum response time: `200ms`, `200ms;p=50`.
const MAX_LATENCY: HeaderName = HeaderName::from_static("max-latency");
/// The minimum share of requests that are answered well: `99.9%`.
const MIN_RELIABILITY: HeaderName = HeaderName::from_static("min-reliability");

/// Reads the terms. A field takes precedence over the SOAP header.
///
/// A term that cannot be read ends the request with 400: a request that ignores it would be served by an offer that its
/// client does not accept.
pub(super) fn read(
    headers: &HeaderMap,
    preferences: &Preferences,
    currency: Currency,
) -> Result<RequestTerms, Rejection> {
    let max_price = field::<Money>(headers, MAX_PRICE, "0.40 EUR")?;
    if max_price.is_some_and(|most| most.currency() != currency) {
        let reason = format!("Max-Price is not in {currency}, the currency of the offers");
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    let max_latency = field::<LatencyBound>(headers, MAX_LATENCY, "200ms or 200ms;p=50")?;
    let min_reliability = field::<Ratio>(headers, MIN_RELIABILITY, "99.9%")?;
    if preferences.has_unread_metric {
        let reason =
            "WSQoSSoapHeader: processingTime is in milliseconds, and reliability from 0 to 1";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    let of_header = preferences.processing_time.map(|most| LatencyBound {
        most,
        percentile: Percentile::default(),
    });
    let selected = headers.get(SELECTED).and_then(|name| name.to_str().ok());
    let selected = selected.map(str::trim).or(preferences.selected.as_deref());
    Ok(RequestTerms {
        max_price,
        max_latency: max_latency.or(of_header),
        min_reliability: min_reliability.or(preferences.reliability),
        selected: selected.map(str::to_owned),
    })
}

/// Removes the terms, so that the upstream does not see them.
pub(crate) fn strip(headers: &mut HeaderMap) {
    for name in [SELECTED, MAX_PRICE, MAX_LATENCY, MIN_RELIABILITY] {
        headers.remove(name);
    }
}

/// Reads a field of one line.
fn field<T: FromStr>(
    headers: &HeaderMap,
    name: HeaderName,
    example: &str,
) -> Result<Option<T>, Rejection> {
    let mut lines = headers.get_all(&name).iter();
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let value = line.to_str().ok().and_then(|text| text.trim().parse().ok());
    match (value, lines.next()) {
        (Some(value), None) => Ok(Some(value)),
        _ => {
            let reason = format!("{name} cannot be read: send one line, such as {name}: {example}");
            Err(Rejection::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}
