//! Lists of senders: `X-Forwarded-For` to us and nginx's realip module, `Forwarded` to us, aiohttp and npm's
//! forwarded-parse.
//!
//! The reading is the client. It is "stopped" if that is the peer, because then no sender is believed.

use std::process::Command;

use super::comparison::{CaseReading, ComparedCase, FamilyRule, equal};
use super::each;
use super::origin::field;
use super::programs::{ComparedPrograms, TRUSTED, exchange};
use crate::error::{Outcome, TaskError};
use crate::tools;

/// RFC 9110, section 5.6.1: empty elements of a list do not count.
const EMPTY: &str = "others take an empty element for a sender, or for an error";

/// RFC 9110, section 5.6.1: tabs are whitespace between elements.
const TABS: &str = "nginx knows blanks only";

/// RFC 7239, section 6: brackets without a port, and ports of one to five digits or obfuscated.
const NODES: &str = "nginx reads no node of RFC 7239";

/// A line is a list of its own. The unclosed one is not read.
const LINES: &str = "forwarded-parse reads all lines as one";

pub(super) const FORWARDED_FOR: FamilyRule = FamilyRule {
    controls: &[
        ("one", "192.0.2.1"),
        ("two", "192.0.2.2"),
        ("trusted at the end", "192.0.2.1"),
        ("two lines", "192.0.2.1"),
        ("IPv6", "2001:db8::1"),
        ("64 senders", "192.0.2.1"),
    ],
    exceptions: &[
        ("an empty line last", EMPTY),
        ("an empty line between", EMPTY),
        ("tabs", TABS),
        ("IPv6 in brackets", NODES),
        ("IPv4 with port 0", NODES),
        ("IPv4 with port 65536", NODES),
        ("IPv4 with an obfuscated port", NODES),
    ],
    is_same: equal,
    is_permitted: equal,
};

pub(super) const FORWARDED: FamilyRule = FamilyRule {
    controls: &[
        ("one", "192.0.2.1"),
        ("two", "192.0.2.2"),
        ("trusted at the end", "192.0.2.1"),
        ("two lines", "192.0.2.1"),
        ("IPv6", "2001:db8::1"),
        ("IPv6 with a port", "2001:db8::1"),
        ("quoted comma", "192.0.2.1"),
        ("64 senders", "192.0.2.1"),
    ],
    exceptions: &[
        ("an empty line last", EMPTY),
        ("empty elements", EMPTY),
        ("empty pairs", EMPTY),
        ("unclosed over lines", LINES),
    ],
    is_same: equal,
    is_permitted: equal,
};

/// Lines of `X-Forwarded-For`, separated by line feeds.
const ADDRESSES: &[(&str, &str)] = &[
    ("one", "192.0.2.1"),
    ("two", "192.0.2.1, 192.0.2.2"),
    ("trusted at the end", "192.0.2.1, 10.0.0.2"),
    ("all trusted", "10.0.0.3, 10.0.0.2"),
    ("trusted behind a client", "10.0.0.3, 192.0.2.1"),
    ("two lines", "192.0.2.1\n10.0.0.2"),
    ("three lines", "192.0.2.1\n192.0.2.2\n10.0.0.2"),
    ("an empty line last", "192.0.2.1\n"),
    ("an empty line between", "192.0.2.1\n\n10.0.0.2"),
    ("no blanks", "192.0.2.1,10.0.0.2"),
    ("many blanks", "192.0.2.1   ,   10.0.0.2"),
    ("tabs", "192.0.2.1\t,\t10.0.0.2"),
    ("tab alone", "192.0.2.1\t10.0.0.2"),
    ("blank alone", "192.0.2.1 10.0.0.2"),
    ("blank alone, client last", "192.0.2.1 192.0.2.2"),
    ("semicolon", "192.0.2.1; 192.0.2.2"),
    ("empty elements", ", 192.0.2.1,, ,"),
    ("empty elements between", "192.0.2.1,,10.0.0.2"),
    ("IPv6", "2001:db8::1"),
    ("IPv6 behind a trusted one", "2001:db8::1, 10.0.0.2"),
    ("IPv6 in brackets", "[2001:db8::1]"),
    ("IPv6 in brackets with a port", "[2001:db8::1]:80"),
    ("IPv6 with a port, no brackets", "2001:db8::1:80"),
    ("IPv6 in upper case", "2001:DB8::1"),
    ("IPv6 with zone", "fe80::1%lo"),
    ("IPv6 with a bracket missing", "[2001:db8::1"),
    ("IPv6 in brackets with text", "[2001:db8::1]x"),
    ("mapped IPv4", "::ffff:192.0.2.1"),
    ("mapped IPv4, trusted", "192.0.2.1, ::ffff:10.0.0.2"),
    ("IPv4 in brackets", "[192.0.2.1]"),
    ("IPv4 with a port", "192.0.2.1:80"),
    ("IPv4 with a port, trusted", "192.0.2.1, 10.0.0.2:80"),
    ("IPv4 with port 0", "192.0.2.1:0"),
    ("IPv4 with port 65536", "192.0.2.1:65536"),
    ("IPv4 with an empty port", "192.0.2.1:"),
    ("IPv4 with an obfuscated port", "192.0.2.1:_port"),
    ("IPv4 with a port of letters", "192.0.2.1:http"),
    ("leading zero", "192.0.2.01"),
    ("leading zero, trusted", "192.0.2.1, 10.0.0.02"),
    ("leading zeros", "192.000.002.001"),
    ("octal", "0300.0.2.1"),
    ("hexadecimal", "0xc0.0.2.1"),
    ("three octets", "192.0.1"),
    ("one number", "3221225985"),
    ("octet 256", "192.0.2.256"),
    ("five octets", "192.0.2.1.1"),
    ("unknown", "unknown"),
    ("unknown behind a client", "unknown, 192.0.2.1"),
    (
        "unknown behind a trusted one",
        "192.0.2.1, unknown, 10.0.0.2",
    ),
    ("obfuscated", "192.0.2.1, _hidden, 10.0.0.2"),
    ("text", "x"),
    ("text behind a client", "x, 192.0.2.1"),
    ("text behind a trusted one", "192.0.2.1, x, 10.0.0.2"),
    ("name", "localhost"),
    ("quoted", "\"192.0.2.1\""),
    ("unclosed quotation", "\"192.0.2.1, 192.0.2.2"),
    ("for=", "for=192.0.2.1"),
    ("unix:", "unix:"),
];

/// Lines of `Forwarded`, separated by line feeds.
const ELEMENTS: &[(&str, &str)] = &[
    ("one", "for=192.0.2.1"),
    ("two", "for=192.0.2.1, for=192.0.2.2"),
    ("trusted at the end", "for=192.0.2.1, for=10.0.0.2"),
    ("two lines", "for=192.0.2.1\nfor=10.0.0.2"),
    ("an empty line last", "for=192.0.2.1\n"),
    ("name in upper case", "FOR=192.0.2.1"),
    ("parameters", "proto=http;for=192.0.2.1;by=10.0.0.2"),
    ("extension", "ext=1;for=192.0.2.1"),
    ("no for", "for=192.0.2.1, proto=http"),
    ("IPv6", "for=\"[2001:db8::1]\""),
    ("IPv6 with a port", "for=\"[2001:db8::1]:80\""),
    ("IPv6 with an obfuscated port", "for=\"[2001:db8::1]:_p\""),
    ("IPv6 without brackets", "for=\"2001:db8::1\""),
    (
        "IPv6 without brackets, with a port",
        "for=\"2001:db8::1:80\"",
    ),
    ("IPv6 without quotation", "for=[2001:db8::1]"),
    ("IPv6 without both", "for=2001:db8::1"),
    ("IPv4 quoted", "for=\"192.0.2.1\""),
    ("IPv4 with a port", "for=\"192.0.2.1:80\""),
    ("IPv4 with a port, not quoted", "for=192.0.2.1:80"),
    ("mapped IPv4", "for=\"[::ffff:192.0.2.1]\""),
    ("leading zero", "for=192.0.2.01"),
    ("unknown", "for=192.0.2.1, for=unknown"),
    ("obfuscated", "for=192.0.2.1, for=_hidden, for=10.0.0.2"),
    (
        "obfuscated with a port",
        "for=192.0.2.1, for=\"_hidden:80\", for=10.0.0.2",
    ),
    (
        "quoted comma",
        "for=192.0.2.1;host=\"a,for=192.0.2.9\", for=10.0.0.2",
    ),
    ("quoted semicolon", "host=\"a;for=192.0.2.9\";for=192.0.2.1"),
    (
        "escaped quotation",
        "host=\"a\\\",for=192.0.2.9\";for=192.0.2.1",
    ),
    ("escaped backslash", "host=\"a\\\\\";for=192.0.2.1"),
    ("escape in the address", "for=\"192.0.2.\\1\""),
    ("unclosed", "for=\"192.0.2.1"),
    ("unclosed, then an element", "host=\"a, for=192.0.2.1"),
    ("unclosed over lines", "for=\"192.0.2.9\nfor=192.0.2.1"),
    (
        "unclosed, trusted line behind",
        "for=\"192.0.2.9\nfor=10.0.0.2",
    ),
    ("quotation in a token", "for=19\"2.0.2.1"),
    ("text behind a quotation", "for=\"192.0.2.1\"x"),
    ("quotation ends with an escape", "for=\"192.0.2.1\\\""),
    ("twice", "for=192.0.2.1;for=192.0.2.2"),
    ("twice, other case", "for=192.0.2.1;For=192.0.2.2"),
    ("twice the same", "for=192.0.2.1;for=192.0.2.1"),
    ("proto twice", "proto=http;proto=https;for=192.0.2.1"),
    ("extension twice", "a=1;a=2;for=192.0.2.1"),
    ("blanks around semicolons", "proto=http ; for=192.0.2.1"),
    ("blank before =", "for =192.0.2.1"),
    ("blank behind =", "for= 192.0.2.1"),
    ("blank in a token", "for=192.0.2.1 192.0.2.2"),
    ("blank between pairs", "for=192.0.2.1 proto=http"),
    ("empty elements", ", for=192.0.2.1,, ,"),
    ("empty pairs", ";for=192.0.2.1;;"),
    ("no value", "for="),
    ("no value, then an address", "for=;by=192.0.2.1"),
    ("no =", "for"),
    ("no name", "=192.0.2.1"),
    ("address alone", "192.0.2.1"),
    ("malformed, then correct", "x, for=192.0.2.1"),
    ("correct, then malformed", "for=192.0.2.1, x"),
    ("name", "for=localhost"),
    ("empty quotation", "for=\"\""),
    ("single quotation", "for='192.0.2.1'"),
];

/// Lists of 64 and 65 senders with these forms, all but the farthest trusted.
fn with_lists(cases: &[(&'static str, &'static str)], prefix: &str) -> Vec<(String, Vec<String>)> {
    let written = cases.iter().map(|(about, lines)| {
        let lines = lines.split('\n').map(str::to_owned).collect();
        ((*about).to_owned(), lines)
    });
    let lists = [64, 65].map(|count| {
        let trusted = (1..count).map(|n| format!(", {prefix}10.0.0.{n}"));
        let line = trusted.fold(format!("{prefix}192.0.2.1"), |line, next| line + &next);
        (format!("{count} senders"), vec![line])
    });
    written.chain(lists).collect()
}

/// Sends every case of `X-Forwarded-For` to us and to nginx.
pub(super) fn observe_forwarded_for(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    let cases = with_lists(ADDRESSES, "");
    each(&cases, |number, (about, lines)| {
        let path = format!("/forwarded-for/nginx/{number}");
        let request = request(&path, "X-Forwarded-For", lines);
        exchange(TRUSTED, programs.nginx.forwarded_for, &request)?;
        let head = programs.origin.head(&path);
        let client = head.as_deref().and_then(|head| field(head, "x-client"));
        Ok(ComparedCase {
            about: about.clone(),
            ours: ours(programs, "X-Forwarded-For", number, lines)?,
            others: vec![("nginx", client.and_then(believed))],
        })
    })
}

/// Sends every case of `Forwarded` to us, and has it read by two parsers.
pub(super) fn observe_forwarded(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    let site = programs.site;
    let cases = with_lists(ELEMENTS, "for=");
    let lines: Vec<_> = cases.iter().map(|(_, lines)| lines).collect();
    let input = programs.folder.join("forwarded.json");
    let text = serde_json::to_string(&lines).map_err(|error| TaskError::at(&input, error))?;
    tools::write(&input, text)?;
    let requirements = "conformance/programs/differ/requirements.txt";
    let python = tools::python(&site.checkout, "differ", requirements)?;
    let mut aiohttp = Command::new(python);
    aiohttp.arg(
        site.checkout
            .path("conformance/programs/differ/forwarded.py"),
    );
    let modules = tools::node(&site.checkout, "differ-node", "conformance/programs/differ")?;
    let script = modules.join("forwarded.js");
    tools::copy(
        &site
            .checkout
            .path("conformance/programs/differ/forwarded.js"),
        &script,
    )?;
    let mut node = Command::new("node");
    node.arg(script);
    let [aiohttp, parse] = [aiohttp, node].map(|mut command| {
        let command = command.arg(TRUSTED.to_string()).arg(&input);
        let output = site.run("forwarded", command, 60)?.stdout;
        let read: Result<Vec<Option<String>>, _> = serde_json::from_str(&output);
        read.map_err(|error| TaskError::Failed(format!("{error} in {output}")))
    });
    let (aiohttp, parse) = (aiohttp?, parse?);
    each(&cases, |number, (about, lines)| {
        let client_in = |read: &[Option<String>]| read.get(number)?.as_deref().and_then(believed);
        Ok(ComparedCase {
            about: about.clone(),
            ours: ours(programs, "Forwarded", number, lines)?,
            others: vec![
                ("aiohttp", client_in(&aiohttp)),
                ("forwarded-parse", client_in(&parse)),
            ],
        })
    })
}

/// The client that the gateway logs.
fn ours(
    programs: &ComparedPrograms<'_>,
    name: &str,
    number: usize,
    lines: &[String],
) -> Outcome<CaseReading> {
    let path = format!("/{}/{number}", name.to_ascii_lowercase());
    let request = request(&path, name, lines);
    exchange(TRUSTED, programs.gateway.forwarded_for, &request)?;
    if programs.origin.head(&path).is_none() {
        return Ok(None);
    }
    Ok(believed(&programs.logged_client(&path)?))
}

/// A client other than the peer, in one spelling. An unknown one believes no sender either.
fn believed(client: &str) -> CaseReading {
    let client = match client.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => client.to_owned(),
    };
    (client != TRUSTED.to_string() && client != "unknown").then_some(client)
}

fn request(path: &str, name: &str, lines: &[String]) -> Vec<u8> {
    let fields: String = lines
        .iter()
        .map(|line| format!("{name}: {line}\r\n"))
        .collect();
    format!("GET {path} HTTP/1.1\r\nHost: s\r\n{fields}Connection: close\r\n\r\n").into_bytes()
}
