//! Switches of protocol through us, nginx and HAProxy, with an origin that answers as the case says.
//!
//! Behind the handshake, the client sends a second request with a field in an unusual form. The reading is the way of
//! these bytes: `raw` if the origin got them as they are, through a tunnel; `parsed` if it got a request made from them;
//! `ended` if it got the handshake alone. Raw bytes after a handshake that failed are requests without any check.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::comparison::{CaseReading, ComparedCase, FamilyRule, equal};
use super::each;
use super::origin::OriginReply;
use super::programs::{CLIENT, ComparedPrograms, connect_from, read_some};
use crate::error::Outcome;

/// RFC 9110, section 7.8: a server may ignore `Upgrade`.
const NO_KEY: &str = "the gateway forwards an ordinary request without Upgrade, HAProxy refuses";

/// The reading of bytes in a tunnel.
const RAW: &str = "raw";

pub(super) const RULE: FamilyRule = FamilyRule {
    controls: &[("handshake", RAW), ("no Upgrade", "parsed")],
    exceptions: &[
        ("no key", NO_KEY),
        ("an empty key", NO_KEY),
        ("a short key", NO_KEY),
    ],
    is_same: equal,
    // A request made from the bytes has passed all checks.
    is_permitted: |ours, other| ours != RAW || other == RAW,
};

/// Time for a reply, and again for the bytes to reach the origin.
const PATIENCE: Duration = Duration::from_secs(3);

/// Interval between checks of the origin.
const POLL: Duration = Duration::from_millis(50);

/// Time for bytes to reach the origin after the end of the client's connection.
const SETTLING: Duration = Duration::from_millis(500);

const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// The origin's answer to a good handshake.
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                        Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A body of five bytes.
const BODY: &str = "hello";

/// A handshake.
struct HandshakeCase {
    about: &'static str,
    /// Method, with `POST` for requests that have a body.
    method: &'static str,
    version: &'static str,
    /// Field lines and their end, the end of the head and a body.
    rest: String,
    reply: &'static str,
    /// True if the origin answers with `reply` also if the request has no `Upgrade`.
    always: bool,
    /// True if the second request follows at once, without waiting for the reply.
    is_early: bool,
}

impl HandshakeCase {
    /// A request with these fields instead of `Connection`, `Upgrade`, key and version.
    fn of_request(about: &'static str, fields: &[&str]) -> Self {
        let fields = fields.concat();
        // Fields with a body include the end of the head.
        let end = if fields.ends_with(BODY) { "" } else { "\r\n" };
        Self {
            about,
            method: "GET",
            version: "HTTP/1.1",
            rest: fields + end,
            reply: SWITCHED,
            always: false,
            is_early: false,
        }
    }

    /// A good handshake with this reply.
    fn of_reply(about: &'static str, reply: &'static str) -> Self {
        Self {
            reply,
            ..Self::of_request(about, &[UPGRADE, KEY, VERSION])
        }
    }

    fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    fn early(self) -> Self {
        Self {
            is_early: true,
            ..self
        }
    }

    fn always(self) -> Self {
        Self {
            always: true,
            ..self
        }
    }

    fn old(self) -> Self {
        Self {
            version: "HTTP/1.0",
            ..self
        }
    }
}

/// Fields in place of `Connection` and `Upgrade`.
const UPGRADES: &[(&str, &str)] = &[
    ("no Connection", "Upgrade: websocket\r\n"),
    (
        "Connection without upgrade",
        "Connection: keep-alive\r\nUpgrade: websocket\r\n",
    ),
    ("Connection of Upgrade alone", "Connection: Upgrade\r\n"),
    (
        "close, upgrade",
        "Connection: close, Upgrade\r\nUpgrade: websocket\r\n",
    ),
    (
        "Connection on two lines",
        "Connection: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n",
    ),
    (
        "Connection: upgrades",
        "Connection: upgrades\r\nUpgrade: websocket\r\n",
    ),
    (
        "Connection: \"upgrade\"",
        "Connection: \"upgrade\"\r\nUpgrade: websocket\r\n",
    ),
    (
        "lists",
        "Connection: keep-alive, Upgrade\r\nUpgrade: h2c, websocket\r\n",
    ),
    (
        "two Upgrade",
        "Connection: Upgrade\r\nUpgrade: x\r\nUpgrade: websocket\r\n",
    ),
    (
        "the same Upgrade twice",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n",
    ),
    (
        "upper case",
        "CONNECTION: UPGRADE\r\nUPGRADE: WEBSOCKET\r\n",
    ),
    (
        "websocket/13",
        "Connection: Upgrade\r\nUpgrade: websocket/13\r\n",
    ),
    (
        "web socket",
        "Connection: Upgrade\r\nUpgrade: web socket\r\n",
    ),
    ("an empty Upgrade", "Connection: Upgrade\r\nUpgrade:\r\n"),
    (
        "h2c",
        "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: h2c\r\n",
    ),
    (
        "another protocol",
        "Connection: Upgrade\r\nUpgrade: chat\r\n",
    ),
    ("TLS/1.0", "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n"),
];

fn of_requests() -> Vec<HandshakeCase> {
    let case = HandshakeCase::of_request;
    let with = |about, field| case(about, &[UPGRADE, KEY, VERSION, field]);
    let upgrades = UPGRADES.iter();
    let upgrades = upgrades.map(|(about, lines)| case(about, &[lines, KEY, VERSION]));
    let keyed = |about, key| case(about, &[UPGRADE, key, VERSION]);
    let body = "Content-Length: 5\r\n\r\nhello";
    let chunks = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";
    let others = [
        with("handshake", ""),
        with("handshake, bytes at once", "").early(),
        case("no Upgrade", &[]),
        with("HTTP/1.0", "").old(),
        with("HTTP/1.0, bytes at once", "").old().early(),
        with("POST", "Content-Length: 0\r\n").method("POST"),
        with("POST with a body", body).method("POST"),
        with("HEAD", "").method("HEAD"),
        with("OPTIONS", "").method("OPTIONS"),
        with("GET with a body", body),
        with("GET with a body, bytes at once", body).early(),
        with("GET with Content-Length: 0", "Content-Length: 0\r\n"),
        with("GET with chunks", chunks),
        with("GET with chunks, bytes at once", chunks).early(),
        with(
            "GET with an empty chunk",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n",
        ),
        with("Expect", "Expect: 100-continue\r\n"),
        with(
            "Expect with a body",
            "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        ),
        keyed("no key", ""),
        keyed("an empty key", "Sec-WebSocket-Key:\r\n"),
        keyed("a short key", "Sec-WebSocket-Key: dGhl\r\n"),
        keyed(
            "a key that is not base64",
            "Sec-WebSocket-Key: ************************\r\n",
        ),
        case("two keys", &[UPGRADE, KEY, KEY, VERSION]),
        case("no version", &[UPGRADE, KEY]),
        case("version 8", &[UPGRADE, KEY, "Sec-WebSocket-Version: 8\r\n"]),
        case(
            "version 777",
            &[UPGRADE, KEY, "Sec-WebSocket-Version: 777\r\n"],
        ),
        case("two versions", &[UPGRADE, KEY, VERSION, VERSION]),
        with(
            "Connection names the key",
            "Connection: Sec-WebSocket-Key\r\n",
        ),
        with("Keep-Alive", "Keep-Alive: timeout=5\r\n"),
    ];
    upgrades.chain(others).collect()
}

/// 101 with `fields` behind `Connection`.
macro_rules! switched {
    ($fields:literal) => {
        concat!("HTTP/1.1 101 Switching Protocols\r\n", $fields, "\r\n")
    };
}

/// Replies to a good handshake.
const REPLIES: &[(&str, &str)] = &[
    ("101 without fields", switched!("")),
    (
        "101 to another protocol",
        switched!(
            "Connection: Upgrade\r\nUpgrade: chat\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        ),
    ),
    (
        "101 without Connection",
        switched!("Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
    ),
    (
        "101 with Content-Length",
        switched!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        ),
    ),
    (
        "101 with chunks",
        switched!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        ),
    ),
    (
        "101 without Accept",
        switched!("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    ),
    (
        "101 with a wrong Accept",
        switched!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"
        ),
    ),
    (
        "101 with two Accept",
        switched!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
                 Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"
        ),
    ),
    (
        "400",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "403 without a length",
        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n",
    ),
    (
        "204",
        "HTTP/1.1 204 No Content\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
    ("304", "HTTP/1.1 304 Not Modified\r\n\r\n"),
    (
        "100, then 200",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "103, then 200",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "HTTP/1.0 101",
        "HTTP/1.0 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
];

fn of_replies() -> Vec<HandshakeCase> {
    let case = HandshakeCase::of_reply;
    let plain = |about, reply| HandshakeCase {
        reply,
        ..HandshakeCase::of_request(about, &[])
    };
    let reply = "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nContent-Length: 2\r\n\r\nno";
    let accepted = "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nContent-Length: 2\r\n\r\nok";
    let others = [
        plain("101 that was not requested", SWITCHED).always(),
        plain("101 that was not requested, bytes at once", SWITCHED)
            .always()
            .early(),
        HandshakeCase::of_request(
            "101 for a refused request",
            &["Upgrade: websocket\r\n", KEY, VERSION],
        )
        .always(),
        HandshakeCase::of_request(
            "101 for version 777",
            &[UPGRADE, KEY, "Sec-WebSocket-Version: 777\r\n"],
        )
        .always(),
        HandshakeCase::of_request("101 for h2c", &["Connection: Upgrade\r\nUpgrade: h2c\r\n"])
            .always(),
        case("426", reply),
        case("426, bytes at once", reply).early(),
        case("200 with the fields of 101", accepted),
        case("200 with the fields of 101, bytes at once", accepted).early(),
    ];
    let replies = REPLIES.iter().map(|(about, reply)| case(about, reply));
    replies.chain(others).collect()
}

/// Sends every case through every program.
pub(super) fn observe(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    let mut cases = of_requests();
    cases.extend(of_replies());
    each(&cases, |number, case| {
        let read = |name, address| read(programs, case, number, name, address);
        Ok(ComparedCase {
            about: case.about.to_owned(),
            ours: read("posthaste", programs.gateway.upgrade)?,
            others: vec![
                ("nginx", read("nginx", programs.nginx.upgrade)?),
                ("haproxy", read("haproxy", programs.haproxy.upgrade)?),
            ],
        })
    })
}

fn read(
    programs: &ComparedPrograms<'_>,
    case: &HandshakeCase,
    number: usize,
    name: &str,
    address: SocketAddr,
) -> Outcome<CaseReading> {
    let (path, behind) = (
        format!("/upgrade/{name}/{number}"),
        format!("/behind/{name}/{number}"),
    );
    let reply = OriginReply {
        text: case.reply,
        always: case.always,
    };
    programs.origin.answer(path.clone(), reply);
    // Proxies write fields with one blank.
    let raw = format!("GET {behind} HTTP/1.1\r\nHost: s\r\nX-Form:   raw\r\n\r\n");
    let head = format!(
        "{} {path} {}\r\nHost: s\r\n{}",
        case.method, case.version, case.rest
    );
    let mut stream = connect_from(CLIENT, address)?;
    let end = Instant::now() + PATIENCE;
    let mut answer = Vec::new();
    if case.is_early {
        let _ = stream.write_all(format!("{head}{raw}").as_bytes());
    } else {
        let _ = stream.write_all(head.as_bytes());
        while !is_answered(&answer) && read_some(&mut stream, &mut answer, end)? {}
        let _ = stream.write_all(raw.as_bytes());
    }
    let arrived = |text: &str| programs.origin.has_received(text);
    let is_behind = || arrived(&format!(" {behind} "));
    let mut end = Instant::now() + PATIENCE;
    let mut is_open = true;
    while !is_behind() && Instant::now() < end {
        let soon = Instant::now() + POLL;
        if !is_open {
            std::thread::sleep(POLL);
        } else if !read_some(&mut stream, &mut answer, soon)? && Instant::now() < soon {
            is_open = false;
            end = Instant::now() + SETTLING;
        }
    }
    // The rest of the bytes.
    std::thread::sleep(POLL);
    Ok(
        match (arrived(&raw), is_behind(), arrived(&format!(" {path} "))) {
            (true, ..) => Some(RAW),
            (_, true, _) => Some("parsed"),
            (.., true) => Some("ended"),
            _ => None,
        }
        .map(str::to_owned),
    )
}

/// True if bytes contain the head of a final reply or of 101.
fn is_answered(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let mut heads = text.split("HTTP/1.").skip(1);
    heads.any(|head| {
        let status = head.get(2..5).unwrap_or_default();
        head.contains("\r\n\r\n") && (status == "101" || !status.starts_with('1'))
    })
}
