//! A run as it is meant: everything a user can ask of the generator, before anything happens.

use posthaste_units::{Instant, Rate, Seed, Span};

use crate::buying::Buying;
use crate::data::Data;
use crate::pace::{Arrivals, Step};
use crate::request::RequestSpec;
use crate::target::Resolve;
use crate::tls::TlsOptions;

/// Who decides when the next request is sent.
#[derive(Clone, Debug)]
pub enum Pace {
    /// The plan does: requests are due at their times whatever the server does.
    Open {
        /// How they are spread.
        arrivals: Arrivals,
        /// At which rates, one stretch after another.
        steps: Vec<Step>,
    },
    /// The replies do: each of so many clients sends its next request when the last has ended.
    Closed {
        /// Clients.
        clients: u32,
        /// For how long.
        length: Span,
    },
}

/// Whether a connection carries one request or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// One request each, as browsers did in 1997 and the papers' generators do.
    New,
    /// Kept and used again. A request sent in the instant in which the server gives up an idle
    /// connection is counted as reset: nothing is sent twice.
    KeepAlive,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is sent; drawn by weight where there are several.
    pub requests: Vec<RequestSpec>,
    /// Rows for their placeholders.
    pub data: Data,
    /// Addresses for names.
    pub resolve: Vec<Resolve>,
    /// When.
    pub pace: Pace,
    /// Requests due this early are sent and not counted.
    pub warm_up: Span,
    /// Over which connections.
    pub connections: Connections,
    /// A connection not established within this time is aborted. Keep it below one second,
    /// Linux's first SYN timeout, so that each attempt sends one SYN.
    pub connect_timeout: Span,
    /// A reply not complete within this time, counted from sending, has timed out.
    pub timeout: Span,
    /// Event loops, each with a thread of its own.
    pub threads: usize,
    /// Cores for those threads, taken in turn; empty leaves them to the scheduler.
    pub cpus: Vec<usize>,
    /// Connections open at once; what is due beyond is dropped and counted.
    pub connection_limit: usize,
    /// Seed of arrivals and of the draw from the mix.
    pub seed: Seed,
    /// What to trust and to show.
    pub tls: TlsOptions,
    /// Whether replies are decoded, and by a machine how many times slower than this one: decoding takes
    /// so many times the processor time that it takes here, and a reply counts once it is over.
    pub decoding: Option<u32>,
    /// Whether clients choose by price, and how. Each event loop is one client.
    pub buying: Option<Buying>,
}

impl Plan {
    /// A plan of `requests` with the defaults of the command line: keep-alive, connect
    /// timeout 500 ms, timeout 30 s, one thread, no warm-up.
    pub fn new(requests: Vec<RequestSpec>, pace: Pace) -> Self {
        Self {
            requests,
            data: Data::none(),
            resolve: Vec::new(),
            pace,
            warm_up: Span::ZERO,
            connections: Connections::KeepAlive,
            connect_timeout: Span::from_millis(500),
            timeout: Span::from_secs(30),
            threads: 1,
            cpus: Vec::new(),
            connection_limit: 16_384,
            seed: Seed::default(),
            tls: TlsOptions::default(),
            decoding: None,
            buying: None,
        }
    }

    /// The time during which requests are due, warm-up excluded.
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

    /// Requests due in the measured time, on average where arrivals are drawn; `None` in a closed loop.
    pub fn expected(&self) -> Option<u64> {
        match &self.pace {
            Pace::Closed { .. } => None,
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => Some((times.len() - times.partition_point(|at| *at < self.warm_up)) as u64),
            Pace::Open { steps, .. } => {
                Some(steps.iter().map(Step::expected).sum::<f64>().round() as u64)
            }
        }
    }

    /// Whether no request would ever be due.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.pace {
            Pace::Closed { clients, length } => *clients == 0 || length.is_zero(),
            Pace::Open {
                arrivals: Arrivals::Trace(times),
                ..
            } => times.is_empty(),
            Pace::Open { steps, .. } => steps.iter().map(Step::expected).sum::<f64>() <= 0.0,
        }
    }

    /// Until when completions count. A trace says only when requests are due: it ends a mean gap behind the
    /// last of them, as a rate would, and one without gaps with its last reply. The gaps are those of the measured
    /// time, between instants, at each of which any number may be due.
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

    /// When each step of the run ends, the warm-up's first.
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

    /// The steps as they are run: the warm-up first, at the rate the plan begins with.
    pub(crate) fn steps_with_warm_up(&self) -> Vec<Step> {
        let Pace::Open { steps, .. } = &self.pace else {
            return Vec::new();
        };
        let first = steps.first().map_or(Rate::default(), |step| step.from);
        let warm_up = (!self.warm_up.is_zero()).then(|| Step::steady(first, self.warm_up));
        warm_up.into_iter().chain(steps.iter().copied()).collect()
    }
}
