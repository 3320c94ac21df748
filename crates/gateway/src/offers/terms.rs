//! The terms of a request, from its head and its SOAP header.

use std::str::FromStr;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use posthaste_qos::selection::{LatencyBound, Percentile, RequestTerms};
use posthaste_qos::{Currency, Money};
use posthaste_units::Ratio;

use crate::error::Rejection;
use crate::request::preferences::Preferences;

/// The selected offer, by its name at the broker. In replies, the offer that served the request.
pub(super) const SELECTED: HeaderName = HeaderName::from_static(SELECTED_OFFER);
const SELECTED_OFFER: &str = "selected-offer";
/// The maximum price: `0.40 EUR`.
const MAX_PRICE: &str = "max-price";
/// The maximum response time: `200ms`, `200ms;p=50`.
const MAX_LATENCY: &str = "max-latency";
/// The minimum share of requests that are answered well: `99.9%`.
const MIN_RELIABILITY: &str = "min-reliability";

/// Fields with terms.
const TERMS: [&str; 4] = [MAX_PRICE, MAX_LATENCY, MIN_RELIABILITY, SELECTED_OFFER];

/// Reads the terms. A field takes precedence over the SOAP header.
///
/// A term that cannot be read ends the request with 400: a request that ignores it would be served by an offer that its
/// client does not accept.
pub(super) fn read(
    headers: &HeaderMap,
    preferences: &Preferences,
    currency: Currency,
) -> Result<RequestTerms, Rejection> {
    let [price, latency, reliability, selected] = find(headers);
    let max_price = price.read::<Money>(MAX_PRICE, "0.40 EUR")?;
    if max_price.is_some_and(|most| most.currency() != currency) {
        let reason = format!("Max-Price is not in {currency}, the currency of the offers");
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    let max_latency = latency.read::<LatencyBound>(MAX_LATENCY, "200ms or 200ms;p=50")?;
    let min_reliability = reliability.read::<Ratio>(MIN_RELIABILITY, "99.9%")?;
    if preferences.has_unread_metric {
        let reason =
            "WSQoSSoapHeader: processingTime is in milliseconds, and reliability from 0 to 1";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    let of_header = preferences.processing_time.map(|most| LatencyBound {
        most,
        percentile: Percentile::default(),
    });
    let selected = selected.first.and_then(|name| name.to_str().ok());
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
    let present = find(headers).map(|field| field.first.is_some());
    for (name, is_present) in TERMS.into_iter().zip(present) {
        if is_present {
            headers.remove(name);
        }
    }
}

/// Lines of a field.
#[derive(Clone, Copy, Default)]
struct FieldLines<'h> {
    first: Option<&'h HeaderValue>,
    has_more: bool,
}

/// Finds the fields with terms, in the order of [`TERMS`]. One pass costs less than a look-up for each.
fn find(headers: &HeaderMap) -> [FieldLines<'_>; TERMS.len()] {
    let mut found = [FieldLines::default(); TERMS.len()];
    for (name, value) in headers {
        let name = name.as_str();
        if let Some(place) = TERMS.iter().position(|term| *term == name) {
            let lines = &mut found[place];
            lines.has_more = lines.first.is_some();
            lines.first.get_or_insert(value);
        }
    }
    found
}

impl FieldLines<'_> {
    /// Reads a field of one line.
    fn read<T: FromStr>(self, name: &str, example: &str) -> Result<Option<T>, Rejection> {
        let Some(line) = self.first else {
            return Ok(None);
        };
        let value = line.to_str().ok().and_then(|text| text.trim().parse().ok());
        match value {
            Some(value) if !self.has_more => Ok(Some(value)),
            _ => {
                let reason =
                    format!("{name} cannot be read: send one line, such as {name}: {example}");
                Err(Rejection::new(StatusCode::BAD_REQUEST, reason))
            }
        }
    }
}
