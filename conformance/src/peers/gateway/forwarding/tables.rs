//! Parts of valid requests. [`forms`](super::forms) makes the products of them.
//!
//! Lines of fields are separated by LF. Their bytes are those on the wire of HTTP/1.1. For HTTP/2, names are in lower
//! case, and values are without white space around them.

/// Clients that can send a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SendingClients {
    Both,
    /// HTTP/2 has no such message, or no such spelling.
    Http1,
}

use SendingClients::{Both, Http1};

/// Host of the route that may compress, that of one that may not, and that of one with `rewrite`.
pub(super) const HOST: &str = "shop.example";
pub(super) const PLAIN_HOST: &str = "plain.example";
pub(super) const RENAMED_HOST: &str = "renamed.example";

/// Prefix of paths of [`RENAMED_HOST`], and its replacement.
pub(super) const RENAMED: (&str, &str) = ("/from", "/to/inner");

pub(super) const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "PROPFIND",
    "REPORT",
    "M-SEARCH",
    "QUERY",
    "get",
    "X!#$%&'*+.^_`|~9",
];

pub(super) const TARGETS: &[(SendingClients, &str)] = &[
    (Both, "/?"),
    (Both, "/a?"),
    (Both, "/a??"),
    (Both, "/a/"),
    (Both, "//a"),
    (Both, "/a//b"),
    (Both, "/a/./b"),
    (Both, "/a/../b"),
    (Both, "/%61"),
    (Both, "/%7Euser/~user"),
    (Both, "/%c3%a4/%C3%A4"),
    (Both, "/a%2Fb%2fc"),
    (Both, "/a%20b+c"),
    (Both, "/a%25%32%35"),
    (Both, "/%00"),
    (Both, "/a;b=c;d"),
    (Both, "/-._~!$&'()*+,;=:@"),
    (Both, "/a?b=c&b=c&&d"),
    (Both, "/a?b=%2F&c=/&d=?&e=%"),
    (Both, "/a?http://other.example/x"),
    (Both, "/a?b[]=1&c={}|^`\\"),
    (Http1, "http://shop.example/a?b"),
    (Http1, "http://shop.example/"),
    (Http1, "http://shop.example"),
];

pub(super) const RENAMED_TARGETS: &[&str] = &[
    "/from",
    "/from/",
    "/from?",
    "/from/a%2Fb?c=/from",
    "/from/a/",
];

pub(super) const FIELDS: &[(SendingClients, &[u8])] = &[
    // Order and case of names.
    (Http1, b"x-first: 1\nhost: shop.example\nx-last: 2"),
    (Http1, b"Host: shop.example\nX-Upper: 1"),
    (Http1, b"X-Case: a\nx-cASE: b"),
    (Both, b"z: 1\ny: 2\nx: 3\na: 4"),
    (Both, b"!#$%&'*+-.^_`|~09: 1"),
    (Both, b"x_name: 1\nx-name: 2"),
    // Repeated names and lists.
    (Both, b"a: 1\na: 2"),
    (Both, b"a: same\na: same"),
    (Both, b"a: 1\nb: 2\na: 3"),
    (Both, b"a: 1, 2\na: ,3,"),
    // Values.
    (Both, b"x-empty: "),
    (Both, b"a: 1\na: \na: 2"),
    (Http1, b"x-empty:\nx-next:1"),
    (Http1, b"x:  a\ny: b \nz:\tc\t"),
    (Both, b"x: a  b\tc"),
    (Both, b"x: \xc3\xa4\xe2\x82\xac"),
    (Both, b"x: \xe9\xff\x80"),
    (Both, b"x: \"a, \\\"b\\\"\"; c=:d:"),
    (Both, b"x: {\"a\": [1, 2]}"),
    // Cookies.
    (Both, b"cookie: a=b; c=d"),
    (Both, b"cookie: a=\"b c\";d=;e"),
    (Both, b"cookie: a=b\ncookie: c=d"),
    (Both, b"cookie: a=b\nx: y\ncookie: c=d; e=f"),
    // Negotiation.
    (Both, b"accept-encoding: gzip"),
    (Both, b"accept-encoding: br;q=1.0, gzip;q=0.8, *;q=0.1"),
    (Both, b"accept-encoding: gzip;q=0"),
    (Both, b"accept-encoding: "),
    (Both, b"accept-encoding: gzip\naccept-encoding: x-own"),
    (Both, b"accept: text/html;q=0.9,*/*\naccept-language: de, en;q=0.5\naccept-charset: utf-8"),
    (Both, b"prefer: compression=never\nsave-data: on"),
    (Both, b"priority: u=1, i"),
    (Both, b"te: trailers"),
    (Http1, b"te: trailers\nconnection: te"),
    (Http1, b"te: deflate;q=0.5, trailers\nconnection: TE"),
    // Conditions and ranges.
    (Both, b"if-none-match: \"x\""),
    (Both, b"if-none-match: *"),
    (Both, b"if-none-match: W/\"x\""),
    (Both, b"if-none-match: \"x\", W/\"y\"\nif-none-match: \"z\""),
    (Both, b"if-match: \"x\""),
    (Both, b"if-match: *"),
    (Both, b"if-match: W/\"x\", \"y\""),
    (Both, b"if-modified-since: Sat, 29 Oct 1994 19:43:31 GMT"),
    (Both, b"if-unmodified-since: yesterday"),
    (Both, b"range: bytes=0-9\nif-range: \"x\""),
    (Both, b"range: bytes=0-0,5-,-1"),
    (Both, b"range: lines=1-2\nif-range: W/\"x\""),
    // Credentials.
    (Both, b"authorization: Basic dXNlcjpwYXNz"),
    (Both, b"authorization: Bearer a.b-c_d~e+f/g=="),
    (Both, b"authorization: Digest username=\"u\", uri=\"/a\", qop=auth"),
    (Both, b"proxy-authorization: Basic dXNlcjpwYXNz"),
    // One hop.
    (Http1, b"connection: keep-alive"),
    (Http1, b"connection: close"),
    (Http1, b"connection: keep-alive, x-own\nx-own: 1\nx-other: 2"),
    (Http1, b"connection: x-own\na: 1\nx-own: 1\nb: 2\nc: 3"),
    (Http1, b"connection: host, via, x-own, traceparent\nvia: 1.1 a\nx-own: 1\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    (Http1, b"keep-alive: timeout=5\nconnection: keep-alive\nx: 1"),
    (Http1, b"proxy-connection: keep-alive\nx: 1"),
    // The way of the request.
    (Both, b"via: 1.1 other"),
    (Both, b"via: 2 a, 1.1 b\nvia: 1.0 c"),
    (Both, b"x-forwarded-for: 192.0.2.1"),
    (Both, b"x-forwarded-for: 192.0.2.1\nx-forwarded-proto: https\nx-forwarded-host: a.example"),
    (Both, b"x-forwarded-port: 443\nx-forwarded-prefix: /a\nx-real-ip: 192.0.2.1"),
    (Both, b"forwarded: for=192.0.2.1;proto=https"),
    (Both, b"client-cert: :AAAA:\nx: 1"),
    (Both, b"max-forwards: 5"),
    (Both, b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ntracestate: a=b,c=d\nbaggage: a=b"),
    // Others that the gateway reads, or other servers do.
    (Both, b"user-agent: a/1 (b; c) d/2\nreferer: http://a.example/?b\norigin: null"),
    (Both, b"cache-control: no-cache, no-transform\npragma: no-cache"),
    (Both, b"date: Sat, 29 Oct 1994 19:43:31 GMT\nfrom: a@b.example\nwarning: 199 - \"a\""),
    (Both, b"selected-offer: standard@0.30\nmax-price: 0.40 EUR\nquote: abc\nquote-rate: 5"),
    (Both, b"content-type: text/plain\ncontent-language: de\ncontent-location: /b"),
    (Both, b"content-digest: sha-256=:AAAA:\nsignature: a=:AAAA:\nsignature-input: a=()"),
    (Both, b"sec-fetch-mode: cors\nsec-websocket-key: AAAA\nupgrade-insecure-requests: 1"),
    (Both, b"soapaction: \"urn:a\"\ngrpc-timeout: 5S\nx-request-id: 1"),
    (Both, b"alt-used: a.example\nhttp2-settings: AAMAAABk\nearly-data: 1"),
];

/// Conditions on a route that compresses nothing.
pub(super) const PLAIN_FIELDS: &[&[u8]] = &[
    b"if-none-match: W/\"x\"",
    b"if-match: W/\"x\"",
    b"if-match: W/\"x\", \"y\"\nif-none-match: \"z\"",
];

/// A body: its description, the fields about it, and its bytes.
pub(super) type Content = (&'static str, &'static [u8], &'static [u8]);

/// `{"isbn":"9780131103627"}` with gzip (RFC 1952), and with deflate (RFC 1950).
const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xabV\xca,N\xcaS\xb2R\xb24\xb70046440632W\xaa\x05\0ol=\xd6\x18\0\0\0";
const DEFLATE: &[u8] = b"x\x9c\xabV\xca,N\xcaS\xb2R\xb24\xb70046440632W\xaa\x05\0Q\xdc\x06\x07";

/// `hello` with Brotli, as one uncompressed meta-block (RFC 7932).
const BROTLI: &[u8] = b"\x0b\x02\x80hello\x03";

/// `hello` with Zstandard, as one raw block (RFC 8878).
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello";

const SOAP: &[u8] =
    b"<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Header/><Body/></Envelope>";

/// [`SOAP`] with gzip.
const SOAP_GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xb3q\xcd+K\xcd\xc9/HU\xa8\xc8\xcd\xc9+\xb6U\xca())\xb0\xd2\xd7/N\xceH\xcdM,\xd6\x03\x8a\x16\xe7'\x16\xe8\xe5\x17\xa5\xeb\x83\x18\xfa\xa9P\xf5\xfaJv6\x1e\xa9\x89)\xa9E\xfav6N\xf9)\x95@J\x1ff\x98\x1d\0\x8az\xf3\xebW\0\0\0";

pub(super) const CONTENTS: &[Content] = &[
    ("nothing", b"", b""),
    ("nothing, with a type", b"content-type: text/plain", b""),
    ("one byte", b"", b"\0"),
    (
        "text",
        b"content-type: text/plain; charset=utf-8",
        b"h\xc3\xa9llo\n",
    ),
    (
        "other bytes",
        b"content-type: application/octet-stream",
        b"\x80\xff\r\n\0\r\r\n\n\x1f\x8b",
    ),
    (
        "text like a message",
        b"",
        b"0\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
    ),
    (
        "form",
        b"content-type: application/x-www-form-urlencoded",
        b"a=b&c=%20+",
    ),
    (
        "multipart",
        b"content-type: multipart/form-data; boundary=x",
        b"--x\r\n\r\na\r\n--x--\r\n",
    ),
    (
        "gzip",
        b"content-encoding: gzip\ncontent-type: application/json",
        GZIP,
    ),
    ("deflate", b"content-encoding: deflate", DEFLATE),
    ("br", b"content-encoding: br", BROTLI),
    ("zstd", b"content-encoding: zstd", ZSTD),
    ("unknown coding", b"content-encoding: x-own", b"hello"),
    ("identity", b"content-encoding: identity", b"hello"),
    ("empty coding", b"content-encoding: ", b"hello"),
    (
        "two codings",
        b"content-encoding: gzip\ncontent-encoding: br",
        BROTLI,
    ),
    ("text that states gzip", b"content-encoding: gzip", b"hello"),
    ("nothing that states gzip", b"content-encoding: gzip", b""),
    ("SOAP", b"content-type: text/xml", SOAP),
    (
        "SOAP, gzip",
        b"content-type: text/xml\ncontent-encoding: gzip",
        SOAP_GZIP,
    ),
    (
        "SOAP, text that states gzip",
        b"content-type: text/xml\ncontent-encoding: gzip",
        SOAP,
    ),
    (
        "SOAP, not XML",
        b"content-type: application/soap+xml",
        b"<Envelope><unfinished",
    ),
];

/// Trailers: the fields of the head, and the trailers.
pub(super) const TRAILERS: &[(&[u8], &[u8])] = &[
    (b"trailer: x-sum", b"x-sum: 1"),
    (b"trailer: x-sum, x-time", b"x-sum: 1\nx-time: 2"),
    (b"trailer: x-sum\ntrailer: x-time", b"x-time: 2\nx-sum: 1"),
    (b"trailer: x-sum", b"x-sum: 1\nx-sum: 2"),
    (b"trailer: X-Sum", b"X-Sum: 1"),
    (b"trailer: x-sum", b"x-sum: "),
    (b"trailer: x-sum", b"x-sum: \xe9"),
    (b"trailer: x-sum\nte: trailers", b"x-sum: 1"),
    (b"trailer: x-sum", b"x-sum: 1\nx-other: 2"),
    (b"", b"x-sum: 1"),
    (b"trailer: x-sum", b""),
    (
        b"trailer: grpc-status, grpc-message",
        b"grpc-status: 0\ngrpc-message: ",
    ),
    (
        b"trailer: authorization, cookie, x-sum",
        b"authorization: a\ncookie: a=b\nx-sum: 1",
    ),
    (
        b"trailer: content-type, x-sum",
        b"content-type: a/b\nx-sum: 1",
    ),
    (
        b"trailer: if-match, range, x-sum",
        b"if-match: \"a\"\nrange: bytes=0-\nx-sum: 1",
    ),
    (
        b"trailer: x-forwarded-for, forwarded, x-sum",
        b"x-forwarded-for: 192.0.2.1\nforwarded: for=a\nx-sum: 1",
    ),
    (
        b"trailer: client-cert, x-sum",
        b"client-cert: :AAAA:\nx-sum: 1",
    ),
    (
        b"trailer: content-digest",
        b"content-digest: sha-256=:AAAA:",
    ),
];
