//! Results of a run, as the source of all reports.

pub(crate) mod agents;
mod assembly;
pub(crate) mod generator;
mod self_check;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Rate, Span};

use crate::buying::QuoteUse;
use crate::grpc::GrpcStatuses;
use crate::outcome::{Outcome, Outcomes};
use crate::reply::decoding::Decoded;
use crate::reply::events::EventTally;
use crate::results::agents::AgentReport;
use crate::tally::address_counts::AddressCounts;
use crate::tally::attempts::Attempts;
use crate::tally::part_results::PartResults;
use crate::tally::phases::Phases;
use crate::transport::multiplexed::StreamCounts;
use crate::transport::quic::QlogReport;

/// A part of a run with its own report.
pub struct Portion {
    /// The rate of a step, or the name of a request.
    pub name: String,
    /// Offered rate, if the plan sets one.
    pub offered: Option<Rate>,
    /// Duration.
    pub duration: Span,
    /// Results.
    pub part: PartResults,
}

/// Results of a run.
pub struct Run {
    /// Requests that became due. Equal to the sum of outcomes.
    pub intended: u64,
    /// Requests by outcome. With retries, that of the last attempt.
    pub outcomes: Outcomes,
    /// Attempts of the requests. One each if clients do not retry.
    pub attempts: Attempts,
    /// Requests of the warm-up. They count only in connections, bytes, and the requests sent and replies received in
    /// the measured time.
    pub warm_up: u64,
    /// The measured time: as planned, or until the run was stopped.
    pub duration: Span,
    /// Requests due when the run was stopped that the generator had not begun. They are [`Outcome::InFlight`].
    pub unbegun: u64,
    /// Requests due when the plan ended that the generator had not begun. They are [`Outcome::Dropped`].
    pub overdue: u64,
    /// Requests sent in the measured time, without retries.
    pub sent: u64,
    /// Complete replies in the measured time, including replies to requests of the warm-up. With retries, only the
    /// reply to the last attempt of a request counts.
    pub completed: u64,
    /// Complete replies in the measured time that were [`Outcome::Ok`].
    pub served: u64,
    /// Wall-clock time at the start, warm-up included.
    pub started: Timestamp,
    /// Due to last byte, or to decoded, of all requests due. A request without a complete reply is longer than any
    /// bound.
    pub response: Recorder,
    /// The same for good replies only.
    pub ok: Recorder,
    /// Sent to last byte, or to decoded, complete replies only. With retries, of each attempt.
    pub service: Recorder,
    /// Due to sent: the generator's own lateness.
    pub lateness: Histogram,
    /// Phases of complete replies.
    pub phases: Phases,
    /// By step of the plan, if there are several.
    pub steps: Vec<Portion>,
    /// By request of the mix, if there are several.
    pub requests: Vec<Portion>,
    /// Complete replies by status, to each attempt.
    pub statuses: BTreeMap<u16, u64>,
    /// Complete replies to gRPC calls by status, to each attempt. Empty without calls.
    pub grpc: GrpcStatuses,
    /// The first explanation of each outcome.
    pub reasons: BTreeMap<Outcome, String>,
    /// Decoded content. Zero if the plan leaves replies coded.
    pub decoded: Decoded,
    /// Events of the replies. Empty if the plan expects none.
    pub events: EventTally,
    /// Counts of quotes. Zero if clients do not choose by price.
    pub quotes: QuoteUse,
    /// Connections attempted, warm-up included.
    pub connections: u64,
    /// Resets of reused connections of HTTP/1.1 without a byte of the reply.
    pub reused_resets: u64,
    /// Connections by address, warm-up included.
    pub addresses: BTreeMap<SocketAddr, AddressCounts>,
    /// Counts of HTTP/2. All zero with HTTP/1.
    pub streams: StreamCounts,
    /// Bytes of requests, warm-up included.
    pub bytes_sent: u64,
    /// Bytes of replies, heads and warm-up included.
    pub bytes_received: u64,
    /// Bytes of requests and of replies in the measured time.
    pub bytes_in_time: [u64; 2],
    /// True if the run was stopped before its end.
    pub stopped: bool,
    /// The agents that carried the run out. Empty without agents.
    pub agents: Vec<AgentReport>,
    /// qlog files, if the plan has some written.
    pub qlog: Option<QlogReport>,
}

impl Run {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.duration.as_secs_f64().max(1e-9)
    }

    /// Requests due per second.
    pub fn offered_rate(&self) -> f64 {
        self.per_second(self.intended)
    }

    /// Requests that were attempted: a SYN or more left this machine for each. With retries, for the last attempt.
    pub fn attempted(&self) -> u64 {
        self.outcomes.attempted() - self.unbegun
    }

    /// Requests sent per second of the measured time. Less than the offered rate if the generator falls behind.
    pub fn sent_rate(&self) -> f64 {
        self.per_second(self.sent)
    }

    /// Attempts sent per second of the measured time.
    pub fn attempt_rate(&self) -> f64 {
        self.per_second(self.attempts.sent)
    }

    /// Complete replies per second of the measured time.
    pub fn achieved_rate(&self) -> f64 {
        self.per_second(self.completed)
    }

    /// Good replies per second of the measured time.
    pub fn ok_rate(&self) -> f64 {
        self.per_second(self.served)
    }

    /// Bytes of requests and of replies per second of the measured time.
    pub fn byte_rates(&self) -> [f64; 2] {
        self.bytes_in_time.map(|bytes| self.per_second(bytes))
    }
}
