//! Forms of requests: products of the [`tables`](super::tables), for clients with both protocols.

use super::message::{FieldLine, Message, Protocol};
use super::tables::{
    CONTENTS, FIELDS, HOST, METHODS, PLAIN_FIELDS, PLAIN_HOST, RENAMED_HOST, RENAMED_TARGETS,
    SendingClients, TARGETS, TRAILERS,
};

/// Lengths of values, in bytes. A name with the longest one fits into the buffer of HAProxy.
const VALUE_LENGTHS: [usize; 3] = [127, 1_000, 12_000];

/// Numbers of fields. All readers accept a hundred.
const FIELD_COUNTS: [usize; 2] = [20, 90];

/// Length of a long body, in bytes. It fits into the initial window of HTTP/2.
const LONG_CONTENT: usize = 40_000;

/// A request as a client sends it.
pub(super) struct SentForm {
    pub(super) about: String,
    pub(super) message: Message,
    /// The client sends the body when it has 100.
    pub(super) waits_for_continue: bool,
    /// A request of HTTP/2 without content ends with an empty frame.
    pub(super) sends_empty_data: bool,
}

/// Framing of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Content-Length.
    Length,
    /// One chunk, or HTTP/2 without Content-Length.
    Whole,
    /// Several chunks with zeros before their size, digits in both cases, and extensions.
    Pieces,
}

impl Framing {
    /// Framings of a protocol.
    fn all(protocol: Protocol) -> &'static [Self] {
        match protocol {
            Protocol::Http1 => &[Self::Length, Self::Whole, Self::Pieces],
            Protocol::Http2 => &[Self::Length, Self::Whole],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Whole => "no length",
            Self::Pieces => "several chunks",
        }
    }
}

/// All forms.
pub(super) fn forms() -> Vec<SentForm> {
    let forms = |protocol| {
        let lines = methods(protocol).chain(targets(protocol));
        let heads = lines.chain(fields(protocol)).chain(generated(protocol));
        let bodies = bodies(protocol).chain(expectations(protocol));
        heads.chain(bodies).chain(trailers(protocol))
    };
    Protocol::BOTH.into_iter().flat_map(forms).collect()
}

fn methods(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let each = move |method: &&str| SentForm::new(protocol, method, "/", HOST, b"");
    let asterisk = SentForm::new(protocol, "OPTIONS", "*", HOST, b"");
    METHODS.iter().map(each).chain([asterisk])
}

fn targets(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let sent = TARGETS
        .iter()
        .filter(move |part| can_send(protocol, part.0));
    let each = move |(_, target): &(_, &str)| SentForm::new(protocol, "GET", target, HOST, b"");
    let renamed = RENAMED_TARGETS.iter();
    sent.map(each)
        .chain(renamed.map(move |target| SentForm::new(protocol, "GET", target, RENAMED_HOST, b"")))
}

fn fields(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let sent = FIELDS.iter().filter(move |part| can_send(protocol, part.0));
    let plain = PLAIN_FIELDS.iter();
    sent.map(move |(_, lines)| SentForm::new(protocol, "GET", "/", HOST, lines))
        .chain(plain.map(move |lines| SentForm::new(protocol, "GET", "/", PLAIN_HOST, lines)))
}

/// Long values, many fields and long paths.
fn generated(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let long = VALUE_LENGTHS.map(|length| {
        let line = format!("x-long: {}", "ab".repeat(length / 2));
        let mut form = SentForm::new(protocol, "GET", "/", HOST, line.as_bytes());
        form.about = format!("{protocol}: value of {length} bytes");
        form
    });
    let many = FIELD_COUNTS.map(|count| {
        let lines: Vec<_> = (0..count).map(|n| format!("x-{n}: {n}")).collect();
        let mut form = SentForm::new(protocol, "GET", "/", HOST, lines.join("\n").as_bytes());
        form.about = format!("{protocol}: {count} fields");
        form
    });
    let target = format!("/{}?{}", "a/".repeat(2_000), "b=c&".repeat(500));
    let mut path = SentForm::new(protocol, "GET", &target, HOST, b"");
    path.about = format!("{protocol}: target of {} bytes", target.len());
    long.into_iter().chain(many).chain([path])
}

fn bodies(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let contents = CONTENTS.iter().map(|(about, fields, content)| {
        let content = content.to_vec();
        (*about, *fields, content)
    });
    let long = (0..LONG_CONTENT).map(|n| (n % 251) as u8).collect();
    let all = contents.chain([("long", &b""[..], long)]);
    all.flat_map(move |(about, fields, content)| {
        let each = move |framing: &Framing| {
            let mut form = SentForm::new(protocol, "POST", "/", HOST, fields);
            form.add_body(&content, *framing, b"");
            form.about = format!("{protocol}: body: {about}, {}", framing.name());
            form
        };
        Framing::all(protocol).iter().map(each)
    })
}

/// Bodies with `Expect: 100-continue`, of a client that waits and of one that does not. A client with HTTP/2 does not
/// wait: the gateway sends it no 100, as documented.
fn expectations(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    let each = move |framing: &Framing| {
        let framing = *framing;
        let clients = match protocol {
            Protocol::Http1 => &[true, false][..],
            Protocol::Http2 => &[false],
        };
        clients.iter().map(move |waits| {
            let waits = *waits;
            let mut form = SentForm::new(protocol, "PUT", "/", HOST, b"expect: 100-continue");
            form.add_body(b"hello", framing, b"");
            form.waits_for_continue = waits;
            let does = if waits { "waits" } else { "does not wait" };
            form.about = format!("{protocol}: expects 100, {does}, {}", framing.name());
            form
        })
    };
    Framing::all(protocol).iter().flat_map(each)
}

fn trailers(protocol: Protocol) -> impl Iterator<Item = SentForm> {
    TRAILERS.iter().flat_map(move |(fields, trailers)| {
        [&b"hello"[..], b""].map(|content| {
            let mut form = SentForm::new(protocol, "POST", "/", HOST, fields);
            form.add_body(content, Framing::Whole, trailers);
            let (fields, trailers) = (fields.escape_ascii(), trailers.escape_ascii());
            let length = content.len();
            form.about =
                format!("{protocol}: trailers \"{trailers}\" behind {length} bytes, \"{fields}\"");
            form
        })
    })
}

fn can_send(protocol: Protocol, clients: SendingClients) -> bool {
    protocol == Protocol::Http1 || clients == SendingClients::Both
}

impl SentForm {
    /// A request without a body.
    fn new(protocol: Protocol, method: &str, target: &str, host: &str, lines: &[u8]) -> Self {
        let mut fields = parse_lines(protocol, lines);
        let mut origin = None;
        if protocol == Protocol::Http2 {
            origin = Some((b"http".to_vec(), host.as_bytes().to_vec()));
        } else if !fields.iter().any(|line| line.is("host")) {
            fields.insert(0, FieldLine::new(b"host", host.as_bytes()));
        }
        Self {
            about: format!(
                "{protocol}: {method} {target} at {host} \"{}\"",
                lines.escape_ascii()
            ),
            message: Message {
                protocol,
                method: method.into(),
                target: target.into(),
                origin,
                fields,
                content: Vec::new(),
                chunks: None,
                trailers: Vec::new(),
            },
            waits_for_continue: false,
            sends_empty_data: false,
        }
    }

    fn add_body(&mut self, content: &[u8], framing: Framing, trailers: &[u8]) {
        let message = &mut self.message;
        message.content = content.to_vec();
        message.trailers = parse_lines(message.protocol, trailers);
        if framing == Framing::Length {
            let length = content.len().to_string();
            let line = FieldLine::new(b"content-length", length.as_bytes());
            message.fields.push(line);
        } else if message.protocol == Protocol::Http1 {
            let line = FieldLine::new(b"transfer-encoding", b"chunked");
            message.fields.push(line);
            message.chunks = Some(chunks(content, framing));
        } else {
            self.sends_empty_data = content.is_empty();
        }
    }
}

/// Content as chunks, up to the line of the last one.
fn chunks(content: &[u8], framing: Framing) -> Vec<u8> {
    let mut chunks = Vec::new();
    let is_whole = framing == Framing::Whole;
    let (size, last) = if is_whole {
        (content.len().max(1), "0\r\n")
    } else {
        (content.len() / 7 + 1, "000;last\r\n")
    };
    for (number, piece) in content.chunks(size).enumerate() {
        let length = piece.len();
        let line = match number % 2 {
            _ if is_whole => format!("{length:x}\r\n"),
            0 => format!("0{length:X};a=b\r\n"),
            _ => format!("{length:x};a=\"b;c\"\r\n"),
        };
        chunks.extend_from_slice(line.as_bytes());
        chunks.extend_from_slice(piece);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(last.as_bytes());
    chunks
}

fn parse_lines(protocol: Protocol, lines: &[u8]) -> Vec<FieldLine> {
    let lines = lines.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let parsed = lines.filter_map(FieldLine::parse);
    parsed
        .map(|line| match protocol {
            Protocol::Http1 => line,
            Protocol::Http2 => FieldLine::new(&line.name.to_ascii_lowercase(), line.value()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::message::parse;
    use super::*;

    #[test]
    fn forms_differ_and_are_whole() {
        let forms = forms();
        let mut names: Vec<_> = forms.iter().map(|form| &form.about).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), forms.len());
        for form in forms {
            if form.message.protocol == Protocol::Http1 {
                let bytes = form.message.http1_bytes();
                let (parsed, length) = parse(&bytes).unwrap();
                assert_eq!(
                    (parsed, length),
                    (form.message, bytes.len()),
                    "{}",
                    form.about
                );
            }
        }
    }
}
