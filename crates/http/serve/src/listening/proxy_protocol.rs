//! The header of the PROXY protocol, versions 1 and 2: the address of a client, as stated by a load balancer.
//!
//! Source: "The PROXY protocol, versions 1 & 2", HAProxy, `doc/proxy-protocol.txt`; sections 2 (recognition), 2.1
//! (version 1) and 2.2 (version 2). [`parse`] is pure. It decides at the first wrong byte, so a reader never waits for
//! the rest of something else, and while it asks for more, all bytes so far belong to the header.
//!
//! Stricter than the specification where two readers could differ: numbers have digits only, one blank separates two
//! fields, and a carriage return is followed by a line feed. Not read: destinations (only their form is checked in
//! version 1), names of Unix sockets, and type-length-value vectors (only their lengths are checked).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// Maximum length of a header of version 1, with the end of the line (section 2.1).
pub const MAX_LINE: usize = 107;

/// Length of the fixed part of version 2 (section 2.2).
const FIXED: usize = 16;

/// Maximum bytes of addresses and type-length-value vectors in version 2. The length field allows 65,535.
const MAX_REST: usize = 4096;

/// Maximum length of a header of either version.
pub const MAX_LENGTH: usize = FIXED + MAX_REST;

/// First bytes of version 1.
const LINE_START: &[u8] = b"PROXY ";

/// First bytes of version 2 (section 2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// A complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the header. The connection's own bytes follow.
    pub length: usize,
    /// Address of the client. `None` if the sender speaks for itself (LOCAL) or does not know the client's address
    /// (UNKNOWN, UNSPEC, datagrams, Unix sockets): the address of the socket counts then.
    pub source: Option<SocketAddr>,
}

/// Bytes that begin no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The first bytes are those of neither version.
    #[error("no header of the PROXY protocol")]
    Start,
    /// A line of version 1 with other than its fields.
    #[error("an invalid line of the PROXY protocol, version 1")]
    Line,
    /// A line of version 1 without an end.
    #[error("a line of the PROXY protocol, version 1, of more than 107 bytes")]
    LongLine,
    /// An unknown version, command, family or transport.
    #[error(
        "an unknown version, command, family or transport in a header of the PROXY protocol, version 2"
    )]
    Kind,
    /// The length is less than that of the addresses of the family.
    #[error("a header of the PROXY protocol, version 2, that is too short for its addresses")]
    Short,
    /// The last type-length-value vector does not end with the header.
    #[error(
        "a header of the PROXY protocol, version 2, with a vector that is longer than the header"
    )]
    Vector,
    /// Too many type-length-value vectors.
    #[error(
        "a header of the PROXY protocol, version 2, with more than 4096 bytes of addresses and vectors"
    )]
    Long,
}

/// Parses the header at the start of `bytes`. `None` if it is incomplete: then all of `bytes` belongs to the header.
///
/// Bytes after the header have no effect.
pub fn parse(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
    let header = if begins(bytes, LINE_START) {
        parse_line(bytes)?
    } else if begins(bytes, SIGNATURE) {
        parse_binary(bytes)?
    } else {
        return Err(Malformed::Start);
    };
    debug_assert!(
        header.is_none_or(|header| header.length <= bytes.len().min(MAX_LENGTH)),
        "a header ends within its bytes"
    );
    Ok(header)
}

/// True if `bytes` begins with `start`, or is the beginning of it.
fn begins(bytes: &[u8], start: &[u8]) -> bool {
    let length = bytes.len().min(start.len());
    bytes[..length] == start[..length]
}

/// Version 1 (section 2.1).
fn parse_line(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
    let line = &bytes[..bytes.len().min(MAX_LINE)];
    let Some(end) = line.iter().position(|byte| !matches!(byte, b' '..=b'~')) else {
        return match line.len() {
            MAX_LINE => Err(Malformed::LongLine),
            _ => Ok(None),
        };
    };
    match line[end..] {
        [b'\r', b'\n', ..] => {}
        [b'\r'] if line.len() < MAX_LINE => return Ok(None),
        _ => return Err(Malformed::Line),
    }
    // All bytes are ASCII. A line that ends within its first word is invalid, too.
    let text = line.get(LINE_START.len()..end).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| Malformed::Line)?;
    Ok(Some(Header {
        length: end + 2,
        source: source_of(text).ok_or(Malformed::Line)?,
    }))
}

/// The source stated by the text after `PROXY `. The outer `None` is an invalid text.
fn source_of(text: &str) -> Option<Option<SocketAddr>> {
    let (protocol, rest) = text.split_once(' ').unwrap_or((text, ""));
    let of_family: fn(&str) -> Option<IpAddr> = match protocol {
        "TCP4" => |text| text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => |text| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        // The rest of the line is ignored.
        "UNKNOWN" => return Some(None),
        _ => return None,
    };
    let mut fields = rest.split(' ');
    let (source, destination) = (of_family(fields.next()?)?, of_family(fields.next()?));
    let (port, destination_port) = (port(fields.next()?)?, port(fields.next()?));
    let is_whole = destination.is_some() && destination_port.is_some() && fields.next().is_none();
    is_whole.then(|| Some((source, port).into()))
}

/// A decimal port without leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = text.len() == 1 || !text.starts_with('0');
    text.parse().ok().filter(|_| is_decimal && is_plain)
}

/// Version 2 (section 2.2).
fn parse_binary(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
    let kind = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    let is_local = match kind.first() {
        None => return Ok(None),
        Some(0x20) => true,
        Some(0x21) => false,
        Some(_) => return Err(Malformed::Kind),
    };
    // For LOCAL, family and addresses are ignored.
    let of_addresses = match kind.get(1) {
        None => return Ok(None),
        _ if is_local => 0,
        Some(0x00..=0x02) => 0,
        Some(0x10..=0x12) => 12,
        Some(0x20..=0x22) => 36,
        Some(0x30..=0x32) => 216,
        Some(_) => return Err(Malformed::Kind),
    };
    let Some(&[_, family, high, low]) = kind.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_REST {
        return Err(Malformed::Long);
    }
    if length < of_addresses {
        return Err(Malformed::Short);
    }
    let Some(rest) = bytes.get(FIXED..FIXED + length) else {
        return Ok(None);
    };
    // Without addresses, nothing states where vectors begin.
    if of_addresses > 0 && !are_vectors(&rest[of_addresses..]) {
        return Err(Malformed::Vector);
    }
    let source = match family {
        0x11 if !is_local => address::<4, 8>(rest),
        0x21 if !is_local => address::<16, 32>(rest),
        _ => None,
    };
    Ok(Some(Header {
        length: FIXED + length,
        source,
    }))
}

/// True if `bytes` are whole type-length-value vectors (section 2.2.1).
fn are_vectors(mut bytes: &[u8]) -> bool {
    while let [_, high, low, values @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(next) = values.get(length..) else {
            return false;
        };
        bytes = next;
    }
    bytes.is_empty()
}

/// The source of `rest`: its address of `N` bytes, and its port behind both addresses.
fn address<const N: usize, const PORTS: usize>(rest: &[u8]) -> Option<SocketAddr>
where
    [u8; N]: Into<IpAddr>,
{
    let ip: [u8; N] = *rest.first_chunk()?;
    let port: [u8; 2] = *rest.get(PORTS..)?.first_chunk()?;
    Some(SocketAddr::new(ip.into(), u16::from_be_bytes(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 2.
    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn source(text: &str) -> Option<SocketAddr> {
        Some(text.parse().unwrap())
    }

    /// Checks the source, that every shorter beginning is incomplete and that more bytes change nothing.
    fn assert_header(bytes: &[u8], source: Option<SocketAddr>) {
        let whole = Ok(Some(Header {
            length: bytes.len(),
            source,
        }));
        assert_eq!(parse(bytes), whole, "{}", bytes.escape_ascii());
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Ok(None), "{}", bytes.escape_ascii());
        }
        for more in [&b"\r"[..], b"GET / HTTP/1.1\r\n", &bytes[..9]] {
            assert_eq!(parse(&[bytes, more].concat()), whole);
        }
    }

    #[test]
    fn a_line_states_the_client() {
        for (line, stated) in [
            ("TCP4 192.0.2.7 10.0.0.1 4711 443", source("192.0.2.7:4711")),
            (
                "TCP4 255.255.255.255 0.0.0.0 65535 0",
                source("255.255.255.255:65535"),
            ),
            ("TCP6 2001:DB8::7 ::1 0 443", source("[2001:db8::7]:0")),
            (
                "TCP6 ::ffff:192.0.2.7 ::1 80 443",
                source("[::ffff:192.0.2.7]:80"),
            ),
            ("UNKNOWN", None),
            ("UNKNOWN ffff:f...f:ffff 65535 65535", None),
        ] {
            assert_header(format!("PROXY {line}\r\n").as_bytes(), stated);
        }
    }

    #[test]
    fn a_line_has_its_exact_form() {
        for line in [
            "TCP4 192.0.2.7 10.0.0.1 4711 443 ",
            "TCP4  192.0.2.7 10.0.0.1 4711 443",
            "TCP4 192.0.2.7 10.0.0.1 4711",
            "TCP4 192.0.2.7 10.0.0.1 4711 443 1",
            "TCP4 192.0.2.7 10.0.0.1 +4711 443",
            "TCP4 192.0.2.7 10.0.0.1 04711 443",
            "TCP4 192.0.2.7 10.0.0.1 4711 00",
            "TCP4 192.0.2.7 10.0.0.1 65536 443",
            "TCP4 192.0.2.7 10.0.0.1 4711 ",
            "TCP4 192.0.2.07 10.0.0.1 4711 443",
            "TCP4 192.0.2.7 10.0.1 4711 443",
            "TCP4 2001:db8::7 ::1 4711 443",
            "TCP6 192.0.2.7 10.0.0.1 4711 443",
            "TCP6 [2001:db8::7] ::1 4711 443",
            "TCP6 fe80::1%eth0 ::1 4711 443",
            "TCP4\t192.0.2.7 10.0.0.1 4711 443",
            "tcp4 192.0.2.7 10.0.0.1 4711 443",
            "TCP4",
            "",
            "UDP4 192.0.2.7 10.0.0.1 4711 443",
            "UNKNOWN\0",
        ] {
            let bytes = format!("PROXY {line}\r\n");
            assert_eq!(parse(bytes.as_bytes()), Err(Malformed::Line), "{line:?}");
        }
        for bytes in ["PROXY UNKNOWN\n", "PROXY UNKNOWN\rX", "PROXY UNKNOWN\r\r\n"] {
            assert_eq!(parse(bytes.as_bytes()), Err(Malformed::Line), "{bytes:?}");
        }
    }

    #[test]
    fn a_line_is_bounded() {
        let line = |length: usize| format!("PROXY UNKNOWN {}\r\n", "x".repeat(length - 16));
        assert_header(line(MAX_LINE).as_bytes(), None);
        let error = parse(line(MAX_LINE + 1).as_bytes());
        assert!(error.is_err(), "{error:?}");
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(MAX_LINE));
        assert_eq!(parse(endless.as_bytes()), Err(Malformed::LongLine));
    }

    #[test]
    fn other_bytes_are_no_header_from_their_first_one() {
        for bytes in [
            &b"G"[..],
            b"POST / HTTP/1.1\r\n",
            b"PROXY\t",
            b"PROXY\r\n",
            b"proxy UNKNOWN\r\n",
            b"\r\n\r\n\r",
            b"\x16\x03\x01",
        ] {
            assert_eq!(
                parse(bytes),
                Err(Malformed::Start),
                "{}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn a_binary_header_states_the_client() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 187];
        assert_header(&binary(0x21, 0x11, &v4), source("192.0.2.7:4711"));
        let vectors = [&v4[..], &[4, 0, 99], &[0; 99], &[4, 0, 0]].concat();
        assert_header(&binary(0x21, 0x11, &vectors), source("192.0.2.7:4711"));
        let [from, to] =
            ["2001:db8::7", "::1"].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        let v6 = [&from[..], &to, &[0x12, 0x67, 1, 187]].concat();
        assert_header(&binary(0x21, 0x21, &v6), source("[2001:db8::7]:4711"));
        assert_header(&binary(0x21, 0x31, &[b'x'; 216]), None);
        assert_header(&binary(0x21, 0x12, &v4), None);
        assert_header(&binary(0x21, 0x00, &v4), None);
        for family in [0x00, 0x11, 0x21, 0xff] {
            assert_header(&binary(0x20, family, &v4), None);
            assert_header(&binary(0x20, family, &[]), None);
        }
        assert_header(&binary(0x20, 0, &[0; MAX_REST]), None);
    }

    #[test]
    fn invalid_binary_headers_are_refused_by_kind_and_length() {
        let rest = [0; 216];
        for (command, family, length, error) in [
            (0x11, 0x11, 12, Malformed::Kind),
            (0x31, 0x11, 12, Malformed::Kind),
            (0x22, 0x11, 12, Malformed::Kind),
            (0x21, 0x41, 12, Malformed::Kind),
            (0x21, 0x13, 12, Malformed::Kind),
            (0x21, 0x11, 11, Malformed::Short),
            (0x21, 0x21, 35, Malformed::Short),
            (0x21, 0x31, 215, Malformed::Short),
            (0x21, 0x11, 13, Malformed::Vector),
            (0x21, 0x21, 38, Malformed::Vector),
        ] {
            let bytes = binary(command, family, &rest[..length]);
            assert_eq!(parse(&bytes), Err(error), "{command:x} {family:x} {length}");
        }
        let with = |vectors: &[u8]| parse(&binary(0x21, 0x11, &[&rest[..12], vectors].concat()));
        assert_eq!(with(&[4, 0, 2, 0]), Err(Malformed::Vector));
        assert_eq!(with(&[4, 0, 1, 0, 4, 1, 0, 0]), Err(Malformed::Vector));
        let long = binary(0x20, 0, &[0; MAX_REST + 1]);
        assert_eq!(parse(&long[..FIXED]), Err(Malformed::Long));
    }
}
