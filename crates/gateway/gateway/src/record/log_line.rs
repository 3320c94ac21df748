//! Lines of the access log, as JSON or in the combined format.
//!
//! Pure: the facts are arguments. Every text from outside is limited to [`MOST`] bytes. Control characters cannot end a
//! line or reach a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use posthaste_gateway_config::{LogFormat, QueryLogging};

use crate::client_address::ClientAddress;

/// Maximum length of a text from outside, in bytes. A longer one is cut.
pub(super) const MOST: usize = 1024;
/// End of a text that was cut.
const CUT: &str = "…";

/// The log line of one reply.
#[derive(Debug, Serialize)]
pub(super) struct AccessLine<'a> {
    /// Seconds since 1970, when the line is written: at the end of the reply.
    pub(super) time: f64,
    pub(super) client: ClientAddress,
    /// Name of the account, if one was identified. It needs no escapes.
    pub(super) account: Option<&'a str>,
    #[serde(flatten)]
    pub(super) request: RequestText<'a>,
    pub(super) status: u16,
    /// Body of the request, as received.
    pub(super) request_bytes: u64,
    /// Body of the reply, as sent to the client. `None` if the server below the gateway replied.
    pub(super) bytes: Option<u64>,
    /// The reply was given to the connection to its end.
    pub(super) complete: Option<bool>,
    pub(super) route: Option<&'a str>,
    pub(super) tier: Option<&'a str>,
    pub(super) upstream: Option<&'a str>,
    /// The offer that has selected the upstream.
    pub(super) offer: Option<&'a str>,
    /// From the head of the request to the head of the reply.
    pub(super) milliseconds: f64,
    pub(super) phases: Phases,
    pub(super) wish: Option<&'static str>,
    pub(super) origin: Option<&'static str>,
    pub(super) reason: Option<&'static str>,
    /// The rule that the request violates, if the server below the gateway rejected it.
    pub(super) error: Option<Cow<'a, str>>,
    /// Reason for which the policy would have rejected a request that a dry run admitted.
    pub(super) dry_run: Option<&'static str>,
    pub(super) traceparent: Option<Cow<'a, str>>,
}

/// The head of a request, as text.
#[derive(Debug, Default, Serialize)]
pub(super) struct RequestText<'a> {
    /// `None` if the request could not be read.
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) path: Option<Cow<'a, str>>,
    pub(super) query: Option<Cow<'a, str>>,
    pub(super) version: &'static str,
    pub(super) host: Option<Cow<'a, str>>,
    pub(super) user_agent: Option<Cow<'a, str>>,
    pub(super) referer: Option<Cow<'a, str>>,
}

/// Times of the phases of a request, in milliseconds. `None` if a phase did not happen.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Phases {
    /// From the head of the request to its admission.
    pub(super) receive: Option<f64>,
    /// Until a permit was free.
    pub(super) queue: Option<f64>,
    /// Until the head of the upstream's reply.
    pub(super) upstream: Option<f64>,
    /// Until the head of the gateway's reply.
    pub(super) compress: Option<f64>,
    /// Until the end of the reply.
    pub(super) body: Option<f64>,
    /// All of it.
    pub(super) total: f64,
}

impl AccessLine<'_> {
    /// Formats the line, with its line break.
    pub(super) fn text(&self, format: LogFormat) -> Vec<u8> {
        match format {
            LogFormat::Json => {
                let text = serde_json::to_vec(self);
                let mut text = text.expect("numbers and strings are JSON");
                text.push(b'\n');
                text
            }
            LogFormat::Combined => self.combined().into_bytes(),
        }
    }

    /// `%h - account [time] "METHOD target VERSION" status bytes "referer" "user-agent"`, as Apache's log module.
    fn combined(&self) -> String {
        let mut line = String::with_capacity(256);
        let time = Timestamp::from_millisecond((self.time * 1e3) as i64).unwrap_or_default();
        let time = time.strftime("%d/%b/%Y:%H:%M:%S +0000");
        // Writing to a string cannot fail.
        let account = self.account.unwrap_or("-");
        let _ = write!(line, "{} - {account} [{time}] \"", self.client);
        self.request_line(&mut line);
        let _ = write!(line, "\" {} ", self.status);
        match self.bytes {
            None | Some(0) => line.push('-'),
            Some(bytes) => drop(write!(line, "{bytes}")),
        }
        for text in [&self.request.referer, &self.request.user_agent] {
            line.push_str(" \"");
            escape(&mut line, text.as_deref().unwrap_or("-"));
            line.push('"');
        }
        line.push('\n');
        line
    }

    /// Appends `METHOD target VERSION`, or `-` for a request that could not be read.
    fn request_line(&self, line: &mut String) {
        let (Some(method), Some(path)) = (&self.request.method, &self.request.path) else {
            line.push('-');
            return;
        };
        escape(line, method);
        line.push(' ');
        escape(line, path);
        if let Some(query) = &self.request.query {
            line.push('?');
            escape(line, query);
        }
        let version = match self.request.version {
            "HTTP/2" => "HTTP/2.0",
            other => other,
        };
        let _ = write!(line, " {version}");
    }
}

/// Appends `text` with `"`, `\` and everything but printable ASCII as `\xHH`.
fn escape(line: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => line.extend(['\\', char::from(byte)]),
            b' '..=b'~' => line.push(char::from(byte)),
            _ => drop(write!(line, "\\x{byte:02x}")),
        }
    }
}

/// Text of bytes from outside: limited, valid, and without control characters that JSON would not escape.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let is_cut = bytes.len() > MOST;
    let mut end = bytes.len().min(MOST);
    if is_cut {
        // Not within a character: all bytes of one but the first are 0b10xx_xxxx.
        let is_inside = |end: usize| bytes[end] & 0xc0 == 0x80;
        end = (MOST - 3..=MOST)
            .rev()
            .find(|end| !is_inside(*end))
            .unwrap_or(MOST);
    }
    let mut text = String::from_utf8_lossy(&bytes[..end]);
    let is_hidden = |c: char| c.is_control() && !c.is_ascii() || c == '\u{7f}';
    if text.contains(is_hidden) {
        text = Cow::Owned(text.replace(is_hidden, "\u{fffd}"));
    }
    if is_cut {
        text.to_mut().push_str(CUT);
    }
    text
}

/// The query as configured. `None` without one, and if it is omitted.
pub(super) fn query(query: Option<&str>, logging: QueryLogging) -> Option<Cow<'_, str>> {
    let query = query?;
    match logging {
        QueryLogging::Omit => None,
        QueryLogging::Keep => Some(text(query.as_bytes())),
        QueryLogging::Redact => Some(text(redact(query).as_bytes()).into_owned().into()),
    }
}

/// Replaces the value of each parameter by `*`. A parameter without a name is a value.
fn redact(query: &str) -> String {
    // The cut text is at most MOST bytes; more is not needed.
    let mut redacted = String::with_capacity(query.len().min(MOST + 1));
    for (index, parameter) in query.split('&').enumerate() {
        if redacted.len() > MOST {
            break;
        }
        if index > 0 {
            redacted.push('&');
        }
        match parameter.split_once('=') {
            Some((name, _)) => redacted.extend([name, "=*"]),
            None if parameter.is_empty() => {}
            None => redacted.push('*'),
        }
    }
    redacted
}

/// The field `Referer`: a URL whose query is treated like the request's own. Credentials are removed.
pub(super) fn referer(field: &[u8], logging: QueryLogging) -> Cow<'_, str> {
    if logging == QueryLogging::Keep {
        return text(field);
    }
    let url = String::from_utf8_lossy(field);
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (location, rest) = url.split_at(end);
    let mut kept = match location.split_once("//") {
        Some((scheme, address)) => {
            let authority = address.find('/').unwrap_or(address.len());
            let start = address[..authority].rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}//{}", &address[start..])
        }
        None => location.to_owned(),
    };
    if logging == QueryLogging::Redact && !rest.is_empty() {
        kept.push_str(&rest[..1]);
        kept.push_str(&redact(&rest[1..]));
    }
    Cow::Owned(text(kept.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn line() -> AccessLine<'static> {
        AccessLine {
            time: 1_700_000_000.25,
            client: ClientAddress::Known("2001:db8::1".parse().unwrap()),
            account: None,
            request: RequestText {
                method: Some("GET".into()),
                path: Some("/a".into()),
                query: Some("b=*".into()),
                version: "HTTP/1.1",
                host: Some("shop".into()),
                ..RequestText::default()
            },
            status: 200,
            request_bytes: 0,
            bytes: Some(0),
            complete: Some(true),
            route: Some("/"),
            tier: None,
            upstream: None,
            offer: None,
            milliseconds: 1.5,
            phases: Phases::default(),
            wish: None,
            origin: None,
            reason: None,
            error: None,
            dry_run: None,
            traceparent: None,
        }
    }

    #[test]
    fn the_combined_format_is_apaches() {
        let mut line = line();
        let text =
            |line: &AccessLine<'_>| String::from_utf8(line.text(LogFormat::Combined)).unwrap();
        assert_eq!(
            text(&line),
            "2001:db8::1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a?b=* HTTP/1.1\" 200 - \"-\" \"-\"\n"
        );
        line.bytes = Some(17);
        line.request.query = None;
        line.request.version = "HTTP/2";
        line.request.referer = Some("https://a/\"\\".into());
        line.request.user_agent = Some("x\n\u{1b}[2J ü…".into());
        assert_eq!(
            text(&line),
            "2001:db8::1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a HTTP/2.0\" 200 17 \
             \"https://a/\\\"\\\\\" \"x\\x0a\\x1b[2J \\xc3\\xbc\\xe2\\x80\\xa6\"\n"
        );
    }

    #[test]
    fn an_unreadable_request_has_no_request_line() {
        let mut line = line();
        (line.request.method, line.request.path, line.request.query) = (None, None, None);
        (line.status, line.bytes) = (400, None);
        let text = String::from_utf8(line.text(LogFormat::Combined)).unwrap();
        assert!(text.ends_with("+0000] \"-\" 400 - \"-\" \"-\"\n"), "{text}");
    }

    #[test]
    fn a_line_of_json_is_one_line_whatever_it_holds() {
        let mut line = line();
        line.request.user_agent = Some(text(b"a\n\"\\\x00\x1b\xff\xc2\x9b\x7f"));
        let text = String::from_utf8(line.text(LogFormat::Json)).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert!(!text.trim_end().contains(char::is_control), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read["user_agent"],
            "a\n\"\\\0\u{1b}\u{fffd}\u{fffd}\u{fffd}"
        );
        let phases = &read["phases"];
        assert_eq!(
            (&phases["total"], &phases["queue"]),
            (&0.0.into(), &serde_json::Value::Null)
        );
    }

    #[test]
    fn values_of_parameters_are_redacted_and_names_stay() {
        let redacted = |text| {
            query(Some(text), QueryLogging::Redact)
                .unwrap()
                .into_owned()
        };
        assert_eq!(redacted("a=1&b=2"), "a=*&b=*");
        assert_eq!(redacted("a=1=2;c=3&&d="), "a=*&&d=*");
        assert_eq!(redacted("token-without-name&x=1"), "*&x=*");
        assert_eq!(redacted(""), "");
        assert_eq!(query(Some("a=1"), QueryLogging::Keep).unwrap(), "a=1");
        assert_eq!(query(Some("a=1"), QueryLogging::Omit), None);
        assert_eq!(query(None, QueryLogging::Redact), None);
    }

    #[test]
    fn a_referer_keeps_no_secret() {
        let logged = |field: &'static str, logging| referer(field.as_bytes(), logging).into_owned();
        let url = "https://me:pw@shop/a/b@c?token=secret#part";
        assert_eq!(
            logged(url, QueryLogging::Redact),
            "https://shop/a/b@c?token=*"
        );
        assert_eq!(logged(url, QueryLogging::Omit), "https://shop/a/b@c");
        assert_eq!(logged(url, QueryLogging::Keep), url);
        assert_eq!(
            logged("https://shop/#secret", QueryLogging::Redact),
            "https://shop/#*"
        );
        assert_eq!(logged("?secret", QueryLogging::Redact), "?*");
        assert_eq!(logged("nothing", QueryLogging::Redact), "nothing");
    }

    #[test]
    fn any_bytes_make_one_line_that_can_be_read() {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(11);
        let special = b"\"\\?&=#@/\n\r\x00\x1b\x7f\xc2\x9b\xff ";
        for round in 0..2000 {
            let length = draws.random_range(0..2500);
            let bytes: Vec<u8> = (0..length)
                .map(|_| match draws.random_range(0..3) {
                    0 => special[draws.random_range(0..special.len())],
                    1 => draws.random_range(b'a'..=b'z'),
                    _ => draws.random(),
                })
                .collect();
            let all = [QueryLogging::Redact, QueryLogging::Keep, QueryLogging::Omit];
            let logging = all[round % all.len()];
            let lossy = String::from_utf8_lossy(&bytes);
            let mut line = line();
            line.request.user_agent = Some(text(&bytes));
            line.request.referer = Some(referer(&bytes, logging));
            line.request.query = query(Some(&lossy), logging);
            let json = line.text(LogFormat::Json);
            let read: serde_json::Value = serde_json::from_slice(&json).unwrap();
            assert_eq!(
                read["user_agent"],
                *line.request.user_agent.clone().unwrap()
            );
            let combined = line.text(LogFormat::Combined);
            let inside = combined.strip_suffix(b"\n").unwrap();
            assert!(inside.iter().all(|byte| matches!(byte, b' '..=b'~')));
            assert_eq!(unescaped_quotes(inside), 6);
            assert!(json.len() < 20_000 && combined.len() < 20_000);
        }
    }

    fn unescaped_quotes(line: &[u8]) -> usize {
        let (mut count, mut is_escaped) = (0, false);
        for byte in line {
            count += usize::from(*byte == b'"' && !is_escaped);
            is_escaped = *byte == b'\\' && !is_escaped;
        }
        count
    }

    #[test]
    fn long_texts_are_cut_and_marked() {
        let long = "ü".repeat(2000);
        let cut = text(long.as_bytes());
        assert_eq!(cut.len(), MOST + CUT.len());
        assert!(cut.ends_with("ü…"));
        // An odd start: the last character would be cut in half.
        let cut = text(&long.as_bytes()[1..]);
        assert!(cut.starts_with('\u{fffd}') && cut.ends_with("ü…"), "{cut}");
        let whole = "x".repeat(MOST);
        assert_eq!(text(whole.as_bytes()), whole);
        let parameters = "a=1&".repeat(100_000);
        let redacted = query(Some(&parameters), QueryLogging::Redact).unwrap();
        assert!(redacted.len() <= MOST + CUT.len() && redacted.ends_with(CUT));
    }
}
