//! Measurements of one event loop in a second, and their sum over loops and seconds.
//!
//! Times are kept apart: *response time* counts from the due time, *service time* from sending. *Send lateness* is the
//! difference that the generator causes. Over HTTP/2, a request can also wait for a stream (phase `queue`). Response times include every request due; one without a
//! complete reply is longer than any bound. Service times include complete replies only. With retries, service time and
//! phases are those of each attempt.

pub(crate) mod address_counts;
pub(crate) mod attempts;
pub(crate) mod lost;
pub(crate) mod part_results;
pub(crate) mod phases;
pub(crate) mod received;
pub(crate) mod responses;
pub(crate) mod seconds;
#[cfg(test)]
mod tests;
pub(crate) mod tick;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Instant, Span, visible};
use serde::{Deserialize, Serialize};

use crate::buying::QuoteUse;
use crate::grpc::GrpcStatuses;
use crate::outcome::{Outcome, Outcomes};
use crate::plan::source::DueStretch;
use crate::plan::{MeasuredWindow, Plan};
use crate::reply::decoding::Decoded;
use crate::reply::events::EventTally;
use crate::tally::address_counts::AddressCounts;
use crate::tally::attempts::Attempts;
use crate::tally::part_results::PartResults;
use crate::tally::phases::{Moments, Phases};
use crate::transport::multiplexed::StreamCounts;

/// Longest explanation in bytes. A server may send any text.
pub(crate) const LONGEST_EXPLANATION: usize = 4096;

/// An explanation of an outcome, and the attempt that it explains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explanation {
    /// Numbers of the request and of its attempt.
    #[serde(rename = "of")]
    pub(crate) numbers: (u64, u32),
    pub(crate) text: String,
}

/// Everything measured by a loop in a second, or by several loops in several seconds after [`LoadTally::merge`]. Equal sums
/// result from any division into loops and seconds.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadTally {
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
    #[serde(skip)]
    step_ends: Vec<Instant>,
    pub(crate) requests: Vec<PartResults>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Complete replies to gRPC calls.
    pub(crate) grpc: GrpcStatuses,
    /// The explanation of each outcome by its first request.
    pub(crate) reasons: BTreeMap<Outcome, Explanation>,
    pub(crate) decoded: Decoded,
    pub(crate) events: EventTally,
    pub(crate) quotes: QuoteUse,
    pub(crate) connections: u64,
    /// Resets of reused connections of HTTP/1.1 without a byte of the reply.
    pub(crate) reused_resets: u64,
    /// Connections by address, warm-up included.
    pub(crate) addresses: BTreeMap<SocketAddr, AddressCounts>,
    pub(crate) streams: StreamCounts,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Bytes of requests and replies in the measured time.
    pub(crate) bytes_in_time: [u64; 2],
    /// Time at which the loop was stopped, or had nothing more to do.
    #[serde(with = "crate::exact::instant")]
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
    pub(crate) window: MeasuredWindow,
}

impl LoadTally {
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
            reused_resets: 0,
            addresses: BTreeMap::new(),
            streams: StreamCounts::default(),
            bytes_sent: 0,
            bytes_received: 0,
            bytes_in_time: [0; 2],
            over: Instant::ORIGIN,
        }
    }

    /// Creates an empty tally for a plan.
    pub fn for_plan(plan: &Plan) -> Self {
        Self::new(plan.step_ends(), plan.requests.len())
    }

    /// Creates an empty tally of the same plan.
    pub fn emptied(&self) -> Self {
        let mut empty = Self::new(self.step_ends.clone(), 0);
        // Those of a tally from a message are not known, and their number is.
        empty.steps = vec![PartResults::default(); self.steps.len()];
        empty.requests = vec![PartResults::default(); self.requests.len()];
        empty
    }

    /// Requests that became due.
    pub fn intended(&self) -> u64 {
        self.intended
    }

    /// Removes all measurements and keeps the memory.
    pub(crate) fn clear(&mut self) {
        // A field that is not named here is a compile error.
        let Self {
            intended,
            outcomes,
            attempts,
            warm_up,
            unbegun,
            overdue,
            sent,
            completed,
            served,
            ok,
            rest,
            service,
            lateness,
            phases,
            steps,
            step_ends: _,
            requests,
            statuses,
            grpc,
            reasons,
            decoded,
            events,
            quotes,
            connections,
            reused_resets,
            addresses,
            streams,
            bytes_sent,
            bytes_received,
            bytes_in_time,
            over,
        } = self;
        for count in [
            intended,
            warm_up,
            unbegun,
            overdue,
            sent,
            completed,
            served,
            connections,
            reused_resets,
            bytes_sent,
            bytes_received,
        ] {
            *count = 0;
        }
        *bytes_in_time = [0; 2];
        *over = Instant::ORIGIN;
        *outcomes = Outcomes::default();
        *grpc = GrpcStatuses::default();
        *decoded = Decoded::default();
        *quotes = QuoteUse::default();
        *streams = StreamCounts::default();
        for times in [ok, rest, service] {
            times.clear();
        }
        lateness.clear();
        phases.clear();
        attempts.clear();
        events.clear();
        steps.iter_mut().for_each(PartResults::clear);
        requests.iter_mut().for_each(PartResults::clear);
        statuses.clear();
        addresses.clear();
        reasons.clear();
    }

    /// Records the lateness of a request, or of its SYN, that was sent.
    pub(crate) fn sent_late(&mut self, lateness: Span) {
        self.lateness.record(lateness);
    }

    /// Records the lateness of a retry, or of its SYN, that was sent.
    pub(crate) fn retry_sent_late(&mut self, lateness: Span) {
        self.attempts.retry_lateness.record(lateness);
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
        if ending.intended >= ending.window.start {
            self.respond(ending);
        }
        if ending.window.contains(ending.done) && ending.outcome.is_complete() {
            self.count(ending);
        }
    }

    /// Records a request that was due in the measured time.
    fn respond(&mut self, ending: &Ending) {
        let Ending {
            outcome, attempts, ..
        } = *ending;
        let at = ending.intended.since(ending.window.start);
        let response = ending.done.saturating_since(ending.intended);
        match outcome {
            Outcome::Ok => self.ok.record(at, response),
            outcome if outcome.is_complete() => self.rest.record(at, response),
            outcome => self.rest.record_censored(at, outcome.waited(response)),
        }
        self.outcomes[outcome] += 1;
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

    /// Records due requests that were not begun until `now`, when the run was stopped ([`Outcome::InFlight`]) or the plan
    /// had ended ([`Outcome::Dropped`]). All are of one stretch, and have waited at least as long as its last request.
    pub(crate) fn not_begun(
        &mut self,
        outcome: Outcome,
        stretch: &DueStretch,
        request: usize,
        window: MeasuredWindow,
        now: Instant,
    ) {
        let DueStretch { first, last, count } = *stretch;
        if first.at < window.start {
            self.warm_up += count;
            return;
        }
        match outcome {
            Outcome::InFlight => self.unbegun += count,
            _ => self.overdue += count,
        }
        debug_assert!(
            !outcome.is_complete(),
            "a request that was not begun has no reply"
        );
        self.intended += count;
        self.outcomes[outcome] += count;
        self.attempts.outcomes[outcome] += count;
        self.attempts.count_requests(1, count);
        let waited = outcome.waited(now.saturating_since(last));
        let at = first.at.since(window.start);
        self.rest.record_many_censored(at, waited, count);
        for part in self.parts(first.step, request) {
            part.outcomes[outcome] += count;
            part.attempts += count;
            part.responses.record_many_censored(waited, count);
        }
    }

    /// Keeps the explanation of each outcome by the first request, as one line. `numbers` are those of the request and of its attempt.
    pub(crate) fn explain(
        &mut self,
        outcome: Outcome,
        numbers: (u64, u32),
        reason: impl FnOnce() -> String,
    ) {
        if self
            .reasons
            .get(&outcome)
            .is_none_or(|known| numbers < known.numbers)
        {
            let mut text = visible(&reason()).into_owned();
            let fits = |end: &usize| text.is_char_boundary(*end);
            let end = (0..=LONGEST_EXPLANATION.min(text.len())).rfind(fits);
            text.truncate(end.unwrap_or_default());
            self.reasons.insert(outcome, Explanation { numbers, text });
        }
    }

    /// Adds the measurements of another loop or second.
    ///
    /// # Panics
    /// If the other tally is of another plan; see [`LoadTally::check`].
    pub fn merge(&mut self, other: &Self) {
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
            self.explain(*outcome, reason.numbers, || reason.text.clone());
        }
        self.decoded.merge(&other.decoded);
        self.events.merge(&other.events);
        self.quotes.merge(&other.quotes);
        self.connections += other.connections;
        self.reused_resets += other.reused_resets;
        for (address, counts) in &other.addresses {
            *self.addresses.entry(*address).or_default() += *counts;
        }
        self.streams.merge(&other.streams);
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
pub(crate) fn add_statuses(statuses: &mut BTreeMap<u16, u64>, others: &BTreeMap<u16, u64>) {
    for (status, count) in others {
        *statuses.entry(*status).or_default() += count;
    }
}
