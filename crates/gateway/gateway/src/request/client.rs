//! The client of a request, and the forwarding fields about it.
//!
//! A proxy in `trust.forwarded` is believed about its client, and that client in turn if it is such a proxy. The client
//! is the first sender on this way, from the nearest on, that is not one. From all others, forwarding fields and those
//! with a client's certificate are removed: anyone can write them.
//!
//! A proxy that writes `X-Forwarded-For` or `Forwarded` usually forwards the other as its client sent it. If both name a
//! client, `X-Forwarded-For` counts, which most proxies write; `trust.field` names the one to read. Of a field that names
//! no client, nothing follows, and the proxy that sent it is never taken for the client: a client could choose to be it.

use std::net::IpAddr;

use hyper::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};
use posthaste_gateway_config::{ForwardingField, Trust};
use posthaste_http::fields::forwarded::{Sender, Senders, forwarded, forwarded_for};
use posthaste_serve::{Networks, Peer};

use super::field_names::{is_about_client, is_of_certificate};
use super::headers::field_lines;
use crate::client_address::ClientAddress;
use crate::record::metrics::{GatewayMetrics, UnreadField};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    pub(crate) address: ClientAddress,
    /// The peer's statements about its client are believed.
    pub(crate) is_trusted: bool,
    /// The request has an `X-Forwarded-For` that can be extended.
    extends_for: bool,
    /// The request has a `Forwarded` that can be extended.
    extends_forwarded: bool,
}

impl ClientIdentity {
    /// Finds the client of a request of `peer`. Counts fields in which something could not be read.
    pub(crate) fn read(
        headers: &HeaderMap,
        peer: &Peer,
        trust: &Trust,
        metrics: &GatewayMetrics,
    ) -> Self {
        let peer = peer.address.ip().to_canonical();
        let trusted = &trust.forwarded;
        if trusted.is_empty() || !trusted.contains(peer) {
            return Self::of_peer(peer);
        }
        let (found, unread) = Self::behind(peer, headers, trust);
        for field in unread.into_iter().flatten() {
            metrics.unread(field);
        }
        found
    }

    const fn of_peer(peer: IpAddr) -> Self {
        Self {
            address: ClientAddress::Known(peer),
            is_trusted: false,
            extends_for: false,
            extends_forwarded: false,
        }
    }

    /// Finds the client behind a trusted peer. Returns it with the fields in which something was unreadable or not
    /// believed.
    fn behind(
        peer: IpAddr,
        headers: &HeaderMap,
        trust: &Trust,
    ) -> (Self, [Option<UnreadField>; 2]) {
        let read_for = trust.field != Some(ForwardingField::Forwarded);
        let read_forwarded = trust.field != Some(ForwardingField::ForwardedFor);
        let by_for = forwarded_for(field_lines(headers, FORWARDED_FOR).filter(|_| read_for));
        let by_forwarded = forwarded(field_lines(headers, FORWARDED).filter(|_| read_forwarded));
        let [named_for, named_forwarded] =
            [&by_for, &by_forwarded].map(|senders| first_untrusted(senders, &trust.forwarded));
        let is_absent = |senders: &Senders| !senders.is_cut && senders.nearest.is_empty();
        let address = match named_for.or(named_forwarded) {
            Some(named) => ClientAddress::Known(named),
            None if is_absent(&by_for) && is_absent(&by_forwarded) => ClientAddress::Known(peer),
            None => ClientAddress::Unknown,
        };
        let is_believed = |named: Option<IpAddr>| named.map(ClientAddress::Known) == Some(address);
        let extends_for = is_believed(named_for) && !by_for.is_cut;
        let extends_forwarded = is_believed(named_forwarded) && !by_forwarded.is_cut;
        let differs = named_forwarded.is_some() && !is_believed(named_forwarded);
        let unread = [
            by_for.is_cut.then_some(UnreadField::ForwardedFor),
            (by_forwarded.is_cut || differs).then_some(UnreadField::Forwarded),
        ];
        let found = Self {
            address,
            is_trusted: true,
            extends_for,
            extends_forwarded,
        };
        (found, unread)
    }

    /// True if a field of the request is not to be forwarded, because the peer is not trusted or may have left it to
    /// its own client: proxies write these fields with hyphens and may pass others.
    pub(crate) fn drops(&self, name: &HeaderName) -> bool {
        (is_about_client(name) || is_of_certificate(name))
            && (!self.is_trusted || name.as_str().contains('_'))
    }

    /// Writes the forwarding fields: addresses, scheme and host. Those that are not believed have been removed, except
    /// unreadable ones of a trusted peer.
    pub(crate) fn write_fields(&self, headers: &mut HeaderMap, peer: &Peer) {
        let is_https = peer.is_encrypted();
        let proto = if is_https { HTTPS } else { HTTP };
        if !self.is_trusted {
            headers.insert(FORWARDED_FOR, peer.ip().clone());
            headers.insert(FORWARDED_PROTO, proto);
            if let Some(host) = headers.get(HOST).cloned() {
                headers.insert(FORWARDED_HOST, host);
            }
            return;
        }
        // Fields on several lines form one list: earlier entries stay.
        if self.extends_for {
            headers.append(FORWARDED_FOR, peer.ip().clone());
        } else {
            headers.insert(FORWARDED_FOR, self.chain(peer));
        }
        if self.extends_forwarded {
            headers.append(FORWARDED, element(peer, is_https));
        } else {
            headers.remove(FORWARDED);
        }
        if !is_scheme(headers) {
            headers.insert(FORWARDED_PROTO, proto);
        }
        let is_single = headers.get_all(FORWARDED_HOST).iter().count() == 1;
        match headers.get(HOST).cloned() {
            Some(host) if !is_single => drop(headers.insert(FORWARDED_HOST, host)),
            None if !is_single => drop(headers.remove(FORWARDED_HOST)),
            _ => {}
        }
    }

    /// The client and the peer as a value of `X-Forwarded-For`, or the peer alone if it is the client.
    fn chain(&self, peer: &Peer) -> HeaderValue {
        if self.address == ClientAddress::Known(peer.address.ip().to_canonical()) {
            return peer.ip().clone();
        }
        let chain = format!("{}, {}", self.address, peer.address.ip());
        HeaderValue::try_from(chain).expect("addresses have no control characters")
    }
}

/// Returns the first of the senders, from the nearest on, that is not trusted. If all are, the most distant one. `None`
/// if there is none, or if the search ends before at a sender that is hidden or unreadable.
fn first_untrusted(senders: &Senders, trusted: &Networks) -> Option<IpAddr> {
    let mut last = None;
    for sender in &senders.nearest {
        let Sender::Address(address) = *sender else {
            return None;
        };
        if !trusted.contains(address) {
            return Some(address);
        }
        last = Some(address);
    }
    last.filter(|_| !senders.is_cut)
}

/// True if `X-Forwarded-Proto` is one scheme of HTTP.
fn is_scheme(headers: &HeaderMap) -> bool {
    let mut lines = field_lines(headers, FORWARDED_PROTO);
    let is_known = |line: &[u8]| matches!(line, b"http" | b"https");
    lines.next().is_some_and(is_known) && lines.next().is_none()
}

/// The element of `Forwarded` for this hop (RFC 7239, section 4).
fn element(peer: &Peer, is_https: bool) -> HeaderValue {
    let proto = if is_https { "https" } else { "http" };
    let element = match peer.address.ip() {
        IpAddr::V4(address) => format!("for={address};proto={proto}"),
        IpAddr::V6(address) => format!("for=\"[{address}]\";proto={proto}"),
    };
    HeaderValue::try_from(element).expect("addresses have no control characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client behind 10.0.0.1, and the number of unreadable fields. `10.0.0.0/8` is trusted, with `more` keys.
    fn client(more: &str, fields: &[(&str, &str)]) -> (String, usize) {
        let text = format!("forwarded = [\"10.0.0.0/8\"]\n{more}");
        let trust: Trust = posthaste_serve::read_config(&text).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let (found, unread) = ClientIdentity::behind([10, 0, 0, 1].into(), &headers, &trust);
        assert!(found.is_trusted);
        let unread = unread.into_iter().flatten().count();
        (found.address.to_string(), unread)
    }

    #[test]
    fn the_client_is_the_nearest_sender_that_is_not_trusted() {
        for (line, wanted, unread) in [
            ("192.0.2.1", "192.0.2.1", 0),
            ("198.51.100.1, 192.0.2.1", "192.0.2.1", 0),
            ("192.0.2.1, 10.0.0.2, 10.0.0.3", "192.0.2.1", 0),
            ("192.0.2.1, ::ffff:10.0.0.3", "192.0.2.1", 0),
            ("10.0.0.4, 10.0.0.3", "10.0.0.4", 0),
            ("x, 192.0.2.1", "192.0.2.1", 1),
            ("", "10.0.0.1", 0),
            // The proxy that sent these is not their client.
            ("192.0.2.1, unknown, 10.0.0.3", "unknown", 0),
            ("unknown", "unknown", 0),
            ("192.0.2.1, x, 10.0.0.3", "unknown", 1),
            ("x", "unknown", 1),
        ] {
            let wanted = (wanted.to_owned(), unread);
            assert_eq!(client("", &[("x-forwarded-for", line)]), wanted, "{line}");
        }
        let lines = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-for", "10.0.0.2"),
        ];
        assert_eq!(client("", &lines).0, "192.0.2.1");
        let line = "for=198.51.100.1, for=\"192.0.2.1:80\", for=10.0.0.2";
        assert_eq!(client("", &[("forwarded", line)]).0, "192.0.2.1");
        assert_eq!(client("", &[("forwarded", "for=_hidden")]).0, "unknown");
    }

    #[test]
    fn of_two_fields_x_forwarded_for_counts_unless_one_is_named() {
        for (by_for, by_forwarded, named, either, unread) in [
            ("192.0.2.1", "for=192.0.2.1", "192.0.2.1", "192.0.2.1", 0),
            ("192.0.2.1", "for=192.0.2.2", "192.0.2.1", "192.0.2.2", 1),
            ("192.0.2.1", "x", "192.0.2.1", "unknown", 1),
            ("192.0.2.1", "for=unknown", "192.0.2.1", "unknown", 0),
            ("192.0.2.1", "for=10.0.0.1", "192.0.2.1", "10.0.0.1", 1),
            ("x", "for=192.0.2.2", "192.0.2.2", "192.0.2.2", 1),
            ("unknown", "for=192.0.2.2", "192.0.2.2", "192.0.2.2", 0),
            ("x", "x", "unknown", "unknown", 2),
        ] {
            let both = [("x-forwarded-for", by_for), ("forwarded", by_forwarded)];
            let wanted = (named.to_owned(), unread);
            assert_eq!(client("", &both), wanted, "{both:?}");
            let only = client("field = \"forwarded\"", &both).0;
            assert_eq!(only, either, "{both:?}");
        }
        let spoofed = [("x-forwarded-for", "x"), ("forwarded", "for=192.0.2.2")];
        let only = client("field = \"x-forwarded-for\"", &spoofed).0;
        assert_eq!(only, "unknown");
    }
}
