//! Doubtful messages of HTTP/1 and HTTP/2: what readers are known to understand differently, and what they should not.
//!
//! The peer test sends each to this gateway and to other proxies and compares what reaches the server behind; the fuzz target
//! mixes their parts. Each is about one thing, the rest of it is as it should be. Standard library only: two workspaces
//! share this file.

/// A message, on a connection of its own.
#[derive(Clone, Debug)]
pub struct Doubtful {
    /// What is doubtful about it.
    pub about: String,
    /// What the client sends. Of HTTP/1 a request for [`FIRST`], and one for [`NEXT`] behind it.
    pub bytes: Vec<u8>,
    /// Whether it is HTTP/2.
    pub is_http2: bool,
}

/// The path of the doubtful request.
pub const FIRST: &str = "/first";

/// The path of the request behind it.
pub const NEXT: &str = "/next";

/// Request lines, each with the fields that it needs.
pub const LINES: &[&str] = &[
    "POST /first HTTP/1.1\r\nHost: s",
    "POST  /first HTTP/1.1\r\nHost: s",
    "POST /first HTTP/1.1 \r\nHost: s",
    "POST\t/first HTTP/1.1\r\nHost: s",
    " POST /first HTTP/1.1\r\nHost: s",
    "POST /first HTTP/1.1\nHost: s",
    "POST /first\r\nHost: s",
    "POST /first HTTP/1.2\r\nHost: s",
    "POST /first HTTP/2.0\r\nHost: s",
    "POST /first http/1.1\r\nHost: s",
    "POST /first HTTP/01.1\r\nHost: s",
    "POST /fi\x01rst HTTP/1.1\r\nHost: s",
    "POST /first#x HTTP/1.1\r\nHost: s",
    "POST first HTTP/1.1\r\nHost: s",
    "P(ST /first HTTP/1.1\r\nHost: s",
    "POST /first HTTP/1.1",
    "POST /first HTTP/1.1\r\nHost:",
    "POST /first HTTP/1.1\r\nHost: a..b",
    "POST /first HTTP/1.1\r\nHost: s\r\nHost: s",
    "POST /first HTTP/1.1\r\nHost: s\r\nHost: t",
    "POST /first HTTP/1.1\r\nHost: s/x",
    "POST /first HTTP/1.1\r\nHost: u@s",
    "POST /first HTTP/1.1\r\nHost: s:x",
    "POST /first HTTP/1.1\r\nHost: s t",
    "POST /first HTTP/1.1\r\nHost : s",
    "POST /first HTTP/1.1\r\n Host: s",
    "POST http://s/first HTTP/1.1",
    "POST http://s/first HTTP/1.1\r\nHost: s",
    "POST http://s/first HTTP/1.1\r\nHost: t",
    "POST http://u@s/first HTTP/1.1\r\nHost: s",
];

/// Fields that say where a body of `hello` ends, or other fields beside a length that is right.
pub const FIELDS: &[&str] = &[
    "Content-Length: 5",
    "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 6\r\nContent-Length: 5",
    "Content-Length: 5, 5",
    "Content-Length: 5, 6",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 5.0",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length: 5;",
    "Content-Length: \"5\"",
    "Content-Length:",
    "Content-Length: 99999999999999999999",
    "Content-Length: 18446744073709551621",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Content-Length\x0b: 5",
    "Content-Length:\x0b5",
    "Content-Length:\x0c5",
    " Content-Length: 5",
    "X: y\r\n Content-Length: 5",
    "X: y\r\n\tz\r\nContent-Length: 5",
    "X: a\rContent-Length: 5",
    "X: a\x00b\r\nContent-Length: 5",
    "X: a\x01b\r\nContent-Length: 5",
    "X: a\x7fb\r\nContent-Length: 5",
    "X y\r\nContent-Length: 5",
    "X(: y\r\nContent-Length: 5",
    ": y\r\nContent-Length: 5",
    "X: y\nContent-Length: 5",
    "Expect: magic\r\nContent-Length: 5",
    "Connection: host\r\nContent-Length: 5",
    "Connection: content-length\r\nContent-Length: 5",
];

/// Transfer-Encoding for a body of chunks.
pub const CODINGS: &[&str] = &[
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 5\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6",
    "Transfer-Encoding: chunked\r\nContent-Length: x",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: x, chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;a=b",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding",
    "Transfer-Encoding:",
    "Transfer-Encoding:\r\n chunked",
    "X: y\rTransfer-Encoding: chunked",
];

/// Bodies of chunks.
pub const CHUNKS: &[&str] = &[
    "5\r\nhello\r\n0\r\n\r\n",
    "5;a=b\r\nhello\r\n0;c\r\n\r\n",
    "5;a=\"b\"\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "5 ;a\r\nhello\r\n0\r\n\r\n",
    "05\r\nhello\r\n00\r\n\r\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5 5\r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "5h\r\nhello\r\n0\r\n\r\n",
    "\r\nhello\r\n0\r\n\r\n",
    ";a\r\nhello\r\n0\r\n\r\n",
    "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "3\r\nhello\r\n0\r\n\r\n",
    "6\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\rhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "5;a\nb\r\nhello\r\n0\r\n\r\n",
    "5;a\rb\r\nhello\r\n0\r\n\r\n",
    "5;a\x00b\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\n\n",
    "5\r\nhello\r\n0\r\n\n",
    "5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    "5\r\nhello\r\n0\r\nA: b\n\r\n",
    "5\r\nhello\r\n0\r\nA: b\n\n",
    "5\r\nhello\r\n0\r\nA: b\rc\r\n\r\n",
    "5\r\nhello\r\n0\r\nA : b\r\n\r\n",
    "5\r\nhello\r\n0\r\n A: b\r\n\r\n",
    "5\r\nhello\r\n0\r\nA\r\n\r\n",
    "5\r\nhello\r\n0\r\nContent-Length: 7\r\n\r\n",
    "5\r\nhello\r\n0\r\nHost: t\r\n\r\n",
];

/// Fields of an HTTP/2 request beside its own, in text: a line each.
pub const FIELDS2: &[&str] = &[
    "",
    "content-length: 5",
    "content-length: 5\ncontent-length: 5",
    "content-length: 5\ncontent-length: 6",
    "content-length: 6",
    "content-length: 4",
    "content-length: 0",
    "content-length: +5",
    "content-length: 5, 5",
    "transfer-encoding: chunked",
    "connection: close",
    "connection: x\nx: y",
    "keep-alive: 5",
    "upgrade: x",
    "te: gzip",
    "te: trailers",
    "host: s",
    "host: t",
    "host: s\nhost: s",
    "X: y",
    "x\": y",
    "x(: y",
    "x y: z",
    "x\r\ny: z",
    ": y",
    "x: a\r\ny: b",
    "x: a\0b",
    "x:  y",
    "x: y ",
    "x: y\t",
    ":path: /other",
    ":status: 200",
    ":other: x",
    "cookie: a=b\ncookie: c=d",
    "expect: magic",
];

/// Lists of pseudo-header fields instead of the right ones.
pub const PSEUDO: &[&str] = &[
    ":method: POST\n:scheme: http\n:authority: a..b\n:path: /first",
    ":method: POST\n:scheme: http\n:authority: u@s\n:path: /first",
    ":method: POST\n:scheme: http\n:authority: s t\n:path: /first",
    ":method: POST\n:scheme: http\n:authority: s/x\n:path: /first",
    ":method: POST\n:scheme: http\n:authority: \n:path: /first",
    ":method: POST\n:scheme: http\n:path: /first",
    ":method: POST\n:scheme: http\n:authority: s\n:path: first",
    ":method: POST\n:scheme: http\n:authority: s\n:path: ",
    ":method: POST\n:scheme: http\n:authority: s\n:path: /first x",
    ":method: POST\n:scheme: http\n:authority: s\n:path: /first\r\nx: y",
    ":method: POST\n:scheme: http\n:authority: s\n:path: /first\n:path: /first",
    ":method: P ST\n:scheme: http\n:authority: s\n:path: /first",
    ":method: POST\n:authority: s\n:path: /first",
    ":scheme: http\n:authority: s\n:path: /first",
    ":method: POST\n:scheme: http\nx: y\n:authority: s\n:path: /first",
];

/// Trailers of an HTTP/2 request.
pub const TRAILERS2: &[&str] = &[
    "a: b",
    ":path: /other",
    ":path: /other\na: b",
    "a: b\n:path: /other",
    "A: b",
    "a: b ",
    "content-length: 7",
    "connection: close",
];

/// All messages.
pub fn messages() -> Vec<Doubtful> {
    let (chunked, chunks) = (CODINGS[0], CHUNKS[0]);
    let lines = LINES.iter().map(|line| http1(line, FIELDS[0], "hello"));
    let fields = FIELDS[1..]
        .iter()
        .map(|fields| http1(LINES[0], fields, "hello"));
    let codings = CODINGS.iter().map(|coding| http1(LINES[0], coding, chunks));
    let bodies = CHUNKS[1..]
        .iter()
        .map(|body| http1(LINES[0], chunked, body));
    let old = http1("POST /first HTTP/1.0\r\nHost: s", chunked, chunks);
    let fields2 = FIELDS2.iter().map(|fields| http2(OWN, fields, None));
    let pseudo = PSEUDO.iter().map(|pseudo| http2(pseudo, "", None));
    let trailers = TRAILERS2
        .iter()
        .map(|trailers| http2(OWN, "", Some(trailers)));
    let many: Vec<_> = (0..101).map(|n| format!("x{n}: y")).collect();
    let all = lines
        .chain(fields)
        .chain(codings)
        .chain(bodies)
        .chain([old]);
    all.chain(fields2)
        .chain(pseudo)
        .chain(trailers)
        .chain([http2(OWN, &many.join("\n"), None)])
        .collect()
}

/// A request of HTTP/1 with a second one behind it.
pub fn http1(line: &str, fields: &str, body: &str) -> Doubtful {
    let next = format!("GET {NEXT} HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n");
    Doubtful {
        about: format!("{line:?} {fields:?} {body:?}"),
        bytes: format!("{line}\r\n{fields}\r\n\r\n{body}{next}").into_bytes(),
        is_http2: false,
    }
}

/// The pseudo-header fields as they should be.
const OWN: &str = ":method: POST\n:scheme: http\n:authority: s\n:path: /first";

/// A request of HTTP/2 with a body of five bytes.
fn http2(pseudo: &str, fields: &str, trailers: Option<&str>) -> Doubtful {
    let last = u8::from(trailers.is_none());
    let head = [block(pseudo), block(fields)].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, b""));
    bytes.extend(frame(1, 4, 1, &head));
    bytes.extend(frame(0, last, 1, b"hello"));
    if let Some(trailers) = trailers {
        bytes.extend(frame(1, 5, 1, &block(trailers)));
    }
    Doubtful {
        about: format!(
            "HTTP/2 {pseudo:?} {:?} {trailers:?}",
            fields.chars().take(60).collect::<String>()
        ),
        bytes,
        is_http2: true,
    }
}

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Lines of fields as HPACK has them without tables (RFC 7541, section 6.2.2).
pub fn block(lines: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for line in lines.split('\n').filter(|line| !line.is_empty()) {
        // A name may begin with a colon, and be nothing else.
        let end = line[1..].find(": ").map_or(0, |end| end + 1);
        let (name, value) = (
            &line[..end],
            line[end..].strip_prefix(": ").unwrap_or(&line[2..]),
        );
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}
