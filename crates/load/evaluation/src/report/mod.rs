//! A run as data: the JSON document, the source of all other forms of the report.

mod agents;
mod attempts;
mod calls;
mod charts;
mod course;
mod directory;
mod events;
mod hint;
mod histogram;
mod numbers;
mod page;
mod prometheus;
mod streams;
mod summary;
mod text;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use posthaste_stats::{CensoredSummary, FEWEST_FOR_P999, Statistic, StatisticReading, Summary};
use posthaste_units::thousands;
use serde::{Deserialize, Serialize};

pub use attempts::AttemptsReport;
pub use calls::GrpcReport;
pub use directory::{Directory, DirectoryError, Overwrite, read_report};
pub use events::EventsReport;
pub(crate) use events::REACHED_BY;
pub use histogram::Bin;
pub use page::page;
pub use prometheus::prometheus;
pub use streams::StreamReport;
pub use text::{TextTimes, text};

use posthaste_load::{
    AddressCounts, AgentReport, Buying, Connections, Decoded, EventFormat, EventPlan, Generator,
    Outcome, Outcomes, Pace, Plan, Portion, Protocol, QlogReport, QuicOptions, QuoteUse, Run,
    WhenFull, WhenRejected,
};

/// Version of `report.json`, raised when a number changes its meaning. In version 1, without this number, response
/// times excluded requests without a reply.
pub const FORMAT: u32 = 2;

/// The report, as `--json` prints it and `--out` writes it to `report.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The influence of the generator: true results require a plan that was carried out.
    pub generator: Generator,
    /// The assertions with their results.
    pub assertions: Vec<AssertionResult>,
    /// The plan in words.
    pub plan: PlanDescription,
    /// Wall-clock time at the start, warm-up included (RFC 3339).
    pub started: String,
    /// Requests due per second.
    pub offered_rate: f64,
    /// Requests sent per second of the measured time, regardless of their due times. Retries are in `attempts`.
    pub sent_rate: f64,
    /// Complete replies per second of the measured time, including replies to requests of the warm-up. With retries,
    /// only the reply to the last attempt of a request counts.
    pub achieved_rate: f64,
    /// Good replies per second of the measured time, including replies to requests of the warm-up.
    pub ok_rate: f64,
    /// Bytes of requests per second of the measured time.
    pub bytes_sent_rate: f64,
    /// Bytes of replies per second of the measured time, heads included.
    pub bytes_received_rate: f64,
    /// Measured time in seconds.
    pub duration_s: f64,
    /// Measured time of the plan in seconds. Longer than `duration_s` if the run was stopped.
    pub planned_duration_s: f64,
    /// Requests that the plan has due in its measured time; the mean for random arrivals. None in a closed loop.
    pub planned_requests: Option<u64>,
    /// Requests that became due.
    pub intended: u64,
    /// Requests by outcome. The counts sum to `intended`. With retries, that of the last attempt.
    pub outcomes: Outcomes,
    /// Attempts, if clients retry, or if early data was sent again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempts: Option<AttemptsReport>,
    /// True if the run was stopped before its end.
    pub stopped: bool,
    /// Requests of the warm-up. They count only in connections, bytes, and the rates sent and achieved, if they were
    /// sent and answered in the measured time.
    pub warm_up_requests: u64,
    /// Due to last byte, or to decoded, of all requests due. A request without a complete reply is longer than any
    /// bound.
    pub response_time_ms: CensoredSummary,
    /// The same for good replies only.
    pub ok_response_time_ms: Summary,
    /// Response times of complete replies by bins of 1, 2 and 5 in each decade.
    pub response_time_bins: Vec<Bin>,
    /// Sent to last byte, or to decoded, complete replies only. With retries, of each attempt.
    pub service_time_ms: Summary,
    /// Due to sent: the generator's own lateness.
    pub send_lateness_ms: Summary,
    /// Phases of complete replies.
    pub phases_ms: BTreeMap<String, Summary>,
    /// Decoded content, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decoded: Option<Decoded>,
    /// Events of the replies, if the plan expects some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<EventsReport>,
    /// Counts of quotes, if clients choose by price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quotes: Option<QuoteUse>,
    /// Complete replies by status, to each attempt.
    pub statuses: BTreeMap<u16, u64>,
    /// The called method, and complete replies by status of gRPC, if the requests are gRPC calls.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grpc: Option<GrpcReport>,
    /// The first explanation of each outcome.
    pub reasons: BTreeMap<String, String>,
    /// The likely cause, if no reply came at all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// Connections attempted, warm-up included.
    pub connections: u64,
    /// Resets of reused connections of HTTP/1.1 without a byte of the reply. The server may have closed them while they
    /// were idle.
    #[serde(default)]
    pub reused_resets: u64,
    /// Connections by address of the server, warm-up included.
    #[serde(default)]
    pub addresses: BTreeMap<SocketAddr, AddressCounts>,
    /// Counts of HTTP/2 and HTTP/3, warm-up included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub streams: Option<StreamReport>,
    /// qlog files, if some were written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub qlog: Option<QlogReport>,
    /// Bytes of requests, warm-up included.
    pub bytes_sent: u64,
    /// Bytes of replies, heads and warm-up included.
    pub bytes_received: u64,
    /// The agents that carried the run out, if it had some.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub agents: Vec<AgentReport>,
    /// By step of the plan, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub steps: Vec<PortionReport>,
    /// By request of the mix, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requests: Vec<PortionReport>,
}

/// An assertion with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssertionResult {
    /// As written.
    pub assertion: String,
    /// True if the assertion holds, false if it does not. `None` if that is unknown.
    pub holds: Option<bool>,
    /// The figure in the report, in words.
    pub found: String,
}

impl AssertionResult {
    /// The figure, or the reason why it is unknown.
    pub fn reason(&self) -> &str {
        self.found.strip_prefix("unknown: ").unwrap_or(&self.found)
    }
}

/// The plan in words, as context for the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDescription {
    /// The first URL, and the number of others.
    pub target: String,
    /// Open or closed loop, and its rate.
    pub pace: String,
    /// Protocol. Absent from reports before HTTP/2.
    #[serde(default = "http1")]
    pub protocol: String,
    /// `new` or `keep-alive`.
    pub connection: String,
    /// Connections and streams, if a connection carries several requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub multiplexing: Option<String>,
    /// Properties of QUIC, if the protocol uses it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quic: Option<String>,
    /// Kind of TLS handshakes, if a target uses TLS over TCP.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls: Option<String>,
    /// Connect timeout as written on the command line.
    pub connect_timeout: String,
    /// Timeout as written on the command line.
    pub timeout: String,
    /// Time at the beginning that is not counted.
    pub warm_up: String,
    /// Maximum number of retries and the back-off, if clients retry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retries: Option<String>,
    /// Slowdown of decoding compared with this machine, if replies were decoded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decoding_slowdown: Option<u32>,
    /// Form of the events in the replies, if the plan expects some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<String>,
    /// The broker, type and maximum price of the choice, if clients chose by price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub buying: Option<String>,
    /// Event loops.
    pub threads: usize,
    /// Seed.
    pub seed: u64,
    /// The generator's version.
    pub version: String,
}

/// One step of the plan, or one request of the mix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortionReport {
    /// The rate of the step, or the name of the request.
    pub name: String,
    /// Offered rate, if the plan sets one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offered_rate: Option<f64>,
    /// Complete replies per second of the measured time, including replies to requests of the warm-up.
    pub achieved_rate: f64,
    /// Its requests.
    pub intended: u64,
    /// Attempts of its requests. Equal to `intended` if clients do not retry, and absent from older reports.
    #[serde(default)]
    pub attempts: u64,
    /// Requests by outcome.
    pub outcomes: Outcomes,
    /// Due to last byte, of all its requests. A request without a complete reply is longer than any bound.
    pub response_time_ms: CensoredSummary,
    /// The same for good replies only.
    pub ok_response_time_ms: Summary,
}

impl Report {
    /// Creates the report of a run of `plan`.
    pub fn new(plan: &Plan, run: &Run) -> Self {
        let phases = run.phases.iter();
        let [bytes_sent_rate, bytes_received_rate] = run.byte_rates();
        Self {
            format: FORMAT,
            generator: Generator::check(run),
            assertions: Vec::new(),
            plan: PlanDescription::new(plan),
            started: run.started.to_string(),
            offered_rate: run.offered_rate(),
            sent_rate: run.sent_rate(),
            achieved_rate: run.achieved_rate(),
            ok_rate: run.ok_rate(),
            bytes_sent_rate,
            bytes_received_rate,
            duration_s: run.duration.as_secs_f64(),
            planned_duration_s: plan.length().as_secs_f64(),
            planned_requests: plan.expected(),
            intended: run.intended,
            outcomes: run.outcomes,
            attempts: (plan.retries.is_some() || run.attempts.retried() > 0)
                .then(|| AttemptsReport::new(run)),
            stopped: run.stopped,
            warm_up_requests: run.warm_up,
            response_time_ms: run.response.censored_summary(),
            ok_response_time_ms: run.ok.summary(),
            response_time_bins: histogram::bins(run.response.histogram()),
            service_time_ms: run.service.summary(),
            send_lateness_ms: run.lateness.summary(),
            phases_ms: phases
                .map(|(name, h)| (name.to_owned(), h.summary()))
                .collect(),
            decoded: plan.decoding.map(|_| run.decoded),
            events: plan.events.as_ref().map(|events| {
                let (seconds, has_mark) = (run.duration.as_secs_f64(), events.end_mark.is_some());
                EventsReport::new(&run.events, seconds, has_mark)
            }),
            quotes: plan.buying.as_ref().map(|_| run.quotes),
            statuses: run.statuses.clone(),
            grpc: GrpcReport::new(plan, &run.grpc),
            reasons: reasons(run),
            hint: hint::hint(plan, run),
            connections: run.connections,
            reused_resets: run.reused_resets,
            addresses: run.addresses.clone(),
            streams: plan
                .protocol
                .multiplexing()
                .map(|_| StreamReport::new(&run.streams, plan.protocol.has_early_data())),
            qlog: run.qlog.clone(),
            bytes_sent: run.bytes_sent,
            bytes_received: run.bytes_received,
            agents: run.agents.clone(),
            steps: run.steps.iter().map(PortionReport::new).collect(),
            requests: run.requests.iter().map(PortionReport::new).collect(),
        }
    }

    /// Returns the first explanation of an outcome, if it says more than the outcome's meaning.
    fn reason(&self, outcome: Outcome) -> Option<&str> {
        let reason = self.reasons.get(outcome.name())?;
        (reason != outcome.meaning()).then_some(reason)
    }

    /// Describes the requests that were lost with their agents, if there are some.
    pub fn lost_in_words(&self) -> Option<String> {
        let lost = |agent: &&AgentReport| agent.lost > 0;
        let agents: Vec<&str> = self
            .agents
            .iter()
            .filter(lost)
            .map(|agent| &*agent.name)
            .collect();
        (self.outcomes[Outcome::Lost] > 0).then(|| {
            format!(
                "{} of {} requests were lost with agents ({}): whether they were sent is not known",
                thousands(self.outcomes[Outcome::Lost]),
                thousands(self.intended),
                agents.join(", ")
            )
        })
    }

    /// True if no request got a complete reply. Declined requests expect none.
    pub fn is_silent(&self) -> bool {
        let wanted = self.intended - self.outcomes[Outcome::Declined];
        wanted > 0 && self.response_time_ms.answered == 0
    }

    /// Describes the reason for which the run says nothing about its plan, if there is one.
    pub fn incomplete_in_words(&self) -> Option<String> {
        let stopped = self.stopped.then(|| "the run was stopped".to_owned());
        let qlog = || self.qlog.as_ref().and_then(QlogReport::failure_in_words);
        stopped.or_else(|| self.lost_in_words()).or_else(qlog)
    }

    /// Describes a run without any reply, if this is one.
    pub fn silence_in_words(&self) -> Option<String> {
        let hint = self.hint.iter().map(|hint| format!(": {hint}"));
        self.is_silent()
            .then(|| format!("no reply at all{}", hint.collect::<String>()))
    }

    /// Describes a run whose good replies have no events, although it expects events: nothing is known about them.
    pub fn eventless_in_words(&self) -> Option<String> {
        let events = self.events.as_ref().filter(|_| self.grpc.is_none())?;
        let marked = events.with_end_mark.unwrap_or_default();
        let has_none = events.count == 0 && marked == 0 && self.outcomes[Outcome::Ok] > 0;
        let reason = self.reasons.get(Outcome::Ok.name());
        let reason = reason.map(|reason| format!(": {reason}"));
        has_none.then(|| format!("no event in any reply{}", reason.unwrap_or_default()))
    }

    /// Share of intended requests that did not end as [`Outcome::Ok`].
    pub fn error_share(&self) -> f64 {
        match self.intended {
            0 => 0.0,
            intended => self.outcomes.failed() as f64 / intended as f64,
        }
    }
}

fn reasons(run: &Run) -> BTreeMap<String, String> {
    let occurred = |outcome| run.outcomes[outcome] + run.attempts.outcomes[outcome] > 0;
    run.reasons
        .iter()
        .filter(|(outcome, _)| occurred(**outcome))
        .map(|(outcome, reason)| (outcome.name().to_owned(), reason.clone()))
        .collect()
}

impl PortionReport {
    fn new(portion: &Portion) -> Self {
        let part = &portion.part;
        let seconds = portion.duration.as_secs_f64().max(1e-9);
        Self {
            name: portion.name.clone(),
            offered_rate: portion.offered.map(|rate| rate.as_per_second()),
            achieved_rate: part.completed as f64 / seconds,
            intended: part.outcomes.total(),
            attempts: part.attempts,
            outcomes: part.outcomes,
            response_time_ms: part.responses.all().summary(),
            ok_response_time_ms: part.responses.ok().summary(),
        }
    }
}

impl PlanDescription {
    fn new(plan: &Plan) -> Self {
        let first = plan.requests.first();
        let first = first.expect("a run has requests");
        let mut target = match &first.grpc {
            Some(call) => format!("gRPC {} {}", call.kind(), first.url),
            None => format!("{} {}", first.method, first.url),
        };
        if plan.requests.len() > 1 {
            target.push_str(&format!(" and {} more", plan.requests.len() - 1));
        }
        let connection = match plan.connections {
            Connections::New => "new",
            Connections::KeepAlive => "keep-alive",
        };
        Self {
            target,
            pace: pace_in_words(plan),
            protocol: plan.protocol.name().to_owned(),
            connection: connection.to_owned(),
            multiplexing: multiplexing_in_words(plan),
            quic: plan
                .protocol
                .quic()
                .map(|quic| quic_in_words(quic, plan.tls.resumption)),
            tls: tls_in_words(plan),
            connect_timeout: plan.connect_timeout.to_string(),
            timeout: plan.timeout.to_string(),
            warm_up: plan.warm_up.to_string(),
            retries: plan.retries.map(|policy| policy.to_string()),
            decoding_slowdown: plan.decoding,
            events: plan.events.as_ref().map(events_in_words),
            buying: plan.buying.as_ref().map(buying_in_words),
            threads: plan.threads,
            seed: plan.seed.0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Protocol of reports that do not state it.
fn http1() -> String {
    Protocol::Http1.name().to_owned()
}

/// Describes the connections and streams of HTTP/2 and HTTP/3.
fn multiplexing_in_words(plan: &Plan) -> Option<String> {
    let options = plan.protocol.multiplexing()?;
    let streams = match options.streams {
        Some(streams) => format!("at most {} streams each", thousands(streams as u64)),
        None => "streams as the server permits".to_owned(),
    };
    let when_full = match options.when_full {
        WhenFull::Wait => "",
        WhenFull::Open => ", further connections when full",
        WhenFull::Drop => ", requests dropped when full",
    };
    let rejected = match options.rejected {
        WhenRejected::Count => ", rejected requests not sent again",
        WhenRejected::Resend => "",
    };
    let connections = match plan.connections {
        Connections::New => "a connection for each request".to_owned(),
        Connections::KeepAlive if options.connections == 1 => "1 connection".to_owned(),
        Connections::KeepAlive => format!("{} connections", options.connections),
    };
    Some(format!("{connections}, {streams}{when_full}{rejected}"))
}

/// Describes the connections of QUIC. The initial window and the congestion control are defaults of quinn-proto: ten
/// datagrams (RFC 9002, section 7.2) and CUBIC (RFC 9438).
fn quic_in_words(options: &QuicOptions, resumption: bool) -> String {
    let offload = if options.segmentation_offload {
        "with GSO"
    } else {
        "without GSO"
    };
    let resumption = if options.early_data {
        "early data"
    } else if resumption {
        "resumption: on"
    } else {
        "resumption: off"
    };
    format!(
        "QUIC datagrams of {} bytes {offload}, initial window of 10 datagrams, CUBIC, ECN, {resumption}, static table \
         of QPACK only",
        thousands(posthaste_load::QUIC_DATAGRAM.into())
    )
}

/// Describes the handshakes of TLS over TCP.
fn tls_in_words(plan: &Plan) -> Option<String> {
    let is_tls = |url: &str| {
        url.get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    };
    let has_tls = plan.requests.iter().any(|request| is_tls(&request.url));
    let kind = if plan.tls.resumption {
        "sessions resumed"
    } else {
        "whole handshakes"
    };
    (has_tls && plan.protocol.quic().is_none()).then(|| format!("TLS with {kind}"))
}

fn pace_in_words(plan: &Plan) -> String {
    use posthaste_load::Arrivals;
    match &plan.pace {
        Pace::Closed { clients, length } => format!("closed loop, {clients} clients, {length}"),
        Pace::Open {
            arrivals: Arrivals::Trace(times),
            ..
        } => {
            format!("open loop, {} arrivals from a file", times.len())
        }
        Pace::Open { arrivals, steps } => {
            let process = match arrivals {
                Arrivals::Poisson => "Poisson",
                _ => "constant",
            };
            let rates = match steps.as_slice() {
                [one] if one.from == one.to => one.from.to_string(),
                [one] => format!("{} moving to {}", one.from, one.to),
                [first, .., last] => {
                    format!("{} to {} in {} steps", first.from, last.to, steps.len())
                }
                [] => "nothing".to_owned(),
            };
            format!("open loop, {process} arrivals, {rates}, {}", plan.length())
        }
    }
}

fn buying_in_words(buying: &Buying) -> String {
    let kind = buying.kind.iter().map(|kind| format!(" for {kind}"));
    let most = buying.max_price().into_iter();
    let most = most.map(|most| format!(", {most} at most"));
    let conditions = kind.chain(most).collect::<String>();
    format!("offers of {}{conditions}", buying.broker)
}

/// Describes the events that the plan expects.
fn events_in_words(events: &EventPlan) -> String {
    let format = match events.format {
        EventFormat::Sse => "server-sent events",
        EventFormat::JsonLines => "JSON lines",
        EventFormat::GrpcMessages => "gRPC messages",
    };
    match &events.end_mark {
        Some(mark) => format!("{format} that end with {mark}"),
        None => format.to_owned(),
    }
}

/// Describes the connections, and their streams if they have several.
fn connections_in_words(plan: &PlanDescription) -> String {
    let connections = match &plan.multiplexing {
        None => format!("{} connections", plan.connection),
        Some(multiplexing) => format!("{}: {multiplexing}", plan.protocol),
    };
    let security = plan.quic.iter().chain(&plan.tls);
    security.fold(connections, |text, security| format!("{text}; {security}"))
}

/// Describes the client after the kind of connections, if it retries, decodes or chooses by price.
fn client_in_words(plan: &PlanDescription) -> String {
    let retries = plan.retries.iter();
    let retries: String = retries
        .map(|retries| format!(", retries {retries}"))
        .collect();
    let decoding = match plan.decoding_slowdown {
        None => String::new(),
        Some(1) => ", replies decoded".to_owned(),
        Some(times) => format!(", replies decoded {} times slower", thousands(times.into())),
    };
    let events = plan.events.iter();
    let events: String = events.map(|events| format!(", {events}")).collect();
    let buying = plan.buying.iter();
    buying.fold(retries + &decoding + &events, |client, buying| {
        format!("{client}, {buying}")
    })
}

/// Outcomes that occurred, for lists without zeros.
pub(crate) fn occurred(outcomes: &Outcomes) -> impl Iterator<Item = (Outcome, u64)> + '_ {
    outcomes.iter().filter(|(_, count)| *count > 0)
}

/// Returns a statistic of recorded times. Unknown without any, and for p99.9 of a few.
pub(crate) fn reading(times: &Summary, statistic: Statistic) -> StatisticReading {
    let few = statistic == Statistic::P999 && times.count < FEWEST_FOR_P999;
    if few || times.count == 0 {
        StatisticReading::Unknown
    } else {
        StatisticReading::Known(times.value(statistic))
    }
}
