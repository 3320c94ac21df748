//! The terms of a request, from its head and its SOAP header.

use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use posthaste_qos::selection::{LatencyBound, Percentile, RequestTerms};
use posthaste_qos::{Currency, Money};
use posthaste_units::Ratio;

use crate::error::Rejection;
use crate::request::preferences::Preferences;

/// The selected offer, by its name at the broker. In replies, the offer that served the request.
pub(super) const SELECTED: HeaderName = HeaderName::from_static("selected-offer");

/// Fields with terms: the maximum price, `0.40 EUR`; the maximum response time, `200ms` or `200ms;p=50`; the minimum
/// share of requests that are answered well, `99.9%`; and the selected offer.
static TERMS: [HeaderName; 4] = [
    HeaderName::from_static("max-price"),
    HeaderName::from_static("max-latency"),
    HeaderName::from_static("min-reliability"),
    SELECTED,
];

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
    let max_price = price.read::<Money, _>(str::parse, "0.40 EUR")?;
    if max_price.is_some_and(|most| most.currency() != currency) {
        let reason = format!("Max-Price is not in {currency}, the currency of the offers");
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    let max_latency = latency.read::<LatencyBound, _>(str::parse, "200ms or 200ms;p=50")?;
    let min_reliability = reliability.read(Ratio::from_document, "99.9%")?;
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
    for (name, is_present) in TERMS.iter().zip(present) {
        if is_present {
            headers.remove(name);
        }
    }
}

/// A field and its lines in a request.
#[derive(Clone, Copy)]
struct TermField<'h> {
    name: &'static HeaderName,
    first: Option<&'h HeaderValue>,
    has_more: bool,
}

/// Finds the fields with terms, in the order of [`TERMS`]. One pass costs less than a look-up for each.
fn find(headers: &HeaderMap) -> [TermField<'_>; TERMS.len()] {
    let mut found = TERMS.each_ref().map(|name| TermField {
        name,
        first: None,
        has_more: false,
    });
    for (name, value) in headers {
        if let Some(field) = found.iter_mut().find(|field| field.name == name) {
            field.has_more = field.first.is_some();
            field.first.get_or_insert(value);
        }
    }
    found
}

impl TermField<'_> {
    /// Reads a field of one line.
    fn read<T, E>(
        self,
        parse: impl Fn(&str) -> Result<T, E>,
        example: &str,
    ) -> Result<Option<T>, Rejection> {
        let Some(line) = self.first else {
            return Ok(None);
        };
        let value = line.to_str().ok().and_then(|text| parse(text.trim()).ok());
        match value {
            Some(value) if !self.has_more => Ok(Some(value)),
            _ => {
                let name = self.name;
                let reason =
                    format!("{name} cannot be read: send one line, such as {name}: {example}");
                Err(Rejection::new(StatusCode::BAD_REQUEST, reason))
            }
        }
    }
}
