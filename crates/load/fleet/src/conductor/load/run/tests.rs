//! The statistics of one process, divided at random among agents, seconds, notes and parts, and joined by the conductor.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use posthaste_evaluation::report::Report;
use posthaste_load::{
    AddressCounts, Attempts, Backoff, Decoded, EventFormat, EventPlan, EventTally, GrpcStatuses,
    JoinedSeconds, Multiplexing, Outcomes, PartResults, Phases, Protocol, QuoteUse, RateStep,
    RequestSpec, RetryPolicy, StreamCounts,
};
use posthaste_stats::{Histogram, Recorder};
use posthaste_units::Rate;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::notes::{NoteAssembler, NoteBuffer, PendingNote};
use crate::protocol::envelope::{BodyCoding, encode};
use crate::protocol::message::{Note, NoteContent, NoteHeader};
use crate::protocol::parts::cut;
use crate::protocol::work::EndFacts;

/// Requests of the warm-up.
const WARM_UP: u64 = 10;
/// Requests of the plan, those of the warm-up included.
const REQUESTS: usize = 70;
/// Seconds of notes. They need not be those of the requests.
const SECONDS: usize = 3;

/// The outcomes of a model's requests, and true for those with a complete reply.
const OUTCOMES: [(Outcome, bool); 8] = [
    (Outcome::Ok, true),
    (Outcome::Ok, true),
    (Outcome::SoapFault, true),
    (Outcome::StatusError, true),
    (Outcome::TimedOut, false),
    (Outcome::ConnectAborted, false),
    (Outcome::Reset, false),
    (Outcome::InFlight, false),
];

/// Length of the warm-up in µs: a fifth of the run. The batches of a long run are many, and those of a short one quickly
/// compared.
#[derive(Clone, Copy, Debug)]
struct ModelPace(u64);

/// A request of the model.
#[derive(Clone, Debug)]
struct ModelRequest {
    /// Index into [`OUTCOMES`].
    outcome: usize,
    attempts: u32,
    /// Request of the mix.
    request: usize,
    /// Lateness and response time in nanoseconds.
    times: (u64, u64),
    /// Seconds of its begin and its end.
    seconds: (usize, usize),
}

/// The fields of a [`LoadTally`], for measurements that are recorded without a merge.
#[derive(Serialize)]
struct ModelTally {
    #[serde(skip)]
    pace: ModelPace,
    intended: u64,
    outcomes: Outcomes,
    attempts: Attempts,
    warm_up: u64,
    unbegun: u64,
    overdue: u64,
    sent: u64,
    completed: u64,
    served: u64,
    ok: Recorder,
    rest: Recorder,
    service: Recorder,
    lateness: Histogram,
    phases: Phases,
    steps: Vec<PartResults>,
    requests: Vec<PartResults>,
    statuses: BTreeMap<u16, u64>,
    grpc: GrpcStatuses,
    reasons: BTreeMap<Outcome, Value>,
    decoded: Decoded,
    events: EventTally,
    quotes: QuoteUse,
    connections: u64,
    reused_resets: u64,
    addresses: BTreeMap<SocketAddr, AddressCounts>,
    streams: StreamCounts,
    bytes_sent: u64,
    bytes_received: u64,
    bytes_in_time: [u64; 2],
    over: u64,
}

/// Ten requests of a warm-up, 20 of a first step, 40 of a second. Two requests, retries, events, HTTP/2, decoding.
fn plan(threads: usize, pace: ModelPace) -> Plan {
    let step = |rate: u64| {
        let rate = Rate::per_second((rate * 1_000_000 / pace.0) as f64).unwrap();
        RateStep::steady(rate, Span::from_micros(2 * pace.0))
    };
    let steps = vec![step(10), step(20)];
    let request = |name: &str| RequestSpec {
        name: name.to_owned(),
        ..RequestSpec::get("http://127.0.0.1/")
    };
    let open = Pace::Open {
        arrivals: Arrivals::Constant,
        steps,
    };
    let mut plan = Plan::new(["one", "two"].map(request).into(), open);
    plan.warm_up = Span::from_micros(pace.0);
    plan.threads = threads;
    plan.protocol = Protocol::Http2(Multiplexing::default());
    plan.decoding = Some(1);
    plan.retries = Some(RetryPolicy {
        limit: 2,
        backoff: Backoff::None,
    });
    plan.events = Some(EventPlan {
        format: EventFormat::Sse,
        end_mark: None,
    });
    plan
}

impl ModelPace {
    /// The due time of a request and its step.
    fn due(self, number: u64) -> (Instant, usize) {
        let (parts, step) = match number {
            0..WARM_UP => (2 * number, 0),
            10..30 => (20 + 2 * (number - 10), 1),
            _ => (60 + (number - 30), 2),
        };
        let at = Span::from_micros(parts * self.0 / 20);
        (Instant::ORIGIN + at, step)
    }
}

impl ModelTally {
    fn new(pace: ModelPace) -> Self {
        Self {
            pace,
            intended: 0,
            outcomes: Outcomes::default(),
            attempts: Attempts::default(),
            warm_up: 0,
            unbegun: 0,
            overdue: 0,
            sent: 0,
            completed: 0,
            served: 0,
            ok: Recorder::new(),
            rest: Recorder::new(),
            service: Recorder::new(),
            lateness: Histogram::new(),
            phases: Phases::default(),
            steps: vec![PartResults::default(); 3],
            requests: vec![PartResults::default(); 2],
            statuses: BTreeMap::new(),
            grpc: GrpcStatuses::default(),
            reasons: BTreeMap::new(),
            decoded: Decoded::default(),
            events: EventTally::default(),
            quotes: QuoteUse::default(),
            connections: 0,
            reused_resets: 0,
            addresses: BTreeMap::new(),
            streams: StreamCounts::default(),
            bytes_sent: 0,
            bytes_received: 0,
            bytes_in_time: [0; 2],
            over: 0,
        }
    }

    fn begin(&mut self, number: u64, request: &ModelRequest) {
        match number {
            0..WARM_UP => self.warm_up += 1,
            _ => {
                self.intended += 1;
                self.lateness.record(Span::from_nanos(request.times.0));
            }
        }
        self.sent += 1;
        self.attempts.sent += u64::from(request.attempts);
        self.connections += number % 3;
        self.reused_resets += number % 2;
        let address = SocketAddr::from(([127, 0, 0, 1], 80 + (number % 2) as u16));
        self.addresses.entry(address).or_default().connections += 1;
        self.bytes_sent += 90 + number;
        self.bytes_in_time[0] += number;
        self.streams.stalled += number % 2;
    }

    fn end(&mut self, number: u64, request: &ModelRequest) {
        let (outcome, is_complete) = OUTCOMES[request.outcome];
        let response = Span::from_nanos(request.times.1);
        let (due, step) = self.pace.due(number);
        if number >= WARM_UP {
            let at = due.since(Instant::ORIGIN + Span::from_micros(self.pace.0));
            self.measure(at, request);
            for part in [&mut self.steps[step], &mut self.requests[request.request]] {
                part.outcomes[outcome] += 1;
                part.attempts += u64::from(request.attempts);
                part.responses.record(outcome, response);
            }
            let reason = json!({"of": [number, 1], "text": format!("reason {number}")});
            let index = |reason: &Value| reason["of"][0].as_u64();
            let is_first = |known: &Value| index(&reason) < index(known);
            if self.reasons.get(&outcome).is_none_or(is_first) {
                self.reasons.insert(outcome, reason);
            }
        }
        if is_complete {
            let is_served = u64::from(outcome == Outcome::Ok);
            self.completed += 1;
            self.served += is_served;
            for part in [&mut self.steps[step], &mut self.requests[request.request]] {
                part.completed += 1;
                part.served += is_served;
            }
            *self
                .statuses
                .entry(200 + request.outcome as u16)
                .or_default() += 1;
            self.bytes_received += request.times.1 % 1_000;
            self.bytes_in_time[1] += 7;
            self.decoded.replies += 1;
            self.decoded.bytes += number;
            self.quotes.used += 1;
        }
        self.over = self.over.max((due + response).as_nanos());
    }

    /// Records the times of a request that was due `at` after the beginning of the measured time.
    fn measure(&mut self, at: Span, request: &ModelRequest) {
        let (outcome, is_complete) = OUTCOMES[request.outcome];
        let response = Span::from_nanos(request.times.1);
        self.outcomes[outcome] += 1;
        self.attempts.outcomes[Outcome::TimedOut] += u64::from(request.attempts) - 1;
        self.attempts.outcomes[outcome] += 1;
        let requests = &mut self.attempts.requests;
        let attempts = request.attempts as usize;
        requests.resize(requests.len().max(attempts), 0);
        requests[attempts - 1] += 1;
        match (outcome, is_complete) {
            (Outcome::Ok, _) => self.ok.record(at, response),
            (_, true) => self.rest.record(at, response),
            (_, false) => self.rest.record_censored(at, Some(response)),
        }
        if is_complete {
            self.service.record(at, response);
            self.phases.wait.record(response);
            self.phases.queue.record(Span::from_nanos(request.times.0));
            self.events.first.record(at, response);
            self.events.gaps.record(at, response / 2);
            self.events.events += 2;
        } else {
            self.events.first.record_censored(at, Some(response));
        }
    }

    fn tally(&self) -> LoadTally {
        let json = serde_json::to_string(self).unwrap();
        serde_json::from_str(&json).unwrap()
    }
}

/// A message of an agent.
type Message = (AgentName, NoteHeader, BodyCoding, Bytes);

/// An agent of the model, with its notes that wait.
struct ModelAgent {
    name: AgentName,
    share: Share,
    pace: ModelPace,
    buffer: NoteBuffer<Box<LoadTally>, EndFacts>,
    messages: Vec<Message>,
}

impl ModelAgent {
    /// Fills the buffer with the seconds of the share, the total and the end. Takes a note after some of the seconds, so
    /// that others wait.
    fn note(&mut self, plan: &Plan, requests: &[ModelRequest], most: usize) {
        let mut seconds: Vec<ModelTally> =
            (0..SECONDS).map(|_| ModelTally::new(self.pace)).collect();
        let mut total = ModelTally::new(self.pace);
        for (number, request) in (0u64..).zip(requests) {
            let index = number as usize % plan.threads;
            if (self.share.first..self.share.first + self.share.loops).contains(&index) {
                let (begin, end) = request.seconds;
                seconds[begin].begin(number, request);
                seconds[begin.max(end)].end(number, request);
                total.begin(number, request);
                total.end(number, request);
            }
        }
        for (number, second) in (1..).zip(seconds) {
            self.buffer.add_second(number, Box::new(second.tally()));
            if number % 2 == 0 {
                self.publish(most);
            }
        }
        self.buffer.add_total(Box::new(total.tally()));
        self.buffer.add_end(EndFacts {
            is_stopped: false,
            error: None,
        });
        while !self.buffer.is_empty() {
            self.publish(most);
        }
    }

    /// Makes messages of the oldest note, in parts of at most `most` bytes.
    fn publish(&mut self, most: usize) {
        let seq = self.messages.len() as u64;
        let content = match self.buffer.pop().unwrap() {
            PendingNote::Seconds { first, last, sum } => NoteContent::Seconds { first, last, sum },
            PendingNote::Total { sum } => NoteContent::Total { sum },
            PendingNote::StoodDown { reason } => NoteContent::StoodDown { reason },
            PendingNote::End { end } => NoteContent::End { messages: seq, end },
        };
        let note = Note {
            v: ProtocolVersion,
            seq,
            content,
        };
        let encoded = encode(&note).unwrap();
        // Only compressed bodies are cut.
        let most = match encoded.coding {
            BodyCoding::Zstd => most,
            BodyCoding::Identity => usize::MAX,
        };
        for (part, body) in cut(encoded.body.into(), most).unwrap() {
            let seq = self.messages.len() as u64;
            let header = NoteHeader { seq, part };
            let message = (self.name.clone(), header, encoded.coding, body);
            self.messages.push(message);
        }
    }
}

/// Agents with these numbers of loops, and the messages of all of them.
fn agents(
    plan: &Plan,
    requests: &[ModelRequest],
    loops: &[usize],
    pace: ModelPace,
    most: usize,
) -> (RunAgents, Vec<Message>) {
    let (mut agents, mut messages, mut first) = (RunAgents::new(), Vec::new(), 0);
    for (number, loops) in loops.iter().enumerate() {
        let name: AgentName = format!("agent-{number}").parse().unwrap();
        let share = Share {
            first,
            loops: *loops,
        };
        first += loops;
        let facts = PreparedFacts {
            loops: *loops as u32,
            connections: 1,
            servers: Vec::new(),
        };
        let clock = ClockEstimate {
            offset_ns: 0,
            bound: Span::ZERO,
            round_trip: Span::ZERO,
        };
        let mut model = ModelAgent {
            name: name.clone(),
            share,
            pace,
            buffer: NoteBuffer::default(),
            messages: Vec::new(),
        };
        model.note(plan, requests, most);
        messages.extend(model.messages);
        let agent = AgentProgress::new(name.clone(), share, facts, clock, plan);
        agents.insert(name, agent);
    }
    (agents, messages)
}

/// Lets the conductor take messages. Returns the sum of the seconds that it passes on.
fn take(plan: &Plan, agents: &mut RunAgents, messages: Vec<Message>) -> LoadTally {
    let names: Vec<AgentName> = agents.keys().cloned().collect();
    let mut assembler = NoteAssembler::new(names.clone());
    let mut joined = JoinedSeconds::new(names.len());
    let mut live = LoadTally::for_plan(plan);
    let mut pass_on = |joined: &mut JoinedSeconds, is_over| {
        while let Some((_, tally)) = joined.take(Instant::ORIGIN, is_over) {
            live.merge(&tally);
            joined.reuse(tally);
        }
    };
    for (name, header, coding, body) in messages {
        let Some(note) = assembler.add(&name, header, coding, body).unwrap() else {
            continue;
        };
        let index = names.iter().position(|one| *one == name).unwrap();
        let agent = agents.get_mut(&name).unwrap();
        if let Some((second, tally)) = agent.add(plan, note) {
            joined.add(index, second, &tally);
        }
        // Seconds may follow the total and the end here. The reader of notes ends when all have come.
        pass_on(&mut joined, false);
    }
    for (index, (name, agent)) in agents.iter().enumerate() {
        assert!(assembler.is_complete(name) && agent.is_over());
        joined.end(index);
    }
    pass_on(&mut joined, true);
    live
}

fn json(plan: &Plan, run: &Run) -> String {
    serde_json::to_string(&Report::new(plan, run)).unwrap()
}

fn request() -> impl Strategy<Value = ModelRequest> {
    let times = (0u64..30_000_000, 0u32..20, 1u64..8_000_000_000);
    let times = times.prop_map(|(late, shift, response)| (late >> shift, response >> shift));
    let part = (0..OUTCOMES.len(), 1u32..4, 0usize..2);
    (part, times, (0..SECONDS, 0..SECONDS)).prop_map(
        |((outcome, attempts, request), times, seconds)| ModelRequest {
            outcome,
            attempts,
            request,
            times,
            seconds,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any division among agents, seconds and parts, in any order and with repetitions: the report of one process.
    #[test]
    fn the_report_of_agents_is_that_of_one_process(
        requests in prop::collection::vec(request(), REQUESTS),
        pace in prop_oneof![15 => Just(ModelPace(1_000)), 1 => Just(ModelPace(1_000_000))],
        loops in prop::collection::vec(1usize..4, 1..4),
        most in 300usize..4_000,
        order in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let plan = plan(loops.iter().sum(), pace);
        let mut whole = ModelTally::new(pace);
        for (number, request) in (0..).zip(&requests) {
            whole.begin(number, request);
            whole.end(number, request);
        }
        let mut single = LoadTally::for_plan(&plan);
        single.merge(&whole.tally());
        let (mut agents, messages) = agents(&plan, &requests, &loops, pace, most);
        // Some are sent again, and all are mixed.
        let drawn = messages.iter().zip(order.iter().cycle());
        let again = drawn.filter(|(_, draw)| *draw % 3 == 0).map(|(message, _)| message.clone());
        let again: Vec<Message> = again.collect();
        let mut sent: Vec<(u32, Message)> = (0u32..)
            .zip(messages.into_iter().chain(again))
            .map(|(position, message)| {
                let draw = order[position as usize % order.len()];
                (draw.wrapping_mul(position | 1).rotate_left(9), message)
            })
            .collect();
        sent.sort_by_key(|(position, _)| *position);
        let sent = sent.into_iter().map(|(_, message)| message).collect();
        let live = take(&plan, &mut agents, sent);
        prop_assert!(live == single, "the seconds that are shown");
        let run = FleetRun {
            run: RunId::from_bits(1),
            plan: &plan,
            rules: RunRules { on_lost: OnLost::GoOn, loose_start: false },
            shares: Vec::new(),
            key: SealingKey::random(),
        };
        let mut run = run.add_up(agents, Timestamp::UNIX_EPOCH, None);
        let agents = std::mem::take(&mut run.agents);
        let intended: u64 = agents.iter().map(|agent| agent.intended).sum();
        prop_assert_eq!(intended, run.intended);
        for agent in agents {
            prop_assert_eq!((agent.lost, agent.warnings), (0, Vec::new()));
        }
        let alone = Run::new(&plan, Timestamp::UNIX_EPOCH, single, false);
        prop_assert_eq!(json(&plan, &run), json(&plan, &alone));
    }
}
