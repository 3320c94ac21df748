//! What one event loop writes down, and how the notes of several become one.
//!
//! Three times are kept apart and never mixed: *response time* counts from when a request
//! was due, *service time* from when it was sent, *send lateness* is the difference: the
//! generator's own. Every request that was due enters the first, one without a complete reply as
//! longer than any bound; only complete replies enter the second.

use std::collections::BTreeMap;

use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Instant, Span};

use crate::buying::QuoteUse;
use crate::decoding::Decoded;
use crate::outcome::{Outcome, Outcomes};
use crate::responses::Responses;
use crate::source::Due;

/// The instants of one exchange; those not reached stand at the origin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) intended: Instant,
    pub(crate) sent: Instant,
    pub(crate) connected: Option<Instant>,
    pub(crate) secured: Option<Instant>,
    pub(crate) written: Instant,
    pub(crate) first_byte: Option<Instant>,
    /// How long the client takes to decode what has come.
    pub(crate) decoding: Option<Span>,
}

/// Where the time of complete replies went.
#[derive(Clone, Default)]
pub struct Phases {
    /// Name look-up, once per server and run.
    pub dns: Histogram,
    /// SYN to connected, new connections only.
    pub connect: Histogram,
    /// TLS handshake, new connections only.
    pub tls: Histogram,
    /// Writing the request.
    pub send: Histogram,
    /// Request written to first byte of the reply.
    pub wait: Histogram,
    /// First byte to last.
    pub receive: Histogram,
    /// Decoding, replies with a coding only, where the plan decodes.
    pub decode: Histogram,
}

impl Phases {
    /// Their names, in the order of a request's life.
    pub const NAMES: [&str; 7] = ["dns", "connect", "tls", "send", "wait", "receive", "decode"];

    /// Name and histogram, in that order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let phases = [
            &self.dns,
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
        if let Some(connected) = moments.connected {
            self.connect.record(connected.since(ready));
            ready = connected;
        }
        if let Some(secured) = moments.secured {
            self.tls.record(secured.since(ready));
            ready = secured;
        }
        let received = done - moments.decoding.unwrap_or_default();
        let first_byte = moments.first_byte.unwrap_or(received);
        self.send.record(moments.written.since(ready));
        self.wait.record(first_byte.since(moments.written));
        self.receive.record(received.since(first_byte));
        if let Some(decoding) = moments.decoding {
            self.decode.record(decoding);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.dns.merge(&other.dns);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.send.merge(&other.send);
        self.wait.merge(&other.wait);
        self.receive.merge(&other.receive);
        self.decode.merge(&other.decode);
    }
}

/// A part of the run, counted by itself: a step of the plan, a request of the mix.
#[derive(Clone, Default)]
pub struct Part {
    /// How its requests ended.
    pub outcomes: Outcomes,
    /// Complete replies that came in the measured time, also those to requests of the warm-up.
    pub completed: u64,
    /// Those of them that were [`Outcome::Ok`].
    pub served: u64,
    /// Response times of its requests.
    pub responses: Responses,
}

impl Part {
    fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        self.completed += other.completed;
        self.served += other.served;
        self.responses.merge(&other.responses);
    }
}

/// What happened in one second.
#[derive(Clone, Default)]
pub struct Tick {
    /// Requests that became due.
    pub intended: u64,
    /// Requests that ended, and how.
    pub outcomes: Outcomes,
    /// Complete replies among them, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Response times of the requests that ended.
    pub responses: Responses,
    /// The latest send of the second.
    pub lateness: Span,
}

impl Tick {
    /// Adds the same second of another loop.
    pub fn merge(&mut self, other: &Self) {
        self.intended += other.intended;
        self.outcomes += other.outcomes;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.responses.merge(&other.responses);
        self.lateness = self.lateness.max(other.lateness);
    }
}

/// Everything measured by one loop, or by all of them after [`Tally::merge`].
pub(crate) struct Tally {
    pub(crate) intended: u64,
    pub(crate) outcomes: Outcomes,
    pub(crate) warm_up: u64,
    /// Requests that the loop had not come to when it was stopped.
    pub(crate) unbegun: u64,
    /// Requests that the loop had not come to when the plan ended: they are [`Outcome::Dropped`].
    pub(crate) overdue: u64,
    /// Requests sent in the measured time, whenever they were due.
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
    pub(crate) steps: Vec<Part>,
    /// When each step ends, so that a reply counts for the step in which it came.
    step_ends: Vec<Instant>,
    pub(crate) requests: Vec<Part>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) reasons: BTreeMap<Outcome, String>,
    pub(crate) decoded: Decoded,
    pub(crate) quotes: QuoteUse,
    pub(crate) connections: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Bytes of requests and replies in the measured time.
    pub(crate) bytes_in_time: [u64; 2],
    pub(crate) tick: Tick,
    /// When the loop was told to stop, or had nothing more to do.
    pub(crate) over: Instant,
}

/// What is written down of a request's end.
pub(crate) struct Ending<'m> {
    pub(crate) outcome: Outcome,
    pub(crate) step: usize,
    pub(crate) request: usize,
    pub(crate) moments: &'m Moments,
    pub(crate) done: Instant,
    /// The measured time: requests due in it are recorded, replies that come in it count towards the
    /// achieved rate.
    pub(crate) window: (Instant, Instant),
}

impl Tally {
    /// Empty, for steps that end at these instants and so many requests; a single one is not
    /// counted apart.
    pub(crate) fn new(step_ends: Vec<Instant>, requests: usize) -> Self {
        let parts = |count: usize| vec![Part::default(); if count > 1 { count } else { 0 }];
        Self {
            intended: 0,
            outcomes: Outcomes::default(),
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
            reasons: BTreeMap::new(),
            decoded: Decoded::default(),
            quotes: QuoteUse::default(),
            connections: 0,
            bytes_sent: 0,
            bytes_received: 0,
            bytes_in_time: [0; 2],
            tick: Tick::default(),
            over: Instant::ORIGIN,
        }
    }

    /// A request was put on the wire (or its SYN was).
    pub(crate) fn sent_late(&mut self, lateness: Span) {
        self.lateness.record(lateness);
        self.tick.lateness = self.tick.lateness.max(lateness);
    }

    /// A request has ended: who was due in the measured time is recorded, and who was answered in it counts
    /// towards the rate that was achieved.
    pub(crate) fn ended(&mut self, ending: &Ending<'_>) {
        let (start, end) = ending.window;
        if ending.moments.intended >= start {
            self.record(ending);
        }
        let answered = ending.done >= start && ending.done <= end;
        if answered && ending.outcome.is_complete() {
            self.count(ending);
        }
    }

    fn record(&mut self, ending: &Ending<'_>) {
        let Ending {
            outcome,
            moments,
            done,
            ..
        } = *ending;
        let at = moments.intended.since(ending.window.0);
        if outcome.is_complete() {
            self.service.record(at, done.since(moments.sent));
            self.phases.record(moments, done);
        }
        let part = (ending.step, ending.request);
        self.respond(outcome, part, at, done.since(moments.intended));
    }

    /// Enters a request that was due at `at` of the measured time and ended `response` later.
    fn respond(&mut self, outcome: Outcome, part: (usize, usize), at: Span, response: Span) {
        match outcome {
            Outcome::Ok => self.ok.record(at, response),
            outcome if outcome.is_complete() => self.rest.record(at, response),
            outcome => self.rest.record_censored(at, outcome.waited(response)),
        }
        self.outcomes[outcome] += 1;
        self.tick.outcomes[outcome] += 1;
        self.tick.responses.record(outcome, response);
        for part in self.parts(part.0, part.1) {
            part.outcomes[outcome] += 1;
            part.responses.record(outcome, response);
        }
    }

    /// The step and the request of the mix that a request belongs to, where they are counted apart.
    fn parts(&mut self, step: usize, request: usize) -> impl Iterator<Item = &mut Part> {
        let step = self.steps.get_mut(step);
        let request = self.requests.get_mut(request);
        [step, request].into_iter().flatten()
    }

    fn count(&mut self, ending: &Ending<'_>) {
        let served = u64::from(ending.outcome == Outcome::Ok);
        self.completed += 1;
        self.served += served;
        let during = self.step_ends.partition_point(|end| *end < ending.done);
        for part in self.parts(during, ending.request) {
            part.completed += 1;
            part.served += served;
        }
    }

    /// A request was due and was not begun until `now`, when the run was stopped ([`Outcome::InFlight`]) or the plan had
    /// ended ([`Outcome::Dropped`]). The measured time began at `start`.
    pub(crate) fn not_begun(
        &mut self,
        outcome: Outcome,
        due: &Due,
        request: usize,
        (start, now): (Instant, Instant),
    ) {
        if due.at < start {
            self.warm_up += 1;
            return;
        }
        match outcome {
            Outcome::InFlight => self.unbegun += 1,
            _ => self.overdue += 1,
        }
        self.intended += 1;
        self.tick.intended += 1;
        let (at, response) = (due.at.since(start), now.since(due.at));
        self.respond(outcome, (due.step, request), at, response);
    }

    /// Keeps the first explanation of each kind of end.
    pub(crate) fn explain(&mut self, outcome: Outcome, reason: impl FnOnce() -> String) {
        self.reasons.entry(outcome).or_insert_with(reason);
    }

    /// Adds what another loop has measured.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.intended += other.intended;
        self.outcomes += other.outcomes;
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
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (outcome, reason) in &other.reasons {
            self.explain(*outcome, || reason.clone());
        }
        self.decoded.merge(&other.decoded);
        self.quotes.merge(&other.quotes);
        self.connections += other.connections;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        for (mine, theirs) in self.bytes_in_time.iter_mut().zip(other.bytes_in_time) {
            *mine += theirs;
        }
        self.over = self.over.max(other.over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instant so many milliseconds from the origin.
    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(millis)
    }

    /// Enters the end of a request in a window from 100 to 200 ms.
    fn end(tally: &mut Tally, intended: u64, sent: u64, done: u64) {
        let moments = Moments {
            intended: at(intended),
            sent: at(sent),
            written: at(sent),
            ..Moments::default()
        };
        tally.ended(&Ending {
            outcome: Outcome::Ok,
            step: 0,
            request: 0,
            moments: &moments,
            done: at(done),
            window: (at(100), at(200)),
        });
    }

    #[test]
    fn response_time_counts_from_when_a_request_was_due() {
        let mut tally = Tally::new(vec![at(200)], 1);
        end(&mut tally, 110, 140, 160);
        let means = [&tally.ok, &tally.service].map(|times| times.histogram().mean());
        let millis = means.map(|mean| mean.as_millis_f64().round());
        assert_eq!(millis, [50.0, 20.0]);
    }

    #[test]
    fn the_rate_counts_what_comes_in_the_measured_time_whenever_it_was_due() {
        let mut tally = Tally::new(vec![at(200)], 1);
        for (intended, done, recorded, completed) in [
            (50, 99, 0, 0),
            // A reply to the warm-up is one that the server gave in the measured time.
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
