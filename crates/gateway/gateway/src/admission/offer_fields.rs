//! The fields of a request that concern offers.

use std::borrow::Cow;

use hyper::HeaderMap;
use hyper::http::request::Parts;
use posthaste_admission::{Ask, Payer};
use posthaste_compression::Codings;
use posthaste_gateway_config::Protection;
use posthaste_qos::Money;

use crate::request::client::ClientIdentity;
use crate::request::preferences::Preferences;

/// The selected offer, by its name at the broker.
const SELECTED: &str = "selected-offer";
/// The maximum price: `0.40 EUR`.
const MOST: &str = "max-price";
/// The quote: the token from an earlier reply.
const QUOTE: &str = "quote";
/// The desired rate of the quote, per second: `5`.
const RATE: &str = "quote-rate";

/// The fields as read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfferFields<'a> {
    selected: Option<&'a str>,
    most: Option<Money>,
    token: Option<&'a str>,
    rate: Option<f64>,
    /// The client leaves compression to the gateway.
    pub(super) is_open: bool,
}

impl<'a> OfferFields<'a> {
    /// Reads the fields. Unreadable values count as absent; a rejection that follows says what to send. The field takes
    /// precedence over an offer selected in the SOAP header.
    pub(super) fn read(
        headers: &'a HeaderMap,
        preferences: &'a Preferences,
        offered: Codings,
    ) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        Self {
            selected: text(SELECTED).or(preferences.selected.as_deref()),
            most: text(MOST).and_then(|text| text.parse().ok()),
            token: text(QUOTE),
            rate: text(RATE).and_then(|text| text.parse().ok()),
            is_open: preferences.is_open(offered),
        }
    }

    /// Builds the request to the market.
    pub(super) const fn request<'b>(
        &'b self,
        client: &'b str,
        payer: Payer,
        unquoted: bool,
    ) -> Ask<'b> {
        Ask {
            client,
            selected: self.selected,
            most: self.most,
            token: self.token,
            rate: self.rate,
            open: self.is_open,
            unquoted,
            payer,
        }
    }
}

/// Removes the payment fields, so that the upstream does not see them.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in [SELECTED, MOST, QUOTE, RATE] {
        headers.remove(name);
    }
}

/// Returns the client's name: the configured field, if a trusted peer sent one line of it, else the address. Of several
/// lines, some may be the client's own.
pub(super) fn client<'a>(
    head: &'a Parts,
    identity: &ClientIdentity,
    config: &Protection,
) -> Cow<'a, str> {
    let field = config.client.as_deref().filter(|_| identity.is_trusted);
    let named = field.and_then(|field| {
        let mut lines = head.headers.get_all(field).iter();
        let (only, more) = (lines.next()?.to_str().ok()?, lines.next());
        (more.is_none() && !only.is_empty()).then_some(only)
    });
    match named {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(identity.address.name(config.ipv6_prefix)),
    }
}

/// Formats a price for a field: `0.40 EUR`.
pub(super) fn price_text(money: Money) -> String {
    format!("{} {}", money.amount(), money.currency())
}
