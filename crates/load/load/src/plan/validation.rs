//! Limits of a plan from another machine: a plan within them can be prepared and carried out without a panic.
//!
//! Errors that the preparation reports, such as an unknown host or a template that cannot be parsed, are left to it.

use posthaste_qos::Requirement;
use posthaste_units::Span;
use thiserror::Error;

use super::{Pace, Plan};
use crate::buying::Buying;
use crate::plan::pace::{Arrivals, LONGEST_RUN, RateStep};
use crate::reply::events::{EventFormat, EventPlan, LONGEST_END_MARK};
use crate::request::RequestSpec;
use crate::target::Resolve;
use crate::transport::tls::PemFile;

/// Maximum number of requests in a mix, and of addresses for names.
const MOST_REQUESTS: usize = 10_000;
/// Maximum number of header fields of a request.
const MOST_FIELDS: usize = 1_000;
/// Maximum number of steps.
const MOST_STEPS: usize = 100_000;
/// Maximum rate per second. Arrivals have a resolution of a nanosecond.
const MOST_PER_SECOND: f64 = 1e9;
/// Maximum rate per second of requests that are counted one by one.
const MOST_COUNTED_PER_SECOND: f64 = 1e6;
/// Maximum number of event loops of all machines.
const MOST_THREADS: usize = 1 << 16;
/// Maximum number of clients of a closed loop, and of connections.
const MOST_CLIENTS: usize = 1 << 22;
/// Maximum slowdown of decoding.
const MOST_SLOWDOWN: u32 = 1_000_000;
/// Longest URL and longest type of interface, in bytes.
const LONGEST_NAME: usize = 64 << 10;

/// Reason why a plan cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part}: {reason}")]
pub struct PlanError {
    /// The part of the plan.
    part: &'static str,
    /// The limit that it exceeds.
    reason: String,
}

fn refused<T>(part: &'static str, reason: impl Into<String>) -> Result<T, PlanError> {
    let reason = reason.into();
    Err(PlanError { part, reason })
}

fn check(part: &'static str, holds: bool, reason: &str) -> Result<(), PlanError> {
    if holds { Ok(()) } else { refused(part, reason) }
}

/// Fails unless a number is from 1 to `most`.
fn check_count(part: &'static str, count: usize, most: usize) -> Result<(), PlanError> {
    if (1..=most).contains(&count) {
        Ok(())
    } else {
        refused(part, format!("{count} is not from 1 to {most}"))
    }
}

impl Plan {
    /// Fails if the plan exceeds a limit that the preparation of a run relies on. A plan that was read from a message
    /// is valid.
    pub fn validate(&self) -> Result<(), PlanError> {
        check_requests(&self.requests)?;
        check_addresses(&self.resolve)?;
        check_pace(&self.pace, self.warm_up)?;
        let is_trace = matches!(
            &self.pace,
            Pace::Open {
                arrivals: Arrivals::Trace(_),
                ..
            }
        );
        let is_countable = is_trace || self.highest_rate() <= Some(MOST_COUNTED_PER_SECOND);
        check(
            "pace",
            is_countable || self.is_uniform(),
            "a rate above 1,000,000/s needs constant arrivals, one request and no events, because each request is counted \
             by itself otherwise",
        )?;
        check_count("threads", self.threads, MOST_THREADS)?;
        check(
            "cpus",
            self.cpus.len() <= MOST_THREADS,
            "the list is too long",
        )?;
        check_count("connection_limit", self.connection_limit, MOST_CLIENTS)?;
        if let Some(multiplexing) = self.protocol.multiplexing() {
            check_count("protocol", multiplexing.connections, MOST_CLIENTS)?;
            check_count("protocol", multiplexing.streams.unwrap_or(1), MOST_CLIENTS)?;
        }
        if let Some(Err(error)) = self.retries.map(|retries| retries.backoff.check()) {
            return refused("retries", error.to_string());
        }
        let slowdown = self.decoding.unwrap_or(1);
        let is_slower = (1..=MOST_SLOWDOWN).contains(&slowdown);
        check("decoding", is_slower, "a slowdown is from 1 to 1,000,000")?;
        let files = [&self.tls.certificate, &self.tls.key, &self.tls.roots];
        let is_short = |file: &PemFile| {
            file.bytes.len() <= PemFile::LONGEST && file.name.len() <= LONGEST_NAME
        };
        let mut files = files.into_iter().flatten();
        check("tls", files.all(is_short), "a file is too long")?;
        if let Some(events) = &self.events {
            check_events(events, self.has_calls())?;
        }
        self.buying.as_ref().map_or(Ok(()), check_buying)
    }
}

fn check_requests(requests: &[RequestSpec]) -> Result<(), PlanError> {
    check_count("requests", requests.len(), MOST_REQUESTS)?;
    let weights = requests.iter().map(|request| request.weight);
    let is_share = |weight: f64| weight.is_finite() && weight > 0.0;
    let is_mix = weights.clone().all(is_share) && weights.sum::<f64>().is_finite();
    check(
        "requests",
        is_mix,
        "weights and their sum are finite and above 0",
    )?;
    let is_url = |url: &str| url.len() <= LONGEST_NAME && !url.contains(char::is_control);
    let are_urls = requests.iter().all(|request| is_url(&request.url));
    check(
        "requests",
        are_urls,
        "a URL is too long or has a control character",
    )?;
    let has_few = |request: &RequestSpec| request.headers.len() <= MOST_FIELDS;
    check(
        "requests",
        requests.iter().all(has_few),
        "too many header fields",
    )
}

fn check_addresses(resolve: &[Resolve]) -> Result<(), PlanError> {
    let is_name = |resolve: &Resolve| {
        let host = &resolve.host;
        let is_lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
        (1..=LONGEST_NAME).contains(&host.len()) && is_lower && !host.contains(':')
    };
    check(
        "resolve",
        resolve.len() <= MOST_REQUESTS,
        "too many addresses",
    )?;
    let are_names = resolve.iter().all(is_name);
    check(
        "resolve",
        are_names,
        "a host is a name in lower case, without a port",
    )
}

fn check_pace(pace: &Pace, warm_up: Span) -> Result<(), PlanError> {
    let length = match pace {
        Pace::Closed { clients, length } => {
            let clients = usize::try_from(*clients).unwrap_or(usize::MAX);
            check_count("pace", clients, MOST_CLIENTS)?;
            *length
        }
        Pace::Open { arrivals, steps } => {
            check("pace", steps.len() <= MOST_STEPS, "too many steps")?;
            let is_possible = |step: &RateStep| {
                let most = step.from.as_per_second().max(step.to.as_per_second());
                most <= MOST_PER_SECOND
            };
            let are_possible = steps.iter().all(is_possible);
            check("pace", are_possible, "a rate is at most 1,000,000,000/s")?;
            match arrivals {
                Arrivals::Trace(times) => {
                    check("pace", steps.is_empty(), "a trace has no rates")?;
                    check("pace", times.is_sorted(), "the times of a trace decrease")?;
                    times.last().copied().unwrap_or_default()
                }
                Arrivals::Constant | Arrivals::Poisson => {
                    steps.iter().map(|step| step.length).sum()
                }
            }
        }
    };
    let is_short = warm_up + length <= LONGEST_RUN;
    check("pace", is_short, "a run takes at most 31 days")
}

/// Messages of gRPC are the events of gRPC calls, and of nothing else.
fn check_events(events: &EventPlan, are_calls: bool) -> Result<(), PlanError> {
    let is_of_calls = events.format == EventFormat::GrpcMessages;
    let has_mark = events.end_mark.is_some();
    if is_of_calls != are_calls || (is_of_calls && has_mark) {
        return refused("events", "this form does not go with these requests");
    }
    let is_line = |mark: &String| {
        let length = 1..=LONGEST_END_MARK;
        length.contains(&mark.len()) && !mark.contains(['\r', '\n']) && mark.trim() == *mark
    };
    let is_mark = events.end_mark.as_ref().is_none_or(is_line);
    check(
        "events",
        is_mark,
        "an end mark is one line without blanks at its ends",
    )
}

fn check_buying(buying: &Buying) -> Result<(), PlanError> {
    let kind = buying.kind.as_ref().map_or(0, String::len);
    let is_short = buying.broker.len().max(kind) <= LONGEST_NAME;
    check("buying", is_short, "the broker or the type is too long")?;
    let wanted = Requirement {
        qos: buying.wanted.clone(),
        ..Requirement::default()
    };
    match wanted.check() {
        Ok(()) => Ok(()),
        Err(excess) => refused("buying", excess.to_string()),
    }
}
