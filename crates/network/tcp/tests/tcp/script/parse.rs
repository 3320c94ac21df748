//! Parser of script lines: time and event.

use posthaste_units::Span;

use super::expect::Quantity;
use super::settings::Settings;
use super::tokens::Tokens;

/// A whole script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) settings: Settings,
    pub(super) lines: Vec<ScriptLine>,
}

/// One line with an event.
#[derive(Clone, Debug)]
pub(super) struct ScriptLine {
    /// Line number, from one.
    pub(super) number: usize,
    pub(super) text: String,
    /// None: the same instant as the previous line.
    pub(super) time: Option<Time>,
    /// Tolerance of the time on this line.
    pub(super) tolerance: Option<Span>,
    pub(super) event: ScriptEvent,
}

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Time since the beginning.
    At(Span),
    /// Time after the previous line.
    After(Span),
}

/// Kind of an event.
#[derive(Clone, Debug)]
pub(super) enum ScriptEvent {
    /// `<`: the peer sends these.
    In(Vec<WrittenSegment>),
    /// `>`: the endpoint sends these.
    Out(Vec<WrittenSegment>),
    Listen,
    Connect,
    /// A whole handshake opened by the peer, with the given round-trip time.
    Accepted(Span),
    /// The same, opened by this end.
    Connected(Span),
    Write {
        bytes: u64,
        taken: u64,
    },
    /// Number of bytes. None for all.
    Read(Option<u64>),
    Close,
    Leave,
    Abort,
    /// `> ...`: any segments sent by now.
    Anything,
    /// No segment up to now.
    Quiet,
    Expect(Quantity),
}

/// A segment as written. Missing fields are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenSegment {
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) psh: bool,
    pub(super) data: Option<[i64; 2]>,
    pub(super) seq: Option<i64>,
    pub(super) ack: Option<i64>,
    pub(super) no_ack: bool,
    pub(super) window: Option<u64>,
    pub(super) mss: Option<u16>,
    pub(super) scale: Option<u8>,
    pub(super) sack_ok: bool,
    pub(super) timestamps: Option<[u32; 2]>,
    /// The echo alone, for an expected segment.
    pub(super) echo: Option<u32>,
    /// The echo is that of the first transmission.
    pub(super) echo_original: bool,
    /// A timestamp value this long before the peer's clock.
    pub(super) old_timestamp: Option<Span>,
    pub(super) sack: Vec<[i64; 2]>,
    /// Options that must be absent, or are omitted.
    pub(super) without: Vec<String>,
}

/// Parses a script. The error names the line.
pub(super) fn script(text: &str) -> Result<Script, String> {
    let mut settings = Settings::default();
    let mut lines = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        let at = |error: String| format!("line {number}: {}\n  {error}", text.trim());
        if lines.is_empty() && settings.read(text).map_err(at)? {
            continue;
        }
        if Tokens::split(text).is_empty() {
            continue;
        }
        lines.push(line(number, text).map_err(at)?);
    }
    settings.check()?;
    Ok(Script { settings, lines })
}

fn line(number: usize, text: &str) -> Result<ScriptLine, String> {
    let mut tokens = Tokens::split(text);
    let first = tokens.peek().unwrap_or_default();
    let is_time = first.starts_with(|c: char| c.is_ascii_digit() || c == '+');
    let (mut time, mut tolerance) = (None, None);
    if is_time {
        tokens.next();
        let (word, about) = match first.split_once('~') {
            Some((word, about)) => (word, Some(about)),
            None => (first, None),
        };
        let span = |text: &str| {
            let read = text.parse::<Span>();
            read.map_err(|error| error.to_string())
        };
        time = Some(match word.strip_prefix('+') {
            Some(after) => Time::After(span(after)?),
            None => Time::At(span(word)?),
        });
        tolerance = about.map(span).transpose()?;
    }
    let event = event(&mut tokens)?;
    tokens.end()?;
    Ok(ScriptLine {
        number,
        text: text.to_owned(),
        time,
        tolerance,
        event,
    })
}

fn event(tokens: &mut Tokens) -> Result<ScriptEvent, String> {
    Ok(match tokens.next().unwrap_or_default() {
        ">" if tokens.take("...") => ScriptEvent::Anything,
        "<" => ScriptEvent::In(segments(tokens)?),
        ">" => ScriptEvent::Out(segments(tokens)?),
        "listen" => ScriptEvent::Listen,
        "connect" => ScriptEvent::Connect,
        "accepted" => ScriptEvent::Accepted(tokens.span()?),
        "connected" => ScriptEvent::Connected(tokens.span()?),
        "write" => {
            let bytes = tokens.value("bytes")?;
            let taken = if tokens.take("takes") {
                tokens.value("bytes")?
            } else {
                bytes
            };
            ScriptEvent::Write { bytes, taken }
        }
        "read" if tokens.take("all") => ScriptEvent::Read(None),
        "read" => ScriptEvent::Read(Some(tokens.value("bytes")?)),
        "close" => ScriptEvent::Close,
        "leave" => ScriptEvent::Leave,
        "abort" => ScriptEvent::Abort,
        "quiet" => ScriptEvent::Quiet,
        "expect" => ScriptEvent::Expect(Quantity::read(tokens)?),
        other => return Err(format!("{other:?} is nothing that happens")),
    })
}

/// Parses one segment or, with `by`, as many as the data needs.
fn segments(tokens: &mut Tokens) -> Result<Vec<WrittenSegment>, String> {
    let mut segment = WrittenSegment::default();
    let mut by = None;
    segment.data = tokens.range();
    while let Some(word) = tokens.next() {
        match word {
            "by" => by = Some(tokens.value::<i64>("bytes")?),
            "syn" => segment.syn = true,
            "fin" => segment.fin = true,
            "rst" => segment.rst = true,
            "psh" => segment.psh = true,
            "seq" => segment.seq = Some(tokens.value("a number")?),
            "ack" => segment.ack = Some(tokens.value("a number")?),
            "no-ack" => segment.no_ack = true,
            "win" => segment.window = Some(tokens.value("bytes")?),
            "mss" => segment.mss = Some(tokens.value("bytes")?),
            "scale" => segment.scale = Some(tokens.value("a shift")?),
            "sack-ok" => segment.sack_ok = true,
            "ts" => {
                let subject = "a timestamp";
                segment.timestamps = Some([tokens.value(subject)?, tokens.value(subject)?]);
            }
            "echo" => segment.echo = Some(tokens.value("a timestamp")?),
            "echo-original" => segment.echo_original = true,
            "ts-old" => segment.old_timestamp = Some(tokens.span()?),
            "sack" => {
                segment.sack.extend(std::iter::from_fn(|| tokens.range()));
                if segment.sack.is_empty() {
                    return Err("sack without a range".to_owned());
                }
            }
            "without" => {
                let option: String = tokens.value("an option")?;
                segment.without.push(option);
            }
            other => return Err(format!("{other:?} is no part of a segment")),
        }
    }
    Ok(match (segment.data, by) {
        (Some([start, end]), Some(by)) if by > 0 => split(&segment, start, end, by),
        (_, None) => vec![segment],
        _ => return Err("\"by\" wants data and a length".to_owned()),
    })
}

/// Splits data into several segments. Flags at the end belong to the last.
fn split(segment: &WrittenSegment, start: i64, end: i64, by: i64) -> Vec<WrittenSegment> {
    let starts = (start..end).step_by(by as usize);
    let one = |from: i64| {
        let until = (from + by).min(end);
        WrittenSegment {
            data: Some([from, until]),
            fin: segment.fin && until == end,
            psh: segment.psh && until == end,
            ..segment.clone()
        }
    };
    starts.map(one).collect()
}
