//! Headers of the PROXY protocol: a header ends within its bytes, is incomplete before its end and does not depend on
//! what follows; a client that it states is written and read again the same in both versions.

use std::net::{IpAddr, SocketAddr};

use posthaste_serve::proxy_protocol::{Header, MAX_LENGTH, MAX_LINE, parse};

use crate::within;

/// Any bytes as the start of a connection.
pub fn proxy_protocol(bytes: &[u8]) {
    let parsed = within("proxy_protocol::parse", bytes.len(), 0, 0, || parse(bytes));
    let more = |bytes: &[u8]| parse(&[bytes, b"\r\nGET / HTTP/1.1\r\n"].concat());
    match parsed {
        Ok(Some(header)) => {
            assert!(header.length <= bytes.len().min(MAX_LENGTH));
            let own = &bytes[..header.length];
            if own[0] == b'P' {
                assert!(own.len() <= MAX_LINE && own.ends_with(b"\r\n"));
            }
            assert_eq!(parse(own), parsed);
            assert_eq!(more(own), parsed);
            all_are_incomplete(&own[..header.length - 1]);
            if let Some(source) = header.source {
                reads_back(source);
            }
        }
        Ok(None) => {
            assert!(bytes.len() < MAX_LENGTH);
            all_are_incomplete(bytes);
        }
        // No more bytes make a header of it.
        Err(_) => assert!(more(bytes).is_err()),
    }
}

/// Nothing decides before the last byte.
fn all_are_incomplete(bytes: &[u8]) {
    for end in 0..=bytes.len() {
        assert_eq!(parse(&bytes[..end]), Ok(None), "after {end} bytes");
    }
}

fn reads_back(source: SocketAddr) {
    for header in [line(source), binary(source)] {
        let expected = Header {
            length: header.len(),
            source: Some(source),
        };
        assert_eq!(
            parse(&header),
            Ok(Some(expected)),
            "{}",
            header.escape_ascii()
        );
    }
}

/// Version 1, section 2.1 of the specification.
fn line(source: SocketAddr) -> Vec<u8> {
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (ip, port) = (source.ip(), source.port());
    format!("PROXY {family} {ip} {ip} {port} 443\r\n").into_bytes()
}

/// Version 2, section 2.2 of the specification.
fn binary(source: SocketAddr) -> Vec<u8> {
    let (family, ip) = match source.ip() {
        IpAddr::V4(ip) => (0x11, ip.octets().to_vec()),
        IpAddr::V6(ip) => (0x21, ip.octets().to_vec()),
    };
    let length = u8::try_from(2 * ip.len() + 4).expect("two addresses are short");
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.extend([family, 0, length]);
    header.extend([&ip[..], &ip].concat());
    header.extend(source.port().to_be_bytes());
    header.extend([1, 187]);
    header
}
