//! What a request says of offers, in its head.

use std::borrow::Cow;

use hyper::HeaderMap;
use hyper::http::request::Parts;
use posthaste_serve::Peer;
use posthaste_wsqos::market::Ask;
use posthaste_wsqos::qos::Money;

use crate::preference::Wishes;
use crate::site::Route;

/// The offer that the client has selected, as the broker names it.
const SELECTED: &str = "selected-offer";
/// The most that it pays: `0.40 EUR`.
const MOST: &str = "max-price";
/// Its quote: the token that came with an earlier reply.
const QUOTE: &str = "quote";
/// The rate of the quote that it would like, per second: `5`.
const RATE: &str = "quote-rate";

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    selected: Option<&'a str>,
    most: Option<Money>,
    token: Option<&'a str>,
    rate: Option<f64>,
    /// It leaves compression to the gateway.
    pub(super) open: bool,
}

impl<'a> Asked<'a> {
    /// What cannot be read counts as not said: the refusal that may follow says what to say.
    /// Whose SOAP header selects an offer need not say so in a field.
    pub(super) fn read(headers: &'a HeaderMap, wishes: &'a Wishes, route: &Route) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        Self {
            selected: text(SELECTED).or(wishes.selected.as_deref()),
            most: text(MOST).and_then(|text| text.parse().ok()),
            token: text(QUOTE),
            rate: text(RATE).and_then(|text| text.parse().ok()),
            open: wishes.is_open(route.menu.codings()),
        }
    }

    /// The question that follows.
    pub(super) const fn of<'b>(&'b self, client: &'b str) -> Ask<'b> {
        Ask {
            client,
            selected: self.selected,
            most: self.most,
            token: self.token,
            rate: self.rate,
            open: self.open,
        }
    }
}

/// What a request pays and with what is the gateway's business: an upstream does not see it.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in [SELECTED, MOST, QUOTE, RATE] {
        headers.remove(name);
    }
}

/// Who sends a request: what the field says that is trusted, else the address.
pub(super) fn client<'a>(head: &'a Parts, peer: &Peer, field: Option<&str>) -> Cow<'a, str> {
    let named = field.and_then(|field| head.headers.get(field)?.to_str().ok());
    match named {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(peer.address.ip().to_string()),
    }
}
