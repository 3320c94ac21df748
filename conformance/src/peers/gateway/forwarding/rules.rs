//! The documented changes to requests, each as a function from what was sent to what must arrive.
//!
//! A rule predicts the bytes. A change that no rule predicts is therefore a failure, as is a change that does not happen.
//! The last three rules look at what arrived, because the documentation leaves something open: the sizes of chunks, the
//! places of added fields, and the order of names where one is removed.

use super::forms::SentForm;
use super::message::{FieldLine, Message, Protocol};
use super::tables::{PLAIN_HOST, RENAMED, RENAMED_HOST};

/// A documented change.
pub(super) struct ForwardingRule {
    pub(super) name: &'static str,
    /// Text of docs/reference/gateway-messages.md that the rule relies on.
    pub(super) documented: &'static str,
    /// True if the rule adds a line to every request. Such a line does not make a form different from what was sent.
    pub(super) is_for_all: bool,
    apply: fn(&mut Message, &FormExchange<'_>),
}

/// A form, and what arrived of it.
pub(super) struct FormExchange<'e> {
    pub(super) form: &'e SentForm,
    pub(super) received: &'e Message,
}

const fn rule(
    name: &'static str,
    documented: &'static str,
    apply: fn(&mut Message, &FormExchange<'_>),
) -> ForwardingRule {
    ForwardingRule {
        name,
        documented,
        is_for_all: false,
        apply,
    }
}

const fn for_all(rule: ForwardingRule) -> ForwardingRule {
    ForwardingRule {
        is_for_all: true,
        ..rule
    }
}

/// All rules, in the order of their application.
pub(super) const RULES: &[ForwardingRule] = &[
    rule(
        "absolute target",
        "| target | Absolute form becomes origin form.",
        make_origin_form,
    ),
    rule(
        "rewritten target",
        "`rewrite` replaces the prefix of the path.",
        rewrite,
    ),
    rule(
        "names in lower case",
        "| names of fields | Lower case.",
        lower_names,
    ),
    rule(
        "white space around values",
        "| white space around values | Removed. A line is `name: value`.",
        trim_values,
    ),
    rule(
        "lines of a name together",
        "Lines of one name stand together, in their order.",
        gather_lines,
    ),
    rule(
        "cookies",
        "| `Cookie` | Several fields become one, joined by `; `",
        join_cookies,
    ),
    rule(
        "hop-by-hop fields",
        "| hop-by-hop fields | Removed: `Connection` and the fields that it names, `Keep-Alive`, `Proxy-Connection`, \
         `Proxy-Authenticate`, `Proxy-Authorization`, `TE`, `Transfer-Encoding`, `Upgrade`. |",
        remove_hop_by_hop,
    ),
    rule(
        "fields about the client",
        "| `Forwarded`, other `X-Forwarded-*` | Removed,",
        remove_forwarded,
    ),
    rule(
        "certificate of the client",
        "| `Client-Cert`, `Client-Cert-Chain` | Replaced by the certificate of the connection, or removed.",
        remove_certificate,
    ),
    rule(
        "Host from :authority",
        "| `Host` | Set from the absolute target or `:authority`;",
        set_host,
    ),
    for_all(rule(
        "X-Forwarded-*",
        "| `X-Forwarded-For`, `-Proto`, `-Host` | Replaced,",
        add_forwarded,
    )),
    for_all(rule("Via", "| `Via` | Appended. |", append_via)),
    rule(
        "If-Match",
        "| `If-Match` | Weak validators become strong.",
        strengthen,
    ),
    rule(
        "If-None-Match",
        "| `If-None-Match` | The strong form of weak validators is added.",
        add_strong,
    ),
    rule(
        "chunks for HTTP/1.1",
        "An HTTP/2 body without `Content-Length` becomes chunks for an upstream of HTTP/1.1.",
        make_chunks,
    ),
    rule(
        "Transfer-Encoding last",
        "Chunks stay chunks, of other sizes and without extensions; `Transfer-Encoding` is then the last field.",
        restate_coding,
    ),
    rule(
        "HTTP/2 to the upstream",
        "Becomes `:authority` for an upstream with HTTP/2.",
        make_http2,
    ),
    rule(
        "trailers that are not announced",
        "towards HTTP/1.1 if `Trailer` in the head names them",
        drop_unannounced,
    ),
    rule(
        "trailers for the head",
        "| Removed. Recipients need them before the content (RFC 9110, section 6.5.1). |",
        drop_head_trailers,
    ),
    rule(
        "trailers about the client",
        "| `Forwarded`, `X-Forwarded-*`, `Client-Cert`, `Client-Cert-Chain` of a request | Removed,",
        drop_client_trailers,
    ),
    rule(
        "chunk sizes",
        "Chunks stay chunks, of other sizes and without extensions",
        take_chunk_sizes,
    ),
    for_all(rule(
        "places of added fields",
        "Added names stand anywhere.",
        take_places,
    )),
    rule(
        "order of names",
        "Where a field is removed, the order of names may change,",
        take_order,
    ),
];

/// Applies all rules to the sent request. Returns what must arrive, and the rules that changed something.
pub(super) fn predict(exchange: &FormExchange<'_>) -> (Message, Vec<&'static ForwardingRule>) {
    let mut message = exchange.form.message.clone();
    let mut changes = Vec::new();
    for rule in RULES {
        let before = message.clone();
        (rule.apply)(&mut message, exchange);
        if message != before {
            changes.push(rule);
        }
    }
    (message, changes)
}

fn make_origin_form(message: &mut Message, _: &FormExchange<'_>) {
    let Some(rest) = message.target.strip_prefix(b"http://") else {
        return;
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    let path = end.map_or(&b""[..], |end| &rest[end..]);
    let slash = if path.starts_with(b"/") { "" } else { "/" };
    message.target = [slash.as_bytes(), path].concat();
}

fn rewrite(message: &mut Message, exchange: &FormExchange<'_>) {
    if is_for(exchange.form, RENAMED_HOST) {
        let (from, to) = RENAMED;
        if let Some(below) = message.target.strip_prefix(from.as_bytes()) {
            message.target = [to.as_bytes(), below].concat();
        }
    }
}

/// True if the form is for this host.
fn is_for(form: &SentForm, host: &str) -> bool {
    authority(&form.message) == host.as_bytes()
}

/// The host of a request, with its port.
fn authority(message: &Message) -> &[u8] {
    match &message.origin {
        Some((_, authority)) => authority,
        None => message.lines("host").next().map_or(b"", FieldLine::value),
    }
}

fn lower_names(message: &mut Message, _: &FormExchange<'_>) {
    for line in message.fields.iter_mut().chain(&mut message.trailers) {
        line.name.make_ascii_lowercase();
    }
}

fn trim_values(message: &mut Message, _: &FormExchange<'_>) {
    for line in message.fields.iter_mut().chain(&mut message.trailers) {
        *line = FieldLine::new(&line.name, line.value());
    }
}

fn gather_lines(message: &mut Message, _: &FormExchange<'_>) {
    gather(&mut message.fields);
    gather(&mut message.trailers);
}

/// Moves every line behind the line of the same name before it.
fn gather(lines: &mut Vec<FieldLine>) {
    let mut gathered: Vec<FieldLine> = Vec::new();
    for line in lines.drain(..) {
        let last = gathered.iter().rposition(|other| other.name == line.name);
        gathered.insert(last.map_or(gathered.len(), |last| last + 1), line);
    }
    *lines = gathered;
}

fn join_cookies(message: &mut Message, exchange: &FormExchange<'_>) {
    if exchange.form.message.protocol != Protocol::Http2 {
        return;
    }
    let cookies: Vec<_> = message.lines("cookie").map(FieldLine::value).collect();
    let joined = cookies.join(&b"; "[..]);
    let mut is_first = true;
    message.fields.retain_mut(|line| {
        if !line.is("cookie") {
            return true;
        }
        *line = FieldLine::new(b"cookie", &joined);
        std::mem::replace(&mut is_first, false)
    });
}

/// Fields that stay even if Connection names them, of those in the forms.
const KEPT: [&str; 3] = ["host", "via", "traceparent"];

fn remove_hop_by_hop(message: &mut Message, exchange: &FormExchange<'_>) {
    const NAMES: [&str; 7] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "upgrade",
    ];
    let named: Vec<String> = message
        .lines("connection")
        .flat_map(|line| line.value().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
        .filter(|name| !KEPT.contains(&name.as_str()))
        .collect();
    let asks_for_trailers = message.lines("te").any(|line| {
        let codings = line.value().split(|byte| *byte == b',');
        codings
            .map(<[u8]>::trim_ascii)
            .any(|coding| coding == b"trailers")
    });
    message.fields.retain(|line| {
        let is_named = named.iter().any(|name| line.is(name));
        !is_named && !NAMES.iter().any(|name| line.is(name))
    });
    if asks_for_trailers && exchange.received.protocol == Protocol::Http2 {
        message.fields.push(FieldLine::new(b"te", b"trailers"));
    }
}

fn is_forwarded(line: &FieldLine) -> bool {
    line.is("forwarded") || line.name.starts_with(b"x-forwarded-")
}

fn is_certificate(line: &FieldLine) -> bool {
    line.is("client-cert") || line.is("client-cert-chain")
}

fn remove_forwarded(message: &mut Message, _: &FormExchange<'_>) {
    message.fields.retain(|line| !is_forwarded(line));
}

fn remove_certificate(message: &mut Message, _: &FormExchange<'_>) {
    message.fields.retain(|line| !is_certificate(line));
}

fn set_host(message: &mut Message, exchange: &FormExchange<'_>) {
    if exchange.received.protocol == Protocol::Http1
        && let Some((_, authority)) = message.origin.take()
    {
        message.fields.push(FieldLine::new(b"host", &authority));
        message.protocol = Protocol::Http1;
    }
}

fn add_forwarded(message: &mut Message, exchange: &FormExchange<'_>) {
    let host = authority(&exchange.form.message);
    for (name, value) in [
        ("x-forwarded-for", &b"127.0.0.1"[..]),
        ("x-forwarded-proto", b"http"),
        ("x-forwarded-host", host),
    ] {
        let line = FieldLine::new(name.as_bytes(), value);
        message.fields.push(line);
    }
}

fn append_via(message: &mut Message, exchange: &FormExchange<'_>) {
    let us: &[u8] = match exchange.form.message.protocol {
        Protocol::Http1 => b"1.1 posthaste",
        Protocol::Http2 => b"2.0 posthaste",
    };
    message.fields.push(FieldLine::new(b"via", us));
    gather(&mut message.fields);
}

/// Validators of a list, without a `W/` before them if it is weak.
fn validators(list: &[u8]) -> Vec<(bool, &[u8])> {
    let tags = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    tags.map(|tag| match tag.strip_prefix(b"W/") {
        Some(strong) => (true, strong),
        None => (false, tag),
    })
    .collect()
}

fn strengthen(message: &mut Message, exchange: &FormExchange<'_>) {
    if is_for(exchange.form, PLAIN_HOST) {
        return;
    }
    for line in &mut message.fields {
        if line.is("if-match") {
            let tags = validators(line.value()).into_iter();
            let tags: Vec<_> = tags.map(|(_, strong)| strong).collect();
            *line = FieldLine::new(b"if-match", &tags.join(&b", "[..]));
        }
    }
}

fn add_strong(message: &mut Message, exchange: &FormExchange<'_>) {
    if is_for(exchange.form, PLAIN_HOST) {
        return;
    }
    for line in &mut message.fields {
        if line.is("if-none-match") {
            let mut list = line.value().to_vec();
            for (_, strong) in validators(line.value()).iter().filter(|(weak, _)| *weak) {
                list.extend_from_slice(b", ");
                list.extend_from_slice(strong);
            }
            *line = FieldLine::new(b"if-none-match", &list);
        }
    }
}

/// Chunks of the gateway's own sizes: those are taken by [`take_chunk_sizes`].
fn make_chunks(message: &mut Message, exchange: &FormExchange<'_>) {
    let sent = &exchange.form.message;
    let is_without_end =
        exchange.form.sends_empty_data || !(message.content.is_empty() && sent.trailers.is_empty());
    if sent.protocol == Protocol::Http2
        && message.protocol == Protocol::Http1
        && is_without_end
        && !message.has("content-length")
    {
        let line = FieldLine::new(b"transfer-encoding", b"chunked");
        message.fields.push(line);
        message.chunks = exchange.received.chunks.clone();
    }
}

/// The gateway writes Transfer-Encoding of its own, behind all other fields.
fn restate_coding(message: &mut Message, exchange: &FormExchange<'_>) {
    if exchange.received.protocol == Protocol::Http1 && message.has("transfer-encoding") {
        message.fields.retain(|line| !line.is("transfer-encoding"));
        let line = FieldLine::new(b"transfer-encoding", b"chunked");
        message.fields.push(line);
    }
}

fn make_http2(message: &mut Message, exchange: &FormExchange<'_>) {
    if exchange.received.protocol == Protocol::Http2 && message.protocol == Protocol::Http1 {
        let host = authority(message).to_vec();
        message.origin = Some((b"http".to_vec(), host));
        let is_gone = |line: &FieldLine| line.is("host") || line.is("transfer-encoding");
        message.fields.retain(|line| !is_gone(line));
        message.chunks = None;
        message.protocol = Protocol::Http2;
    }
}

fn drop_unannounced(message: &mut Message, _: &FormExchange<'_>) {
    if message.protocol == Protocol::Http1 {
        let values = message.lines("trailer").map(FieldLine::value);
        let names = values.flat_map(|value| value.split(|byte| *byte == b','));
        let names: Vec<_> = names
            .map(|name| name.trim_ascii().to_ascii_lowercase())
            .collect();
        message.trailers.retain(|line| names.contains(&line.name));
    }
}

fn drop_head_trailers(message: &mut Message, _: &FormExchange<'_>) {
    const NAMES: [&str; 15] = [
        "authorization",
        "cache-control",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "host",
        "max-forwards",
        "range",
        "set-cookie",
        "trailer",
        "www-authenticate",
        "if-match",
    ];
    let is_for_head = |line: &FieldLine| NAMES.iter().any(|name| line.is(name));
    message.trailers.retain(|line| !is_for_head(line));
}

fn drop_client_trailers(message: &mut Message, _: &FormExchange<'_>) {
    let is_about_client = |line: &FieldLine| is_forwarded(line) || is_certificate(line);
    message.trailers.retain(|line| !is_about_client(line));
}

/// Takes over the chunks that arrived, if they have the content and no extensions.
fn take_chunk_sizes(message: &mut Message, exchange: &FormExchange<'_>) {
    let received = exchange.received;
    let Some(chunks) = &received.chunks else {
        return;
    };
    let sizes_only = plain_chunks(chunks, received.content.len());
    if message.chunks.is_some() && message.content == received.content && sizes_only {
        message.chunks = Some(chunks.clone());
    }
}

/// True if chunks around a content of this length have nothing but sizes, without zeros before them.
fn plain_chunks(mut chunks: &[u8], mut length: usize) -> bool {
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&chunks[..end]).unwrap_or_default();
        let number = usize::from_str_radix(size, 16).unwrap_or(usize::MAX);
        if !format!("{number:x}").eq_ignore_ascii_case(size) || number > length {
            return false;
        }
        if number == 0 {
            return length == 0 && chunks.len() == end + 2;
        }
        length -= number;
        chunks = &chunks[end + 2 + number + 2..];
    }
    false
}

/// Takes over the places of added fields that arrived, if all other lines are where they should be.
fn take_places(message: &mut Message, exchange: &FormExchange<'_>) {
    let sent = &exchange.form.message;
    let is_sent = |line: &&FieldLine| sent.fields.iter().any(|sent| same_name(sent, line));
    let (wanted, received) = (&message.fields, &exchange.received.fields);
    let [wanted_sent, received_sent] =
        [wanted, received].map(|lines| lines.iter().filter(is_sent).collect::<Vec<_>>());
    if wanted_sent == received_sent && has_same_lines(wanted, received) {
        message.fields = received.clone();
    }
}

/// Takes over the order of names that arrived, if a name that was sent is missing in it.
fn take_order(message: &mut Message, exchange: &FormExchange<'_>) {
    let (sent, received) = (&exchange.form.message, exchange.received);
    for (lines, sent, received) in [
        (&mut message.fields, &sent.fields, &received.fields),
        (&mut message.trailers, &sent.trailers, &received.trailers),
    ] {
        let is_missing = |sent: &FieldLine| !received.iter().any(|line| same_name(sent, line));
        if sent.iter().any(is_missing) && has_same_lines(lines, received) {
            *lines = received.clone();
        }
    }
}

fn same_name(a: &FieldLine, b: &FieldLine) -> bool {
    a.name.eq_ignore_ascii_case(&b.name)
}

/// True if `received` has exactly these lines, and those of each name together and in this order.
fn has_same_lines(wanted: &[FieldLine], received: &[FieldLine]) -> bool {
    let by_name = |lines: &[FieldLine]| {
        let mut sorted = lines.to_vec();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        sorted
    };
    let mut gathered = received.to_vec();
    gather(&mut gathered);
    gathered == received && by_name(wanted) == by_name(received)
}

#[cfg(test)]
mod tests {
    use super::super::forms::forms;
    use super::super::message::parse;
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../../docs/reference/gateway-messages.md");

    fn in_one_line(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_rule_is_documented() {
        let document = in_one_line(DOCUMENT);
        for rule in RULES {
            let text = in_one_line(rule.documented);
            assert!(document.contains(&text), "{}: {text}", rule.name);
        }
    }

    /// The first form as the rules predict it, if `received` arrives.
    fn predicted(received: &str) -> Message {
        let form = forms().swap_remove(0);
        let received = &parse(received.as_bytes()).unwrap().0;
        predict(&FormExchange {
            form: &form,
            received,
        })
        .0
    }

    #[test]
    fn chunks_have_sizes_only() {
        assert!(plain_chunks(b"2\r\nhe\r\n3\r\nllo\r\n0\r\n", 5));
        assert!(plain_chunks(b"0\r\n", 0));
        for chunks in [
            "5;a\r\nhello\r\n0\r\n",
            "05\r\nhello\r\n0\r\n",
            "5\r\nhello\r\n00\r\n",
        ] {
            assert!(!plain_chunks(chunks.as_bytes(), 5), "{chunks}");
        }
    }

    #[test]
    fn changes_without_a_rule_are_not_predicted() {
        const FIELDS: &str = "x-forwarded-for: 127.0.0.1\r\nx-forwarded-proto: http\r\n\
                              x-forwarded-host: shop.example\r\nvia: 1.1 posthaste\r\n";
        let good = format!("GET / HTTP/1.1\r\nhost: shop.example\r\n{FIELDS}\r\n");
        let is_predicted = |text: &str| {
            let received = parse(text.as_bytes()).unwrap().0;
            predicted(text) == received
        };
        assert!(is_predicted(&good));
        for (from, to) in [
            ("GET /", "GET /?"),
            ("GET", "get"),
            ("host:", "Host:"),
            ("http\r", "http \r"),
            ("via: 1.1 posthaste\r\n", ""),
            ("via", "x: y\r\nvia"),
            ("posthaste", "other"),
        ] {
            assert!(!is_predicted(&good.replacen(from, to, 1)), "{from} {to}");
        }
    }
}
