//! Measurements of one event loop, and their sum over several.
//!
//! Times are kept apart: *response time* counts from the due time, *service time* from sending. *Send lateness* is the
//! difference that the generator causes. Over HTTP/2, a request can also wait for a stream (phase `queue`). Response times include every request due; one without a
//! complete reply is longer than any bound. Service times include complete replies only. With retries, service time and
//! phases are those of each attempt.

use std::collections::BTreeMap;

use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Instant, Span};

use crate::attempts::Attempts;
use crate::buying::QuoteUse;
use crate::decoding::Decoded;
use crate::events::EventTally;
use crate::grpc::GrpcStatuses;
use crate::multiplexed::StreamCounts;
use crate::outcome::{Outcome, Outcomes};
use crate::responses::Responses;
use crate::source::Due;

/// The instants of one exchange. Those not reached are at the origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) intended: Instant,
    /// Time at which the event loop came to the request.
    pub(crate) begun: Instant,
    /// Time at which it was sent: begun, or later if it waited for a stream of its connection.
    pub(crate) sent: Instant,
    /// True if it has a stream of a connection.
    pub(crate) has_stream: bool,
    pub(crate) connected: Option<Instant>,
    pub(crate) secured: Option<Instant>,
    pub(crate) written: Instant,
    pub(crate) first_byte: Option<Instant>,
    /// Time that the client takes to decode the reply.
    pub(crate) decoding: Option<Span>,
}

/// Phases of complete replies.
#[derive(Clone, Default)]
pub struct Phases {
    /// Name look-up, once per server and run.
    pub dns: Histogram,
    /// Wait for a stream of a connection: for the handshake, the server's limit or one's own. Only over HTTP/2.
    pub queue: Histogram,
    /// SYN to connected, new connections only.
    pub connect: Histogram,
    /// TLS handshake, new connections only.
    pub tls: Histogram,
    /// Writing the request.
    pub send: Histogram,
    /// Request written to first byte of the reply.
    pub wait: Histogram,
    /// First byte to last byte.
    pub receive: Histogram,
    /// Decoding of replies with a content coding, if the plan decodes.
    pub decode: Histogram,
}

impl Phases {
    /// Names, in the order of a request's life.
    pub const NAMES: [&str; 8] = [
        "dns", "queue", "connect", "tls", "send", "wait", "receive", "decode",
    ];

    /// Names and histograms, in the same order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let phases = [
            &self.dns,
            &self.queue,
            &self.connect,
            &self.tls,
            &self.send,
            &self.wait,
            &self.receive,
            &self.decode,
        ];
        Self::NAMES.into_iter().zip(phases)
    }

    fn record(&mut self, moments: &Moments, done: Instant) {
        let mut ready = moments.sent;
        if moments.has_stream {
            self.queue.record(ready.saturating_since(moments.begun));
        }
        if let Some(connected) = moments.connected {
            self.connect.record(connected.saturating_since(ready));
            ready = connected;
        }
        if let Some(secured) = moments.secured {
            self.tls.record(secured.saturating_since(ready));
            ready = secured;
        }
        let received = done - moments.decoding.unwrap_or_default();
        let first_byte = moments.first_byte.unwrap_or(received);
        // A reply can begin before its request has been written.
        self.send.record(moments.written.saturating_since(ready));
        self.wait
            .record(first_byte.saturating_since(moments.written));
        self.receive.record(received.saturating_since(first_byte));
        if let Some(decoding) = moments.decoding {
            self.decode.record(decoding);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.dns.merge(&other.dns);
        self.queue.merge(&other.queue);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.send.merge(&other.send);
        self.wait.merge(&other.wait);
        self.receive.merge(&other.receive);
        self.decode.merge(&other.decode);
    }
}

/// A part of the run that is counted separately: a step of the plan, or a request of the mix.
#[derive(Clone, Default)]
pub struct PartResults {
    /// Its requests by outcome.
    pub outcomes: Outcomes,
    /// Complete replies in the measured time, including replies to requests of the warm-up.
    pub completed: u64,
    /// Complete replies in the measured time that were [`Outcome::Ok`].
    pub served: u64,
    /// Attempts of its requests.
    pub attempts: u64,
    /// Response times of its requests.
    pub responses: Responses,
}

impl PartResults {
    fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        self.completed += other.completed;
        self.served += other.served;
        self.attempts += other.attempts;
        self.responses.merge(&other.responses);
    }
}

/// Measurements of one second.
#[derive(Clone, Default)]
pub struct Tick {
    /// Requests that became due.
    pub intended: u64,
    /// Retries that were sent.
    pub retries: u64,
    /// Requests that ended, by outcome.
    pub outcomes: Outcomes,
    /// Complete replies, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Response times of the requests that ended.
    pub responses: Responses,
    /// The maximum send lateness of the second.
    pub lateness: Span,
}

impl Tick {
    /// Adds the same second of another loop.
    pub fn merge(&mut self, other: &Self) {
        self.intended += other.intended;
        self.retries += other.retries;
        self.outcomes += other.outcomes;
        add_statuses(&mut self.statuses, &other.statuses);
        self.responses.merge(&other.responses);
        self.lateness = self.lateness.max(other.lateness);
    }
}

/// Everything measured by one loop, or by all of them after [`LoopTally::merge`].
pub(crate) struct LoopTally {
    pub(crate) intended: u64,
    pub(crate) outcomes: Outcomes,
    pub(crate) attempts: Attempts,
    pub(crate) warm_up: u64,
    /// Requests that the loop had not begun when it was stopped.
    pub(crate) unbegun: u64,
    /// Requests that the loop had not begun when the plan ended. They are [`Outcome::Dropped`].
    pub(crate) overdue: u64,
    /// Requests sent in the measured time, regardless of their due times.
    pub(crate) sent: u64,
    pub(crate) completed: u64,
    pub(crate) served: u64,
    /// Response times of good replies.
    pub(crate) ok: Recorder,
    /// Response times of all other requests.
    pub(crate) rest: Recorder,
    pub(crate) service: Recorder,
    pub(crate) lateness: Histogram,
    pub(crate) phases: Phases,
    pub(crate) steps: Vec<PartResults>,
    /// End of each step, so that a reply counts for the step in which it came.
    step_ends: Vec<Instant>,
    pub(crate) requests: Vec<PartResults>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Complete replies to gRPC calls.
    pub(crate) grpc: GrpcStatuses,
    pub(crate) reasons: BTreeMap<Outcome, String>,
    pub(crate) decoded: Decoded,
    pub(crate) events: EventTally,
    pub(crate) quotes: QuoteUse,
    pub(crate) connections: u64,
    pub(crate) http2: StreamCounts,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Bytes of requests and replies in the measured time.
    pub(crate) bytes_in_time: [u64; 2],
    pub(crate) tick: Tick,
    /// Time at which the loop was stopped, or had nothing more to do.
    pub(crate) over: Instant,
}

/// The record of a request's end.
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// Number of its attempts.
    pub(crate) attempts: u32,
    pub(crate) step: usize,
    pub(crate) request: usize,
    /// First due time.
    pub(crate) intended: Instant,
    pub(crate) done: Instant,
    /// The measured time. Requests due in it are recorded; replies that come in it count towards the achieved rate.
    pub(crate) window: (Instant, Instant),
}

impl LoopTally {
    /// Creates an empty tally for steps that end at these instants and this number of requests. A single step or
    /// request is not counted separately.
    pub(crate) fn new(step_ends: Vec<Instant>, requests: usize) -> Self {
        let parts = |count: usize| vec![PartResults::default(); if count > 1 { count } else { 0 }];
        Self {
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
            steps: parts(step_ends.len()),
            step_ends,
            requests: parts(requests),
            statuses: BTreeMap::new(),
            grpc: GrpcStatuses::default(),
            reasons: BTreeMap::new(),
            decoded: Decoded::default(),
            events: EventTally::default(),
            quotes: QuoteUse::default(),
            connections: 0,
            http2: StreamCounts::default(),
            bytes_sent: 0,
            bytes_received: 0,
            bytes_in_time: [0; 2],
            tick: Tick::default(),
            over: Instant::ORIGIN,
        }
    }

    /// Records the lateness of a request, or of its SYN, that was sent.
    pub(crate) fn sent_late(&mut self, lateness: Span) {
        self.lateness.record(lateness);
        self.tick.lateness = self.tick.lateness.max(lateness);
    }

    /// Records the lateness of a retry, or of its SYN, that was sent.
    pub(crate) fn retry_sent_late(&mut self, lateness: Span) {
        self.attempts.retry_lateness.record(lateness);
        self.tick.retries += 1;
        self.tick.lateness = self.tick.lateness.max(lateness);
    }

    /// Records the end of an attempt, if its request was due in the measured time, which began at `start`.
    pub(crate) fn attempt_ended(
        &mut self,
        outcome: Outcome,
        moments: &Moments,
        done: Instant,
        start: Instant,
    ) {
        debug_assert!(
            moments.intended <= moments.begun
                && moments.begun <= moments.sent
                && moments.sent <= done,
            "an exchange ends before it begins: {moments:?}"
        );
        if moments.intended < start {
            return;
        }
        self.attempts.outcomes[outcome] += 1;
        if outcome.is_complete() {
            let at = moments.intended.since(start);
            self.service.record(at, done.saturating_since(moments.sent));
            self.phases.record(moments, done);
        }
    }

    /// Records the end of a request. It is recorded if it was due in the measured time. Its reply counts towards the
    /// achieved rate if it came in the measured time.
    pub(crate) fn ended(&mut self, ending: &Ending) {
        let (start, end) = ending.window;
        if ending.intended >= start {
            self.respond(ending);
        }
        let answered = ending.done >= start && ending.done <= end;
        if answered && ending.outcome.is_complete() {
            self.count(ending);
        }
    }

    /// Records a request that was due in the measured time.
    fn respond(&mut self, ending: &Ending) {
        let Ending {
            outcome, attempts, ..
        } = *ending;
        let at = ending.intended.since(ending.window.0);
        let response = ending.done.saturating_since(ending.intended);
        match outcome {
            Outcome::Ok => self.ok.record(at, response),
            outcome if outcome.is_complete() => self.rest.record(at, response),
            outcome => self.rest.record_censored(at, outcome.waited(response)),
        }
        self.outcomes[outcome] += 1;
        self.tick.outcomes[outcome] += 1;
        self.tick.responses.record(outcome, response);
        self.attempts.count_request(attempts);
        for part in self.parts(ending.step, ending.request) {
            part.outcomes[outcome] += 1;
            part.attempts += u64::from(attempts);
            part.responses.record(outcome, response);
        }
    }

    /// The step and the request of the mix, if they are counted separately.
    fn parts(&mut self, step: usize, request: usize) -> impl Iterator<Item = &mut PartResults> {
        let step = self.steps.get_mut(step);
        let request = self.requests.get_mut(request);
        [step, request].into_iter().flatten()
    }

    fn count(&mut self, ending: &Ending) {
        let served = u64::from(ending.outcome == Outcome::Ok);
        self.completed += 1;
        self.served += served;
        let during = self.step_ends.partition_point(|end| *end < ending.done);
        for part in self.parts(during, ending.request) {
            part.completed += 1;
            part.served += served;
        }
    }

    /// Records a due request that was not begun until `now`, when the run was stopped ([`Outcome::InFlight`]) or the
    /// plan had ended ([`Outcome::Dropped`]).
    pub(crate) fn not_begun(
        &mut self,
        outcome: Outcome,
        due: &Due,
        request: usize,
        (window, now): ((Instant, Instant), Instant),
    ) {
        if due.at < window.0 {
            self.warm_up += 1;
            return;
        }
        match outcome {
            Outcome::InFlight => self.unbegun += 1,
            _ => self.overdue += 1,
        }
        self.intended += 1;
        self.tick.intended += 1;
        self.attempts.outcomes[outcome] += 1;
        self.respond(&Ending {
            outcome,
            attempts: 1,
            step: due.step,
            request,
            intended: due.at,
            done: now,
            window,
        });
    }

    /// Keeps the first explanation of each outcome.
    pub(crate) fn explain(&mut self, outcome: Outcome, reason: impl FnOnce() -> String) {
        self.reasons.entry(outcome).or_insert_with(reason);
    }

    /// Adds the measurements of another loop.
    pub(crate) fn merge(&mut self, other: &Self) {
        assert!(
            self.steps.len() == other.steps.len() && self.requests.len() == other.requests.len(),
            "tallies of different plans are merged"
        );
        let ended = self.outcomes.total() + other.outcomes.total();
        self.intended += other.intended;
        self.outcomes += other.outcomes;
        self.attempts.merge(&other.attempts);
        self.warm_up += other.warm_up;
        self.unbegun += other.unbegun;
        self.overdue += other.overdue;
        self.sent += other.sent;
        self.completed += other.completed;
        self.served += other.served;
        self.ok.merge(&other.ok);
        self.rest.merge(&other.rest);
        self.service.merge(&other.service);
        self.lateness.merge(&other.lateness);
        self.phases.merge(&other.phases);
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.requests.iter_mut().zip(&other.requests) {
            mine.merge(theirs);
        }
        add_statuses(&mut self.statuses, &other.statuses);
        self.grpc.merge(&other.grpc);
        for (outcome, reason) in &other.reasons {
            self.explain(*outcome, || reason.clone());
        }
        self.decoded.merge(&other.decoded);
        self.events.merge(&other.events);
        self.quotes.merge(&other.quotes);
        self.connections += other.connections;
        self.http2.merge(&other.http2);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (mine, theirs) in self.bytes_in_time.iter_mut().zip(other.bytes_in_time) {
            *mine += theirs;
        }
        self.over = self.over.max(other.over);
        assert_eq!(
            self.outcomes.total(),
            ended,
            "merged tallies have another number of outcomes"
        );
        assert!(
            self.served <= self.completed,
            "more good replies than complete ones"
        );
    }
}

/// Adds counts of replies by status.
fn add_statuses(statuses: &mut BTreeMap<u16, u64>, others: &BTreeMap<u16, u64>) {
    for (status, count) in others {
        *statuses.entry(*status).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the instant `millis` milliseconds from the origin.
    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(millis)
    }

    /// Records the end of a request, for a window from 100 to 200 ms.
    fn end(tally: &mut LoopTally, intended: u64, sent: u64, done: u64) {
        let moments = Moments {
            intended: at(intended),
            begun: at(sent),
            sent: at(sent),
            written: at(sent),
            ..Moments::default()
        };
        let window = (at(100), at(200));
        tally.attempt_ended(Outcome::Ok, &moments, at(done), window.0);
        tally.ended(&Ending {
            outcome: Outcome::Ok,
            attempts: 1,
            step: 0,
            request: 0,
            intended: at(intended),
            done: at(done),
            window,
        });
    }

    #[test]
    fn response_time_counts_from_when_a_request_was_due() {
        let mut tally = LoopTally::new(vec![at(200)], 1);
        end(&mut tally, 110, 140, 160);
        let means = [&tally.ok, &tally.service].map(|times| times.histogram().mean());
        let millis = means.map(|mean| mean.as_millis_f64().round());
        assert_eq!(millis, [50.0, 20.0]);
    }

    #[test]
    fn the_rate_counts_what_comes_in_the_measured_time_whenever_it_was_due() {
        let mut tally = LoopTally::new(vec![at(200)], 1);
        for (intended, done, recorded, completed) in [
            (50, 99, 0, 0),
            // A reply to a request of the warm-up counts as a reply in the measured time.
            (50, 150, 0, 1),
            (150, 160, 1, 2),
            (190, 201, 2, 2),
        ] {
            end(&mut tally, intended, intended, done);
            assert_eq!(
                (tally.outcomes.total(), tally.completed),
                (recorded, completed)
            );
        }
    }
}
