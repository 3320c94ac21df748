//! The client of a request, and the forwarding fields about it.
//!
//! A proxy in `trust.forwarded` is believed about its client, and that client in turn if it is such a proxy. The client
//! is the first sender on this way, from the nearest on, that is not one. From all others, forwarding fields and those
//! with a client's certificate are removed: anyone can write them.
//!
//! `X-Forwarded-For` and `Forwarded` must lead to the same client if a request has both. A proxy that writes one of
//! them usually forwards the other as its client sent it, and nothing tells which one it wrote.

use std::net::IpAddr;

use hyper::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};
use posthaste_http_fields::forwarded::{Sender, Senders, forwarded, forwarded_for};
use posthaste_serve::{Networks, Peer};

use super::field_names::{is_about_client, is_of_certificate};
use super::headers::field_lines;
use crate::observe::metrics::{GatewayMetrics, UnreadField};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    /// Address of the client. An IPv4 address in IPv6 notation is given as IPv4.
    pub(crate) address: IpAddr,
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
        trusted: &Networks,
        metrics: &GatewayMetrics,
    ) -> Self {
        let peer = peer.address.ip().to_canonical();
        if trusted.is_empty() || !trusted.contains(peer) {
            return Self::of_peer(peer, false);
        }
        let (found, unread) = Self::behind(peer, headers, trusted);
        for field in unread.into_iter().flatten() {
            metrics.unread(field);
        }
        found
    }

    const fn of_peer(peer: IpAddr, is_trusted: bool) -> Self {
        Self {
            address: peer,
            is_trusted,
            extends_for: false,
            extends_forwarded: false,
        }
    }

    /// Finds the client behind a trusted peer. Returns it with the fields in which something was unreadable.
    fn behind(
        peer: IpAddr,
        headers: &HeaderMap,
        trusted: &Networks,
    ) -> (Self, [Option<UnreadField>; 2]) {
        let by_for = forwarded_for(field_lines(headers, FORWARDED_FOR));
        let by_forwarded = forwarded(field_lines(headers, FORWARDED));
        let unread = [
            by_for.is_cut.then_some(UnreadField::ForwardedFor),
            by_forwarded.is_cut.then_some(UnreadField::Forwarded),
        ];
        let is_present = |senders: &Senders| senders.is_cut || !senders.nearest.is_empty();
        let (has_for, has_forwarded) = (is_present(&by_for), is_present(&by_forwarded));
        let address = match has_for {
            true => first_untrusted(peer, &by_for, trusted),
            false => first_untrusted(peer, &by_forwarded, trusted),
        };
        if has_for && has_forwarded && address != first_untrusted(peer, &by_forwarded, trusted) {
            let unread = [
                Some(UnreadField::ForwardedFor),
                Some(UnreadField::Forwarded),
            ];
            return (Self::of_peer(peer, true), unread);
        }
        let found = Self {
            address,
            is_trusted: true,
            extends_for: has_for && !by_for.is_cut,
            extends_forwarded: has_forwarded && !by_forwarded.is_cut,
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
        match self.extends_forwarded {
            true => drop(headers.append(FORWARDED, element(peer, is_https))),
            false => drop(headers.remove(FORWARDED)),
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
        if self.address == peer.address.ip().to_canonical() {
            return peer.ip().clone();
        }
        let chain = format!("{}, {}", self.address, peer.address.ip());
        HeaderValue::try_from(chain).expect("addresses have no control characters")
    }
}

/// Returns the first of the peer and the senders, from the nearest on, that is not trusted; the last known one if all
/// are. A hidden sender ends the search.
fn first_untrusted(peer: IpAddr, senders: &Senders, trusted: &Networks) -> IpAddr {
    let mut first = peer;
    for sender in &senders.nearest {
        let Sender::Address(address) = *sender else {
            break;
        };
        first = address;
        if !trusted.contains(address) {
            break;
        }
    }
    first
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
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct TrustTable {
        trusted: Networks,
    }

    /// The client behind 10.0.0.1, and the number of unreadable fields. `10.0.0.0/8` is trusted.
    fn client(fields: &[(&str, &str)]) -> (String, usize) {
        let table: TrustTable = posthaste_serve::read_config("trusted = [\"10.0.0.0/8\"]").unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let (found, unread) =
            ClientIdentity::behind([10, 0, 0, 1].into(), &headers, &table.trusted);
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
            ("192.0.2.1, unknown, 10.0.0.3", "10.0.0.3", 0),
            ("unknown", "10.0.0.1", 0),
            ("192.0.2.1, x, 10.0.0.3", "10.0.0.3", 1),
            ("x, 192.0.2.1", "192.0.2.1", 1),
            ("x", "10.0.0.1", 1),
            ("", "10.0.0.1", 0),
        ] {
            let wanted = (wanted.to_owned(), unread);
            assert_eq!(client(&[("x-forwarded-for", line)]), wanted, "{line}");
        }
        let lines = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-for", "10.0.0.2"),
        ];
        assert_eq!(client(&lines).0, "192.0.2.1");
        let line = "for=198.51.100.1, for=\"192.0.2.1:80\", for=10.0.0.2";
        assert_eq!(client(&[("forwarded", line)]).0, "192.0.2.1");
    }

    #[test]
    fn fields_that_disagree_are_not_believed() {
        let both = |a, b| client(&[("x-forwarded-for", a), ("forwarded", b)]);
        let (peer, client) = ("10.0.0.1".to_owned(), "192.0.2.1".to_owned());
        assert_eq!(both("192.0.2.1", "for=192.0.2.1"), (client, 0));
        assert_eq!(both("192.0.2.1", "for=192.0.2.2"), (peer.clone(), 2));
        assert_eq!(both("192.0.2.1", "for=\""), (peer.clone(), 2));
        assert_eq!(both("x", "for=192.0.2.1"), (peer, 2));
    }
}
