//! Text into lines: when, and what.

use posthaste_units::Span;

use super::expect::Quantity;
use super::settings::Settings;
use super::words::Words;

/// A whole script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) settings: Settings,
    pub(super) lines: Vec<Line>,
}

/// One line of what happens.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// From one.
    pub(super) number: usize,
    pub(super) text: String,
    /// Without a time: in the same instant as the line before.
    pub(super) time: Option<Time>,
    /// How far the time may be off here.
    pub(super) tolerance: Option<Span>,
    pub(super) event: Event,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Since the beginning.
    At(Span),
    /// After the line before happened.
    After(Span),
}

/// What.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// `<`: the peer sends these.
    In(Vec<Written>),
    /// `>`: the endpoint sends these.
    Out(Vec<Written>),
    Listen,
    Connect,
    /// A whole handshake that the peer began, its SYN-ACK under way for the time given.
    Accepted(Span),
    /// The same, begun here.
    Connected(Span),
    Write {
        bytes: u64,
        taken: u64,
    },
    /// So many bytes; without a number, all that there are.
    Read(Option<u64>),
    Close,
    Leave,
    Abort,
    /// `> ...`: whatever has been sent by now.
    Anything,
    /// Nothing is sent up to now.
    Quiet,
    Expect(Quantity),
}

/// A segment as it is written: what is not said is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
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
    /// The echo alone, of a segment that is expected.
    pub(super) echo: Option<u32>,
    /// The echo is that of the first transmission.
    pub(super) echo_original: bool,
    /// A value that lies so far behind the peer's clock.
    pub(super) old_timestamp: Option<Span>,
    pub(super) sack: Vec<[i64; 2]>,
    /// Options that must not be there, or are left out.
    pub(super) without: Vec<String>,
}

/// Reads a script; the error names the line.
pub(super) fn script(text: &str) -> Result<Script, String> {
    let mut settings = Settings::default();
    let mut lines = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        let at = |error: String| format!("line {number}: {}\n  {error}", text.trim());
        if lines.is_empty() && settings.read(text).map_err(at)? {
            continue;
        }
        if Words::of(text).is_empty() {
            continue;
        }
        lines.push(line(number, text).map_err(at)?);
    }
    settings.check()?;
    Ok(Script { settings, lines })
}

fn line(number: usize, text: &str) -> Result<Line, String> {
    let mut words = Words::of(text);
    let first = words.peek().unwrap_or_default();
    let is_time = first.starts_with(|c: char| c.is_ascii_digit() || c == '+');
    let (mut time, mut tolerance) = (None, None);
    if is_time {
        words.next();
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
    let event = event(&mut words)?;
    words.end()?;
    Ok(Line {
        number,
        text: text.to_owned(),
        time,
        tolerance,
        event,
    })
}

fn event(words: &mut Words) -> Result<Event, String> {
    Ok(match words.next().unwrap_or_default() {
        ">" if words.take("...") => Event::Anything,
        "<" => Event::In(segments(words)?),
        ">" => Event::Out(segments(words)?),
        "listen" => Event::Listen,
        "connect" => Event::Connect,
        "accepted" => Event::Accepted(words.span()?),
        "connected" => Event::Connected(words.span()?),
        "write" => {
            let bytes = words.value("bytes")?;
            let taken = if words.take("takes") {
                words.value("bytes")?
            } else {
                bytes
            };
            Event::Write { bytes, taken }
        }
        "read" if words.take("all") => Event::Read(None),
        "read" => Event::Read(Some(words.value("bytes")?)),
        "close" => Event::Close,
        "leave" => Event::Leave,
        "abort" => Event::Abort,
        "quiet" => Event::Quiet,
        "expect" => Event::Expect(Quantity::read(words)?),
        other => return Err(format!("{other:?} is nothing that happens")),
    })
}

/// One segment, or with `by` as many as the data needs.
fn segments(words: &mut Words) -> Result<Vec<Written>, String> {
    let mut segment = Written::default();
    let mut by = None;
    segment.data = words.range();
    while let Some(word) = words.next() {
        match word {
            "by" => by = Some(words.value::<i64>("bytes")?),
            "syn" => segment.syn = true,
            "fin" => segment.fin = true,
            "rst" => segment.rst = true,
            "psh" => segment.psh = true,
            "seq" => segment.seq = Some(words.value("a number")?),
            "ack" => segment.ack = Some(words.value("a number")?),
            "no-ack" => segment.no_ack = true,
            "win" => segment.window = Some(words.value("bytes")?),
            "mss" => segment.mss = Some(words.value("bytes")?),
            "scale" => segment.scale = Some(words.value("a shift")?),
            "sack-ok" => segment.sack_ok = true,
            "ts" => {
                let what = "a timestamp";
                segment.timestamps = Some([words.value(what)?, words.value(what)?]);
            }
            "echo" => segment.echo = Some(words.value("a timestamp")?),
            "echo-original" => segment.echo_original = true,
            "ts-old" => segment.old_timestamp = Some(words.span()?),
            "sack" => {
                segment.sack.extend(std::iter::from_fn(|| words.range()));
                if segment.sack.is_empty() {
                    return Err("sack without a range".to_owned());
                }
            }
            "without" => {
                let option: String = words.value("an option")?;
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

/// Data in several segments; what ends it ends the last.
fn split(segment: &Written, start: i64, end: i64, by: i64) -> Vec<Written> {
    let starts = (start..end).step_by(by as usize);
    let one = |from: i64| {
        let until = (from + by).min(end);
        Written {
            data: Some([from, until]),
            fin: segment.fin && until == end,
            psh: segment.psh && until == end,
            ..segment.clone()
        }
    };
    starts.map(one).collect()
}
