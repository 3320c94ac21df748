//! Random scripts of a server and of the caller: sums hold, and the cuts between reads change nothing.
//!
//! A model of the server checks the output: frames are whole, streams are opened in order and within the limit, bodies
//! stay within the windows, and nothing is sent on a stream after its end.

use std::collections::HashMap;

use posthaste_http::streams::http2::frame::{FrameHead, flag, kind};
use posthaste_http::streams::http2::{ConnectionError, ErrorCode, StreamId};
use proptest::prelude::*;

use crate::streams::support::{
    Event, Exchange, data, frame, goaway, headers, ok, ok_empty, reset, settings, window_update,
};

/// A step of the caller or of the server. Streams are chosen by number among all that were opened, and one beyond.
#[derive(Clone, Debug)]
enum ScriptStep {
    Open {
        with_body: bool,
        is_head: bool,
    },
    Body {
        stream: usize,
        length: usize,
        is_last: bool,
    },
    Cancel(usize),
    Sent(usize),
    Close,
    Ok {
        stream: usize,
        is_last: bool,
    },
    Interim(usize),
    Length {
        stream: usize,
        length: usize,
        is_last: bool,
    },
    Trailers(usize),
    Data {
        stream: usize,
        length: usize,
        is_last: bool,
    },
    Padded {
        stream: usize,
        padding: u8,
    },
    Continued {
        stream: usize,
        parts: usize,
    },
    Indexed {
        stream: usize,
        index: u8,
    },
    Reset {
        stream: usize,
        code: u32,
    },
    Update {
        stream: usize,
        increment: u32,
    },
    UpdateConnection(u32),
    Settings(Vec<(u16, u32)>),
    GoAway {
        stream: usize,
        code: u32,
    },
    Highest,
    Pinged,
    Unknown(Vec<u8>),
    Garbage(Vec<u8>),
}

/// Steps of the caller.
fn of_caller() -> impl Strategy<Value = ScriptStep> {
    let stream = 0..8usize;
    prop_oneof![
        8 => (any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(with_body, is_head)| ScriptStep::Open { with_body, is_head }),
        4 => (stream.clone(), 0..90_000usize, any::<bool>())
            .prop_map(|(stream, length, is_last)| ScriptStep::Body { stream, length, is_last }),
        1 => stream.prop_map(ScriptStep::Cancel),
        3 => (0..3usize).prop_map(ScriptStep::Sent),
    ]
}

/// Steps of a server, mostly valid.
fn of_server() -> impl Strategy<Value = ScriptStep> {
    let stream = || 0..9usize;
    let setting = prop_oneof![
        (Just(1u16), 0..6_000u32),
        (Just(3), 0..20u32),
        (Just(4), prop_oneof![0..70_000u32, Just((1 << 31) - 1)]),
        (Just(5), 16_384..20_000u32),
        (Just(99), any::<u32>()),
    ];
    prop_oneof![
        6 => (stream(), any::<bool>()).prop_map(|(stream, is_last)| ScriptStep::Ok { stream, is_last }),
        1 => stream().prop_map(ScriptStep::Interim),
        2 => (stream(), 0..50usize, any::<bool>())
            .prop_map(|(stream, length, is_last)| ScriptStep::Length { stream, length, is_last }),
        1 => stream().prop_map(ScriptStep::Trailers),
        6 => (stream(), 0..60usize, any::<bool>())
            .prop_map(|(stream, length, is_last)| ScriptStep::Data { stream, length, is_last }),
        1 => (stream(), 0..9u8).prop_map(|(stream, padding)| ScriptStep::Padded { stream, padding }),
        2 => (stream(), 1..5usize).prop_map(|(stream, parts)| ScriptStep::Continued { stream, parts }),
        2 => (stream(), 60..66u8).prop_map(|(stream, index)| ScriptStep::Indexed { stream, index }),
        2 => (stream(), 0..15u32).prop_map(|(stream, code)| ScriptStep::Reset { stream, code }),
        2 => (stream(), 0..70_000u32)
            .prop_map(|(stream, increment)| ScriptStep::Update { stream, increment }),
        2 => (1..70_000u32).prop_map(ScriptStep::UpdateConnection),
        2 => prop::collection::vec(setting, 0..4).prop_map(ScriptStep::Settings),
        1 => (stream(), 0..3u32).prop_map(|(stream, code)| ScriptStep::GoAway { stream, code }),
        1 => Just(ScriptStep::Pinged),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(ScriptStep::Unknown),
    ]
}

fn script() -> impl Strategy<Value = Vec<ScriptStep>> {
    let rare = prop_oneof![
        Just(ScriptStep::Close),
        Just(ScriptStep::Highest),
        prop::collection::vec(any::<u8>(), 1..30).prop_map(ScriptStep::Garbage),
    ];
    let step = prop_oneof![20 => of_caller(), 30 => of_server(), 1 => rare];
    prop::collection::vec(step, 1..60)
}

/// The server's view: its windows and limits, and the streams that the client opened.
struct Model {
    connection: i64,
    initial: i64,
    windows: HashMap<u32, i64>,
    /// Streams on which the client has sent END_STREAM or RST_STREAM.
    closed: HashMap<u32, u8>,
    highest: u32,
}

impl Model {
    fn take(&mut self, head: FrameHead, payload: &[u8]) {
        let id = head.stream;
        match head.kind {
            kind::HEADERS => {
                assert!(
                    id > self.highest && id % 2 == 1,
                    "streams are opened in order"
                );
                self.highest = id;
                self.windows.insert(id, self.initial);
            }
            kind::DATA => {
                let window = self.windows.get_mut(&id).expect("an open stream");
                *window -= payload.len() as i64;
                self.connection -= payload.len() as i64;
                if !payload.is_empty() {
                    assert!(*window >= 0, "the window of the stream holds");
                    assert!(self.connection >= 0, "the window of the connection holds");
                }
                assert!(!self.closed.contains_key(&id), "no content after the end");
            }
            kind::RST_STREAM => {
                assert!(self.windows.contains_key(&id), "an open stream");
                let before = self.closed.insert(id, kind::RST_STREAM);
                assert_ne!(before, Some(kind::RST_STREAM), "one reset per stream");
                return;
            }
            kind::WINDOW_UPDATE | kind::SETTINGS | kind::PING | kind::GOAWAY => return,
            other => panic!("a frame of type {other}"),
        }
        if head.has(flag::END_STREAM) {
            self.closed.insert(id, kind::DATA);
        }
    }

    /// Applies what the server sends.
    fn apply(&mut self, step: &ScriptStep, id: u32) {
        match step {
            ScriptStep::Update { increment, .. } => {
                if let Some(window) = self.windows.get_mut(&id) {
                    *window += i64::from(*increment);
                }
            }
            ScriptStep::UpdateConnection(increment) => self.connection += i64::from(*increment),
            ScriptStep::Settings(values) => {
                let last = values.iter().rev().find(|(setting, _)| *setting == 4);
                if let Some((_, window)) = last {
                    let delta = i64::from(*window) - self.initial;
                    self.initial += delta;
                    self.windows
                        .values_mut()
                        .for_each(|window| *window += delta);
                }
            }
            _ => {}
        }
    }
}

/// A run of a script.
struct ScriptRun {
    exchange: Exchange,
    streams: Vec<StreamId>,
    cancelled: Vec<u32>,
    model: Model,
    /// The output that was sent.
    sent: Vec<u8>,
    unread: Vec<u8>,
    error: Option<ConnectionError>,
}

impl ScriptRun {
    fn new() -> Self {
        let mut exchange = Exchange::before_settings();
        exchange.receive(&settings(&[])).unwrap();
        exchange.discard_output();
        Self {
            exchange,
            streams: Vec::new(),
            cancelled: Vec::new(),
            model: Model {
                connection: 65_535,
                initial: 65_535,
                windows: HashMap::new(),
                closed: HashMap::new(),
                highest: 0,
            },
            sent: Vec::new(),
            unread: Vec::new(),
            error: None,
        }
    }

    fn id(&self, stream: usize) -> u32 {
        let next = 2 * self.streams.len() as u32 + 1;
        self.streams
            .get(stream)
            .map_or(next, |stream| stream.number())
    }

    /// Sends the output, all of it or a part, and checks the frames that are complete.
    fn send(&mut self, part: usize) {
        let output = self.exchange.client.output();
        let length = output.len() / (part + 1);
        self.sent.extend_from_slice(&output[..length]);
        self.unread.extend_from_slice(&output[..length]);
        self.exchange.client.sent(length);
        let mut at = 0;
        while let Some(head) = self.unread[at..].first_chunk() {
            let head = FrameHead::parse(head);
            let end = at + 9 + head.length as usize;
            let Some(frame) = self.unread.get(at..end) else {
                break;
            };
            self.model.take(head, &frame[9..]);
            at = end;
        }
        self.unread.drain(..at);
    }

    /// A step of the caller. False for those of the server.
    fn call(&mut self, step: &ScriptStep) -> bool {
        let client = &mut self.exchange.client;
        match *step {
            ScriptStep::Open { with_body, is_head } => {
                if client.room() > 0 {
                    let token = self.streams.len() as u32;
                    self.streams.push(match (with_body, is_head) {
                        (true, _) => self.exchange.open_with_body(token),
                        (false, true) => self.exchange.open_head(token),
                        (false, false) => self.exchange.open(token),
                    });
                }
            }
            ScriptStep::Body {
                stream,
                length,
                is_last,
            } => self.body(stream, length, is_last),
            ScriptStep::Cancel(stream) => {
                if let Some(id) = self.streams.get(stream)
                    && client.reset(*id, ErrorCode::CANCEL)
                {
                    self.cancelled.push(stream as u32);
                }
            }
            ScriptStep::Sent(part) => self.send(part),
            ScriptStep::Close => client.close(),
            _ => return false,
        }
        true
    }

    /// Sends a part of a body, of streams that were opened with one and whose body has not ended.
    fn body(&mut self, stream: usize, length: usize, is_last: bool) {
        let writable: Vec<(StreamId, u32)> =
            std::iter::from_fn(|| self.exchange.client.next_writable()).collect();
        let chosen = self.streams.get(stream).map(|id| (*id, stream as u32));
        let bytes = vec![0; length];
        for (id, _) in writable.into_iter().chain(chosen) {
            if self.has_open_body(id) {
                let taken = self.exchange.client.send_body(id, &bytes, is_last);
                assert!(taken <= length);
            }
        }
    }

    /// True if neither END_STREAM was sent nor waits in the output.
    fn has_open_body(&self, id: StreamId) -> bool {
        let waiting = [&self.unread, self.exchange.client.output()].concat();
        let mut rest = &waiting[..];
        while let Some((head, after)) = rest.split_first_chunk() {
            let head = FrameHead::parse(head);
            let has_end = matches!(head.kind, kind::DATA | kind::HEADERS);
            if head.stream == id.number() && has_end && head.has(flag::END_STREAM) {
                return false;
            }
            rest = after.get(head.length as usize..).unwrap_or_default();
        }
        !self.model.closed.contains_key(&id.number())
    }

    fn receive(&mut self, bytes: &[u8], piece: usize) {
        for piece in bytes.chunks(piece) {
            if self.error.is_none() {
                self.error = self.exchange.receive(piece).err();
            }
        }
    }

    /// The sums of streams, and one end per token.
    fn check(&self) {
        let counters = self.exchange.client.counters();
        let open = self.exchange.client.open_streams() as u64;
        assert_eq!(counters.opened, self.streams.len() as u64);
        assert_eq!(counters.opened, counters.ended + counters.cancelled + open);
        assert_eq!(counters.cancelled, self.cancelled.len() as u64);
        assert_eq!(counters.windows_exhausted, 0);
        let mut ended = Vec::new();
        for event in &self.exchange.events.0 {
            let (Event::Interim(token, _)
            | Event::Head(token, _)
            | Event::Field(token, ..)
            | Event::HeadEnd(token)
            | Event::Body(token, _)
            | Event::Trailer(token, ..)
            | Event::End(token, _)) = event
            else {
                continue;
            };
            assert!(!ended.contains(token), "nothing follows the end of a token");
            if let Event::End(token, _) = event {
                ended.push(*token);
                assert!(
                    !self.cancelled.contains(token),
                    "a reset stream has no event"
                );
            }
        }
        assert_eq!(counters.ended, ended.len() as u64);
        for (_, token) in self.exchange.client.open_tokens() {
            assert!(!ended.contains(&token) && !self.cancelled.contains(&token));
        }
    }
}

/// The frames of a server's step.
fn bytes(step: &ScriptStep, id: u32) -> Vec<u8> {
    let end = |is_last: bool| if is_last { flag::END_STREAM } else { 0 };
    match *step {
        ScriptStep::Ok { is_last: false, .. } => ok(id),
        ScriptStep::Ok { is_last: true, .. } => ok_empty(id),
        ScriptStep::Interim(_) => headers(id, 0, &[(":status", "103"), ("a", "b")]),
        ScriptStep::Length {
            length, is_last, ..
        } => {
            let length = length.to_string();
            headers(
                id,
                end(is_last),
                &[(":status", "200"), ("content-length", &length)],
            )
        }
        ScriptStep::Trailers(_) => headers(id, flag::END_STREAM, &[("grpc-status", "0")]),
        ScriptStep::Data {
            length, is_last, ..
        } => data(id, end(is_last), &vec![7; length]),
        ScriptStep::Padded { padding, .. } => {
            frame(kind::DATA, flag::PADDED, id, &[padding, 1, 2, 3, 4, 5])
        }
        ScriptStep::Continued { parts, .. } => {
            let block = b"\x88\x40\x01a\x01b\x40\x01c\x03xyz".chunks(parts);
            let mut frames = frame(kind::HEADERS, 0, id, b"");
            for part in block {
                frames.extend(frame(kind::CONTINUATION, 0, id, part));
            }
            frames.extend(frame(kind::CONTINUATION, flag::END_HEADERS, id, b""));
            frames
        }
        ScriptStep::Indexed { index, .. } => frame(
            kind::HEADERS,
            flag::END_HEADERS,
            id,
            &[0x88, 0x80 | index, 0x40, 1, b'x', 1, index],
        ),
        ScriptStep::Reset { code, .. } => reset(id, code),
        ScriptStep::Update { increment, .. } => window_update(id, increment),
        ScriptStep::UpdateConnection(increment) => window_update(0, increment),
        ScriptStep::Settings(ref values) => settings(values),
        ScriptStep::GoAway { code, .. } => goaway(id, code),
        ScriptStep::Highest => goaway((1 << 31) - 1, 0),
        ScriptStep::Pinged => frame(kind::PING, 0, 0, b"12345678"),
        ScriptStep::Unknown(ref payload) => frame(77, 0xff, id, payload),
        ScriptStep::Garbage(ref bytes) => bytes.clone(),
        _ => Vec::new(),
    }
}

fn stream_of(step: &ScriptStep) -> usize {
    match *step {
        ScriptStep::Ok { stream, .. }
        | ScriptStep::Interim(stream)
        | ScriptStep::Length { stream, .. }
        | ScriptStep::Trailers(stream)
        | ScriptStep::Data { stream, .. }
        | ScriptStep::Padded { stream, .. }
        | ScriptStep::Continued { stream, .. }
        | ScriptStep::Indexed { stream, .. }
        | ScriptStep::Reset { stream, .. }
        | ScriptStep::Update { stream, .. }
        | ScriptStep::GoAway { stream, .. } => stream,
        _ => 0,
    }
}

/// Runs a script. The server's bytes come in pieces of `piece` bytes.
fn run(script: &[ScriptStep], piece: usize) -> ScriptRun {
    let mut run = ScriptRun::new();
    for step in script {
        if run.call(step) {
            continue;
        }
        let id = run.id(stream_of(step));
        // The output leaves first, so that the model has all streams.
        run.send(0);
        run.model.apply(step, id);
        run.receive(&bytes(step, id), piece);
        run.check();
    }
    run.send(0);
    assert!(run.unread.is_empty(), "the output has whole frames");
    run
}

/// Number of scripts: 5,000, or `POSTHASTE_SEEDS`.
fn cases() -> u32 {
    std::env::var("POSTHASTE_SEEDS").map_or(5_000, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn each_stream_ends_once_and_cuts_change_nothing(script in script(), piece in 1..40usize) {
        let whole = run(&script, usize::MAX);
        let pieces = run(&script, piece);
        prop_assert_eq!(&whole.exchange.events.0, &pieces.exchange.events.0);
        prop_assert_eq!(whole.error, pieces.error);
        prop_assert_eq!(&whole.sent, &pieces.sent);
        prop_assert_eq!(whole.exchange.client.counters(), pieces.exchange.client.counters());
    }

    #[test]
    fn any_bytes_end_without_a_panic(bytes: Vec<u8>, kinds in prop::collection::vec(0..11u8, 0..20)) {
        let mut exchange = Exchange::new();
        exchange.open(1);
        exchange.open_with_body(2);
        let mut rest = &bytes[..];
        for kind in kinds {
            let (payload, after) = rest.split_at(rest.len().min(usize::from(kind) * 3));
            rest = after;
            let (flags, stream) = payload.first_chunk().map_or((0, 1), |[a, b]| (*a, *b));
            let _ = exchange.receive(&frame(kind, flags, u32::from(stream % 6), payload));
        }
        let _ = exchange.receive(rest);
    }
}
