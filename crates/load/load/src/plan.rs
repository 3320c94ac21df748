//! The plan of a run: every setting of the generator.
//!
//! A plan travels to other machines as JSON, exactly (`exact`). It holds the content of files and not their names. A
//! plan that is read is validated.

pub(crate) mod mix;
pub(crate) mod pace;
pub(crate) mod protocol;
pub(crate) mod share;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod validation;
mod window;

use posthaste_units::{Instant, Rate, Seed, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::validation::PlanError;
pub(crate) use self::window::MeasuredWindow;

use crate::buying::Buying;
use crate::exact;
use crate::plan::pace::{Arrivals, RateStep, Schedule};
use crate::plan::protocol::Protocol;
use crate::reply::events::EventPlan;
use crate::request::RequestSpec;
use crate::request::data::Data;
use crate::retry::RetryPolicy;
use crate::target::Resolve;
use crate::transport::quic::QlogOptions;
use crate::transport::tls::TlsOptions;

/// The rule that decides the time of the next request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pace {
    /// Open loop: requests are due at planned times, independent of the server.
    Open {
        /// Arrival process.
        arrivals: Arrivals,
        /// Rates, as consecutive stretches.
        steps: Vec<RateStep>,
    },
    /// Closed loop: each client sends its next request after the end of its last.
    Closed {
        /// Number of clients.
        clients: u32,
        /// Duration.
        #[serde(with = "exact::nanos")]
        length: Span,
    },
}

/// Use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// One request each, like browsers in 1997 and the papers' generators.
    New,
    /// Persistent. A request sent in the instant in which the server closes an idle connection is counted as reset,
    /// because nothing is sent twice.
    KeepAlive,
}

/// A whole run.
// `remote` makes the derived functions inherent, so that the traits below can validate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Plan {
    /// Requests, drawn by weight if there are several.
    pub requests: Vec<RequestSpec>,
    /// Rows for the placeholders.
    pub data: Data,
    /// Addresses for names.
    pub resolve: Vec<Resolve>,
    /// Pace of the requests.
    pub pace: Pace,
    /// Requests due in this time from the start are sent and not counted.
    #[serde(with = "exact::nanos")]
    pub warm_up: Span,
    /// Protocol of all connections.
    pub protocol: Protocol,
    /// Use of connections.
    pub connections: Connections,
    /// Time limit for establishing a connection. Keep it below one second, Linux's first SYN timeout, so that each
    /// attempt sends one SYN.
    #[serde(with = "exact::nanos")]
    pub connect_timeout: Span,
    /// Time limit for a complete reply, from sending, of each attempt.
    #[serde(with = "exact::nanos")]
    pub timeout: Span,
    /// Event loops, each with a thread of its own.
    pub threads: usize,
    /// Cores for those threads, used in turn. If empty, the scheduler decides.
    pub cpus: Vec<usize>,
    /// Maximum number of open connections. Due requests beyond it are dropped and counted.
    pub connection_limit: usize,
    /// Retries of requests that failed, if clients retry. Retries that are due after the end of the plan are sent.
    pub retries: Option<RetryPolicy>,
    /// Seed of arrivals, of the draw from the mix and of back-offs.
    pub seed: Seed,
    /// Trusted certificates, and the client's own.
    pub tls: TlsOptions,
    /// Decoding of replies: `None` leaves them coded; `Some(n)` decodes as on a machine n times slower than this one.
    /// Decoding then takes n times its CPU time here, and a reply counts once it is decoded.
    pub decoding: Option<u32>,
    /// Events expected in each reply, if replies are streams of events.
    pub events: Option<EventPlan>,
    /// Choice by price, if clients choose. Each event loop is one client.
    pub buying: Option<Buying>,
    /// qlog files, if they are wanted. They belong to this machine and do not travel with the plan.
    #[serde(skip)]
    pub qlog: Option<QlogOptions>,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plan = Self::deserialize(deserializer)?;
        plan.validate().map_err(serde::de::Error::custom)?;
        Ok(plan)
    }
}

impl Plan {
    /// A plan of `requests` with the defaults of the command line: HTTP/1.1, keep-alive, connect timeout 500 ms, timeout 30 s,
    /// one thread, no warm-up.
    pub fn new(requests: Vec<RequestSpec>, pace: Pace) -> Self {
        Self {
            requests,
            data: Data::none(),
            resolve: Vec::new(),
            pace,
            warm_up: Span::ZERO,
            protocol: Protocol::default(),
            connections: Connections::KeepAlive,
            connect_timeout: Span::from_millis(500),
            timeout: Span::from_secs(30),
            threads: 1,
            cpus: Vec::new(),
            connection_limit: 16_384,
            retries: None,
            seed: Seed::default(),
            tls: TlsOptions::default(),
            decoding: None,
            events: None,
            buying: None,
            qlog: None,
        }
    }

    /// The time in which requests are due, warm-up excluded.
    pub fn length(&self) -> Span {
        match &self.pace {
            Pace::Closed { length, .. } => *length,
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => {
                let last = times.last().copied().unwrap_or_default();
                last.saturating_sub(self.warm_up)
            }
            Pace::Open { steps, .. } => steps.iter().map(|step| step.length).sum(),
        }
    }

    /// Requests due in the measured time; the mean for random arrivals. `None` in a closed loop.
    pub fn expected(&self) -> Option<u64> {
        match &self.pace {
            Pace::Closed { .. } => None,
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => Some((times.len() - times.partition_point(|at| *at < self.warm_up)) as u64),
            Pace::Open { steps, .. } => {
                Some(steps.iter().map(RateStep::expected).sum::<f64>().round() as u64)
            }
        }
    }

    /// The highest rate, in requests per second. Of a trace, that of its fullest second. `None` in a closed loop.
    pub fn highest_rate(&self) -> Option<f64> {
        match &self.pace {
            Pace::Closed { .. } => None,
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => {
                let second = |(first, at): (usize, &Span)| {
                    let end = times.partition_point(|time| *time < *at + Span::from_secs(1));
                    end - first
                };
                let fullest = times.iter().enumerate().map(second).max();
                Some(fullest.unwrap_or_default() as f64)
            }
            Pace::Open { steps, .. } => {
                let rates = steps.iter().flat_map(|step| [step.from, step.to]);
                Some(rates.map(Rate::as_per_second).fold(0.0, f64::max))
            }
        }
    }

    /// True if due requests differ in nothing but their times, which are evenly spaced, so that any number of them can be
    /// counted at once.
    pub(crate) fn is_uniform(&self) -> bool {
        let is_constant = matches!(
            &self.pace,
            Pace::Open {
                arrivals: Arrivals::Constant,
                ..
            }
        );
        is_constant && self.requests.len() == 1 && self.events.is_none()
    }

    /// Every request that is due, in order. `None` in a closed loop.
    pub(crate) fn schedule(&self) -> Option<Schedule> {
        let Pace::Open { arrivals, .. } = &self.pace else {
            return None;
        };
        let steps = self.steps_with_warm_up().into();
        Some(Schedule::new(arrivals, steps, self.seed))
    }

    /// True if the requests are gRPC calls.
    pub fn has_calls(&self) -> bool {
        self.requests.iter().any(|spec| spec.grpc.is_some())
    }

    /// True if no request would ever be due.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.pace {
            Pace::Closed { clients, length } => *clients == 0 || length.is_zero(),
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => times.is_empty(),
            Pace::Open { steps, .. } => steps.iter().map(RateStep::expected).sum::<f64>() <= 0.0,
        }
    }

    /// End of the time in which completions count. A trace defines only due times, so it ends one mean gap after the
    /// last, as a rate would. A trace without gaps ends with its last reply. Gaps are counted in the measured time,
    /// between different instants; any number of requests may be due at each instant.
    pub(crate) fn end(&self) -> Instant {
        match &self.pace {
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => {
                let measured = &times[times.partition_point(|at| *at < self.warm_up)..];
                let gaps = measured.windows(2).filter(|pair| pair[0] < pair[1]).count();
                match (measured.first(), measured.last()) {
                    (Some(first), Some(last)) if gaps > 0 => {
                        Instant::ORIGIN + *last + last.saturating_sub(*first) / gaps as u64
                    }
                    _ => Instant::FAR_FUTURE,
                }
            }
            _ => Instant::ORIGIN + self.warm_up + self.length(),
        }
    }

    /// The measured time. Requests due in it are recorded.
    pub(crate) fn window(&self) -> MeasuredWindow {
        MeasuredWindow {
            start: Instant::ORIGIN + self.warm_up,
            end: self.end(),
        }
    }

    /// End of each step of the run, the warm-up first.
    pub(crate) fn step_ends(&self) -> Vec<Instant> {
        let mut end = Instant::ORIGIN;
        let steps = self.steps_with_warm_up().into_iter();
        steps
            .map(|step| {
                end += step.length;
                end
            })
            .collect()
    }

    /// The steps as run: first the warm-up, at the initial rate of the plan.
    pub(crate) fn steps_with_warm_up(&self) -> Vec<RateStep> {
        let Pace::Open { steps, .. } = &self.pace else {
            return Vec::new();
        };
        let first = steps.first().map_or(Rate::default(), |step| step.from);
        let warm_up = (!self.warm_up.is_zero()).then(|| RateStep::steady(first, self.warm_up));
        warm_up.into_iter().chain(steps.iter().copied()).collect()
    }
}
