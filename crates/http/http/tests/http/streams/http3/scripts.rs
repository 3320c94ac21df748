//! Random scripts of a server, of the transport and of the caller: sums hold, each opened token has one end at most, and
//! the cuts between reads change nothing.
//!
//! The transport of [`ScriptedExchange`] checks the output: nothing is sent on a stream after its end, and each stream is reset
//! and stopped once at most.

use posthaste_http::streams::StreamEnd;
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::http3::{ErrorCode, Http3Error, StreamId};
use proptest::prelude::*;

use super::support::{
    CONTROL, ScriptedExchange, ServerAct, data, frame, goaway, headers, ok, parse, settings,
};
use crate::streams::support::Event;

/// A step. Streams are chosen by number among all that were opened, and one beyond.
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
    Pass {
        actions: usize,
        limit: usize,
    },
    Blocked(usize),
    Writable(usize),
    Permit(u64),
    Close,
    Reply {
        stream: usize,
        bytes: Vec<u8>,
        fin: bool,
    },
    Reset {
        stream: usize,
        code: u64,
    },
    Stop {
        stream: usize,
        code: u64,
    },
    GoAway(usize),
    FromServer {
        stream: u64,
        bytes: Vec<u8>,
    },
}

/// Steps of the caller and of the transport.
fn of_client() -> impl Strategy<Value = ScriptStep> {
    let stream = || 0..8usize;
    prop_oneof![
        8 => (any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(with_body, is_head)| ScriptStep::Open { with_body, is_head }),
        4 => (stream(), 0..90_000usize, any::<bool>())
            .prop_map(|(stream, length, is_last)| ScriptStep::Body { stream, length, is_last }),
        1 => stream().prop_map(ScriptStep::Cancel),
        5 => (1..9usize, 1..90_000usize)
            .prop_map(|(actions, limit)| ScriptStep::Pass { actions, limit }),
        2 => stream().prop_map(ScriptStep::Blocked),
        2 => stream().prop_map(ScriptStep::Writable),
        1 => (0..20u64).prop_map(ScriptStep::Permit),
    ]
}

/// Frames of a reply, mostly valid.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        6 => Just(ok()),
        1 => Just(headers(&[(":status", "103"), ("a", "b")])),
        2 => (0..9usize).prop_map(|length| {
            headers(&[(":status", "200"), ("content-length", &length.to_string())])
        }),
        1 => Just(headers(&[("grpc-status", "0")])),
        6 => (0..9usize).prop_map(|length| data(&vec![7; length])),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| frame(0x21, &bytes)),
    ];
    prop::collection::vec(one, 0..4).prop_map(|frames| frames.concat())
}

/// Steps of a server, mostly valid.
fn of_server() -> impl Strategy<Value = ScriptStep> {
    let stream = || 0..9usize;
    let code = || prop_oneof![0x100..0x112u64, Just(0x10b), Just(0x100), Just(0x1234)];
    prop_oneof![
        9 => (stream(), frames(), prop::bool::weighted(0.3))
            .prop_map(|(stream, bytes, fin)| ScriptStep::Reply { stream, bytes, fin }),
        2 => (stream(), code()).prop_map(|(stream, code)| ScriptStep::Reset { stream, code }),
        2 => (stream(), code()).prop_map(|(stream, code)| ScriptStep::Stop { stream, code }),
        1 => stream().prop_map(ScriptStep::GoAway),
        1 => Just(ScriptStep::FromServer { stream: 7, bytes: vec![0x20] }),
        1 => prop::collection::vec(any::<u8>(), 0..20)
            .prop_map(|bytes| ScriptStep::FromServer { stream: CONTROL, bytes: frame(0x21, &bytes) }),
    ]
}

fn script() -> impl Strategy<Value = Vec<ScriptStep>> {
    let garbage = || prop::collection::vec(any::<u8>(), 1..30);
    let rare = prop_oneof![
        Just(ScriptStep::Close),
        (0..8usize, garbage()).prop_map(|(stream, bytes)| ScriptStep::Reply {
            stream,
            bytes,
            fin: false
        }),
        (0..6u64, garbage()).prop_map(|(stream, bytes)| ScriptStep::FromServer {
            stream: 4 * stream + 3,
            bytes
        }),
    ];
    let step = prop_oneof![20 => of_client(), 30 => of_server(), 1 => rare];
    prop::collection::vec(step, 1..60)
}

/// A run of a script.
struct ScriptRun {
    exchange: ScriptedExchange,
    opened: u32,
    /// Streams whose body has not ended.
    bodies: Vec<u64>,
    cancelled: Vec<u32>,
    /// Streams whose part of the server has ended. The transport delivers nothing more.
    ended: Vec<u64>,
    error: Option<Http3Error>,
}

impl ScriptRun {
    fn new() -> Self {
        let mut exchange = ScriptedExchange::before_settings();
        exchange.receive(CONTROL, &settings(&[])).unwrap();
        exchange.receive(7, b"\x02").unwrap();
        Self {
            exchange,
            opened: 0,
            bodies: Vec::new(),
            cancelled: Vec::new(),
            ended: Vec::new(),
            error: None,
        }
    }

    /// The stream with this number.
    fn id(&self, stream: usize) -> u64 {
        4 * (stream as u64).min(self.opened.into())
    }

    /// A stream that was opened.
    fn opened(&self, stream: usize) -> Option<StreamId> {
        let is_opened = (stream as u64) < u64::from(self.opened);
        is_opened.then(|| StreamId::new(4 * stream as u64))
    }

    /// A step of the caller or of the transport. False for those of the server.
    fn call(&mut self, step: &ScriptStep) -> bool {
        let client = &mut self.exchange.client;
        match *step {
            ScriptStep::Open { with_body, is_head } => {
                if client.room() > 0 {
                    let id = self.exchange.open_as(self.opened, with_body, is_head);
                    assert_eq!(
                        id,
                        4 * u64::from(self.opened),
                        "streams are opened in order"
                    );
                    self.opened += 1;
                    if with_body {
                        self.bodies.push(id);
                    }
                }
            }
            ScriptStep::Body {
                stream,
                length,
                is_last,
            } => self.body(stream, length, is_last),
            ScriptStep::Cancel(stream) => {
                if let Some(id) = self.opened(stream)
                    && self
                        .exchange
                        .client
                        .reset(id, ErrorCode::H3_REQUEST_CANCELLED)
                {
                    self.cancelled.push(stream as u32);
                }
            }
            ScriptStep::Pass { actions, limit } => {
                for _ in 0..actions {
                    self.exchange.pass(limit);
                }
            }
            ScriptStep::Blocked(stream) => {
                let id = self.opened(stream).unwrap_or(StreamId::CONTROL);
                client_of(self).blocked(id);
            }
            ScriptStep::Writable(stream) => {
                let id = self.opened(stream).unwrap_or(StreamId::CONTROL);
                client_of(self).writable(id);
            }
            ScriptStep::Permit(total) => client.permit_streams(total),
            ScriptStep::Close => client.close(),
            _ => return false,
        }
        true
    }

    /// Sends a part of a body, of streams whose body has not ended.
    fn body(&mut self, stream: usize, length: usize, is_last: bool) {
        let client = &mut self.exchange.client;
        let writable: Vec<StreamId> = std::iter::from_fn(|| client.next_writable())
            .map(|(id, _)| id)
            .collect();
        let bytes = vec![0; length];
        let chosen = self.opened(stream);
        for id in writable.into_iter().chain(chosen) {
            if let Some(at) = self.bodies.iter().position(|body| *body == id.number()) {
                let taken = self.exchange.client.send_body(id, &bytes, is_last);
                assert!(taken <= length);
                if is_last && taken == length {
                    self.bodies.swap_remove(at);
                }
            }
        }
    }

    /// Acts of the server in a step. None on streams that it has ended.
    fn acts(&mut self, step: &ScriptStep) -> Vec<ServerAct> {
        match step {
            ScriptStep::Reply { stream, bytes, fin } => {
                let id = self.id(*stream);
                if self.ended.contains(&id) {
                    return Vec::new();
                }
                let mut acts = vec![ServerAct::Bytes(id, bytes.clone())];
                if *fin {
                    self.ended.push(id);
                    acts.push(ServerAct::Fin(id));
                }
                acts
            }
            ScriptStep::Reset { stream, code } => {
                let id = self.id(*stream);
                if self.ended.contains(&id) {
                    return Vec::new();
                }
                self.ended.push(id);
                vec![ServerAct::Reset(id, ErrorCode(*code))]
            }
            ScriptStep::Stop { stream, code } => {
                vec![ServerAct::Stop(self.id(*stream), ErrorCode(*code))]
            }
            ScriptStep::GoAway(stream) => vec![ServerAct::Bytes(CONTROL, goaway(self.id(*stream)))],
            ScriptStep::FromServer { stream, bytes } => {
                vec![ServerAct::Bytes(*stream, bytes.clone())]
            }
            _ => Vec::new(),
        }
    }

    /// The sums of streams, and one end per token.
    fn check(&self) {
        let counters = self.exchange.client.counters();
        let open = self.exchange.client.open_streams() as u64;
        assert_eq!(counters.opened, u64::from(self.opened));
        assert_eq!(counters.opened, counters.ended + counters.cancelled + open);
        assert_eq!(counters.cancelled, self.cancelled.len() as u64);
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

    /// Ends all streams: each opened token then has exactly one end, or was cancelled.
    fn end(&mut self) {
        if self.error.is_none() {
            let open: Vec<(StreamId, u32)> = self.exchange.client.open_tokens().collect();
            for (id, _) in open {
                let code = ErrorCode::H3_INTERNAL_ERROR;
                let act = ServerAct::Reset(id.number(), code);
                self.exchange.perform(&act, 1).unwrap();
            }
            assert!(self.exchange.client.is_idle());
            self.check();
        }
        for stream in 0..self.opened as usize {
            self.exchange
                .client
                .writable(StreamId::new(4 * stream as u64));
        }
        self.exchange.client.writable(StreamId::CONTROL);
        self.exchange.flush();
        for (id, sent) in &self.exchange.sent {
            if sent.fin {
                let frames = parse(&sent.bytes);
                assert_eq!(frames[0].0, kind::HEADERS, "stream {id}");
                assert!(frames[1..].iter().all(|(other, _)| *other == kind::DATA));
            }
        }
    }
}

fn client_of(run: &mut ScriptRun) -> &mut posthaste_http::streams::http3::Http3StreamClient {
    &mut run.exchange.client
}

/// Runs a script. The server's bytes come in pieces of `piece` bytes.
fn run(script: &[ScriptStep], piece: usize) -> ScriptRun {
    let mut run = ScriptRun::new();
    for step in script {
        if run.call(step) {
            continue;
        }
        for act in run.acts(step) {
            if run.error.is_none() {
                run.error = run.exchange.perform(&act, piece).err();
            }
        }
        run.check();
    }
    run.end();
    run
}

/// Number of scripts: 10,000, or `POSTHASTE_SEEDS`.
fn cases() -> u32 {
    std::env::var("POSTHASTE_SEEDS").map_or(10_000, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn each_stream_ends_once_and_cuts_change_nothing(script in script(), piece in 1..40usize) {
        let whole = run(&script, usize::MAX);
        let pieces = run(&script, piece);
        prop_assert_eq!(&whole.exchange.events.0, &pieces.exchange.events.0);
        prop_assert_eq!(whole.error, pieces.error);
        prop_assert_eq!(&whole.exchange.sent, &pieces.exchange.sent);
        let counters = |run: &ScriptRun| *run.exchange.client.counters();
        prop_assert_eq!(counters(&whole), counters(&pieces));
        let complete = |event: &&Event| matches!(event, Event::End(_, StreamEnd::Complete));
        let count = |run: &ScriptRun| run.exchange.events.0.iter().filter(complete).count();
        prop_assert_eq!(count(&whole), count(&pieces));
    }

    #[test]
    fn any_bytes_end_without_a_panic(bytes: Vec<u8>, streams in prop::collection::vec(0..9u64, 0..20)) {
        let mut exchange = ScriptedExchange::before_settings();
        exchange.open(1);
        exchange.open_as(2, true, false);
        let mut rest = &bytes[..];
        for stream in streams {
            let (piece, after) = rest.split_at(rest.len().min(stream as usize * 3));
            rest = after;
            let _ = exchange.receive(stream, piece);
        }
        let _ = exchange.receive_last(0, rest);
        exchange.flush();
    }
}
