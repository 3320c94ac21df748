//! Headers of the PROXY protocol to us, nginx and HAProxy: the client that the origin is told.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::comparison::{CaseReading, ComparedCase, FamilyRule, equal};
use super::each;
use super::origin::field;
use super::programs::{BALANCER, ComparedPrograms, exchange};
use crate::error::Outcome;

/// The specification, section 2.1: a receiver ignores the rest of the line.
const REST_IGNORED: &str = "HAProxy takes nothing behind UNKNOWN";

/// Section 2.2: a receiver may use the address of the socket.
const REAL_ADDRESS: &str = "HAProxy takes streams of IPv4 and IPv6 only";

/// Section 2.2.3: a receiver need not support checksums.
const CHECKSUM: &str = "HAProxy checks CRC32c";

/// Section 2.2: the length field allows 65,535 bytes.
const LONG: &str = "nginx 1.22 reads headers of at most 107 bytes";

pub(super) const RULE: FamilyRule = FamilyRule {
    controls: &[
        ("v1 TCP4", "192.0.2.7"),
        ("v1 TCP6", "2001:db8::7"),
        ("v1 UNKNOWN", "127.0.0.2"),
        ("v2 TCP4", "192.0.2.7"),
        ("v2 TCP6", "2001:db8::7"),
        ("v2 LOCAL", "127.0.0.2"),
        ("v2 with a vector", "192.0.2.7"),
    ],
    exceptions: &[
        ("v1 UNKNOWN with addresses", REST_IGNORED),
        ("v1 UNKNOWN with text", REST_IGNORED),
        ("v1 of 106 bytes", REST_IGNORED),
        ("v1 of 107 bytes", REST_IGNORED),
        ("v2 UNSPEC", REAL_ADDRESS),
        ("v2 UNSPEC with addresses", REAL_ADDRESS),
        ("v2 UNSPEC over a stream", REAL_ADDRESS),
        ("v2 IPv4, unspecified transport", REAL_ADDRESS),
        ("v2 IPv4, datagrams", REAL_ADDRESS),
        ("v2 IPv6, datagrams", REAL_ADDRESS),
        ("v2 Unix stream", REAL_ADDRESS),
        ("v2 Unix datagrams", REAL_ADDRESS),
        ("v2 vector with a wrong checksum", CHECKSUM),
        ("v2 vector of 1,000 bytes", LONG),
        ("v2 vector of 4,081 bytes", LONG),
    ],
    is_same: equal,
    is_permitted: equal,
};

/// First bytes of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// 192.0.2.7:4711 to 10.0.0.1:443.
const V4: &[u8] = &[192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 187];

/// Lines of version 1, without `PROXY ` at the start and the end of the line.
const LINES: &[(&str, &str)] = &[
    ("v1 TCP4", "TCP4 192.0.2.7 10.0.0.1 4711 443"),
    ("v1 TCP6", "TCP6 2001:db8::7 ::1 4711 443"),
    ("v1 TCP6, upper case", "TCP6 2001:DB8::7 ::1 4711 443"),
    ("v1 TCP6, mapped IPv4", "TCP6 ::ffff:192.0.2.7 ::1 4711 443"),
    ("v1 UNKNOWN", "UNKNOWN"),
    (
        "v1 UNKNOWN with addresses",
        "UNKNOWN 192.0.2.7 10.0.0.1 4711 443",
    ),
    ("v1 UNKNOWN with text", "UNKNOWN x"),
    ("v1 UNKNOWNX", "UNKNOWNX"),
    ("v1 port 0", "TCP4 192.0.2.7 10.0.0.1 0 443"),
    (
        "v1 leading zero in the address",
        "TCP4 192.0.2.07 10.0.0.1 4711 443",
    ),
    (
        "v1 leading zeros in the address",
        "TCP4 192.000.002.007 10.0.0.1 4711 443",
    ),
    (
        "v1 leading zero in the destination",
        "TCP4 192.0.2.7 10.0.0.01 4711 443",
    ),
    (
        "v1 leading zero in the port",
        "TCP4 192.0.2.7 10.0.0.1 04711 443",
    ),
    (
        "v1 leading zero in the destination's port",
        "TCP4 192.0.2.7 10.0.0.1 4711 0443",
    ),
    ("v1 port 65536", "TCP4 192.0.2.7 10.0.0.1 65536 443"),
    (
        "v1 destination's port 65536",
        "TCP4 192.0.2.7 10.0.0.1 4711 65536",
    ),
    (
        "v1 port 99999999999",
        "TCP4 192.0.2.7 10.0.0.1 99999999999 443",
    ),
    ("v1 signed port", "TCP4 192.0.2.7 10.0.0.1 +4711 443"),
    ("v1 negative port", "TCP4 192.0.2.7 10.0.0.1 -1 443"),
    ("v1 port with a letter", "TCP4 192.0.2.7 10.0.0.1 47x 443"),
    ("v1 no destination's port", "TCP4 192.0.2.7 10.0.0.1 4711"),
    ("v1 no ports", "TCP4 192.0.2.7 10.0.0.1"),
    ("v1 no destination", "TCP4 192.0.2.7"),
    ("v1 no addresses", "TCP4"),
    ("v1 empty", ""),
    ("v1 a field more", "TCP4 192.0.2.7 10.0.0.1 4711 443 x"),
    ("v1 blank at the end", "TCP4 192.0.2.7 10.0.0.1 4711 443 "),
    (
        "v1 two blanks before the address",
        "TCP4  192.0.2.7 10.0.0.1 4711 443",
    ),
    (
        "v1 two blanks before a port",
        "TCP4 192.0.2.7 10.0.0.1  4711 443",
    ),
    ("v1 tab", "TCP4\t192.0.2.7 10.0.0.1 4711 443"),
    ("v1 lower case", "tcp4 192.0.2.7 10.0.0.1 4711 443"),
    ("v1 IPv6 in TCP4", "TCP4 2001:db8::7 ::1 4711 443"),
    ("v1 IPv4 in TCP6", "TCP6 192.0.2.7 10.0.0.1 4711 443"),
    ("v1 mixed families", "TCP4 192.0.2.7 ::1 4711 443"),
    ("v1 brackets", "TCP6 [2001:db8::7] ::1 4711 443"),
    ("v1 zone", "TCP6 fe80::1%lo ::1 4711 443"),
    ("v1 no address", "TCP4 x 10.0.0.1 4711 443"),
    ("v1 octet 256", "TCP4 192.0.2.256 10.0.0.1 4711 443"),
    ("v1 three octets", "TCP4 192.0.7 10.0.0.1 4711 443"),
    (
        "v1 hexadecimal address",
        "TCP4 0xc0.0.2.7 10.0.0.1 4711 443",
    ),
    ("v1 UDP4", "UDP4 192.0.2.7 10.0.0.1 4711 443"),
    ("v1 NUL", "TCP4 192.0.2.7\0 10.0.0.1 4711 443"),
    ("v1 NUL in UNKNOWN", "UNKNOWN \0"),
];

/// Other headers, in whole.
const WHOLE: &[(&str, &[u8])] = &[
    ("none", b""),
    ("v1 LF only", b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\n"),
    ("v1 CR only", b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r"),
    ("v1 two CR", b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\r\n"),
    ("v1 UNKNOWN, LF only", b"PROXY UNKNOWN\n"),
    ("v1 lower case at the start", b"proxy TCP4 192.0.2.7 10.0.0.1 4711 443\r\n"),
    ("v1 two blanks at the start", b"PROXY  TCP4 192.0.2.7 10.0.0.1 4711 443\r\n"),
    ("v1 blank in front", b" PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n"),
    ("v1 CRLF in front", b"\r\nPROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n"),
    (
        "v1 twice",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\nPROXY TCP4 192.0.2.8 10.0.0.1 4711 443\r\n",
    ),
    (
        "v1, then v2",
        b"PROXY UNKNOWN\r\n\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x12\x67\x01\xbb",
    ),
];

/// Addresses and ports of IPv6; of IPv4 in IPv6 notation if `is_mapped`.
fn v6(is_mapped: bool) -> Vec<u8> {
    let source = if is_mapped {
        "::ffff:192.0.2.7"
    } else {
        "2001:db8::7"
    };
    let [from, to] = [source, "::1"].map(|text| {
        let address: Ipv6Addr = text.parse().expect("an address");
        address.octets()
    });
    [&from[..], &to, &[0x12, 0x67, 1, 187]].concat()
}

/// A header of version 2, whose length is `more` than that of `rest`.
fn header(command: u8, family: u8, more: i32, rest: &[u8]) -> Vec<u8> {
    let length = i32::try_from(rest.len()).expect("a short header") + more;
    let length = u16::try_from(length).expect("a short header");
    [SIGNATURE, &[command, family], &length.to_be_bytes(), rest].concat()
}

/// Headers of version 2 with correct lengths.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let unix = [b'x'; 216];
    vec![
        ("v2 TCP4", header(0x21, 0x11, 0, V4)),
        ("v2 TCP6", header(0x21, 0x21, 0, &v6(false))),
        ("v2 TCP6, mapped IPv4", header(0x21, 0x21, 0, &v6(true))),
        ("v2 LOCAL", header(0x20, 0x00, 0, &[])),
        ("v2 LOCAL with addresses", header(0x20, 0x11, 0, V4)),
        ("v2 LOCAL, family 4", header(0x20, 0x41, 0, V4)),
        ("v2 LOCAL, too short", header(0x20, 0x11, 0, &V4[..4])),
        (
            "v2 LOCAL with a vector",
            header(0x20, 0x00, 0, &[4, 0, 1, 0]),
        ),
        ("v2 UNSPEC", header(0x21, 0x00, 0, &[])),
        ("v2 UNSPEC with addresses", header(0x21, 0x00, 0, V4)),
        ("v2 UNSPEC over a stream", header(0x21, 0x01, 0, V4)),
        ("v2 IPv4, unspecified transport", header(0x21, 0x10, 0, V4)),
        ("v2 IPv4, datagrams", header(0x21, 0x12, 0, V4)),
        ("v2 IPv6, datagrams", header(0x21, 0x22, 0, &v6(false))),
        ("v2 Unix stream", header(0x21, 0x31, 0, &unix)),
        ("v2 Unix datagrams", header(0x21, 0x32, 0, &unix)),
        ("v2 Unix, too short", header(0x21, 0x31, 0, &unix[..100])),
        ("v2 version 1", header(0x11, 0x11, 0, V4)),
        ("v2 version 3", header(0x31, 0x11, 0, V4)),
        ("v2 command 2", header(0x22, 0x11, 0, V4)),
        ("v2 command 15", header(0x2f, 0x11, 0, V4)),
        ("v2 family 4", header(0x21, 0x41, 0, V4)),
        ("v2 transport 3", header(0x21, 0x13, 0, V4)),
    ]
}

/// Headers of version 2 with other lengths, vectors, and repetitions.
fn lengths() -> Vec<(&'static str, Vec<u8>)> {
    let with = |more: &[u8]| [V4, more].concat();
    let large = |length: u16| {
        let value = vec![0; usize::from(length)];
        [V4, &[0xea], &length.to_be_bytes(), &value].concat()
    };
    vec![
        ("v2 IPv4, length 0", header(0x21, 0x11, 0, &[])),
        ("v2 IPv4, too short", header(0x21, 0x11, 0, &V4[..11])),
        ("v2 IPv6 as long as IPv4", header(0x21, 0x21, 0, V4)),
        (
            "v2 IPv4, length less than the bytes",
            header(0x21, 0x11, -4, V4),
        ),
        (
            "v2 IPv4, length beyond the bytes",
            header(0x21, 0x11, 4000, V4),
        ),
        (
            "v2 with a vector",
            header(0x21, 0x11, 0, &with(&[4, 0, 1, 0])),
        ),
        (
            "v2 vector longer than the header",
            header(0x21, 0x11, 0, &with(&[4, 0, 9, 0])),
        ),
        ("v2 vector of one byte", header(0x21, 0x11, 0, &with(&[4]))),
        (
            "v2 vector with a wrong checksum",
            header(0x21, 0x11, 0, &with(&[3, 0, 4, 1, 2, 3, 4])),
        ),
        ("v2 vector of 64 bytes", header(0x21, 0x11, 0, &large(64))),
        (
            "v2 vector of 1,000 bytes",
            header(0x21, 0x11, 0, &large(1000)),
        ),
        (
            "v2 vector of 4,081 bytes",
            header(0x21, 0x11, 0, &large(4081)),
        ),
        (
            "v2 vector of 4,082 bytes",
            header(0x21, 0x11, 0, &large(4082)),
        ),
        (
            "v2 twice",
            [header(0x21, 0x11, 0, V4), header(0x21, 0x11, 0, V4)].concat(),
        ),
        (
            "v2, then v1",
            [&*header(0x20, 0, 0, &[]), b"PROXY UNKNOWN\r\n"].concat(),
        ),
        ("v2 signature with a wrong byte", {
            let mut wrong = header(0x21, 0x11, 0, V4);
            wrong[4] = 1;
            wrong
        }),
    ]
}

/// A header in front of a request.
struct HeaderCase {
    about: String,
    header: Vec<u8>,
}

fn cases() -> Vec<HeaderCase> {
    let case = |about: &str, header: Vec<u8>| HeaderCase {
        about: about.to_owned(),
        header,
    };
    let line = |text: &str| format!("PROXY {text}\r\n").into_bytes();
    let lines = LINES.iter().map(|(about, text)| case(about, line(text)));
    let whole = WHOLE
        .iter()
        .map(|(about, bytes)| case(about, bytes.to_vec()));
    let binary = kinds()
        .into_iter()
        .chain(lengths())
        .map(|(about, bytes)| case(about, bytes));
    let mut cases: Vec<_> = lines.chain(whole).chain(binary).collect();
    for length in [106, 107, 108, 200] {
        let text = format!("UNKNOWN {}", "x".repeat(length - 16));
        cases.push(case(&format!("v1 of {length} bytes"), line(&text)));
    }
    // Nothing may be taken for a header with the bytes of a request.
    for (about, header) in [
        ("v1 cut", &b"PROXY TCP4 192.0.2.7"[..]),
        ("v2 cut in the signature", &SIGNATURE[..6]),
        ("v2 cut behind the signature", SIGNATURE),
    ] {
        cases.push(case(about, header.to_vec()));
    }
    cases
}

/// Sends every case to every program.
pub(super) fn observe(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    each(&cases(), |number, case| {
        let read =
            |name: &str, address, stated| read(programs, case, number, name, address, stated);
        Ok(ComparedCase {
            about: case.about.clone(),
            ours: read(
                "posthaste",
                programs.gateway.proxy_header,
                "x-forwarded-for",
            )?,
            others: vec![
                (
                    "nginx",
                    read("nginx", programs.nginx.proxy_header, "x-client")?,
                ),
                (
                    "haproxy",
                    read("haproxy", programs.haproxy.proxy_header, "x-client")?,
                ),
            ],
        })
    })
}

/// Returns the client in the field `stated` of the request that reached the origin.
fn read(
    programs: &ComparedPrograms<'_>,
    case: &HeaderCase,
    number: usize,
    name: &str,
    address: SocketAddr,
    stated: &str,
) -> Outcome<CaseReading> {
    let path = format!("/proxy-header/{name}/{number}");
    let request = format!("GET {path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n");
    exchange(
        BALANCER,
        address,
        &[&case.header[..], request.as_bytes()].concat(),
    )?;
    let head = programs.origin.head(&path);
    Ok(head.map(|head| canonical(field(&head, stated).unwrap_or("no address"))))
}

/// One spelling for an address.
fn canonical(text: &str) -> String {
    let address = text.parse::<IpAddr>();
    address.map_or_else(
        |_| text.to_owned(),
        |address| address.to_canonical().to_string(),
    )
}
