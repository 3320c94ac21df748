//! The service in virtual time: each arrival gets its reply at once, by Lindley's recursion.
//!
//! 1. **Limit**: a request without a token gets 429.
//! 2. **Hang**: a share of the others is never answered and uses no service time.
//! 3. **Queue**: a request that finds the system full gets 503; with `mm1k`, it is never answered.
//! 4. **Serve**: first come, first served, on the server that is free first. Pauses lengthen the service.
//! 5. **Error**: a share of the served requests gets its status instead of 200.
//!
//! Refusals are sent at the time of the arrival, in a pause at its end. A request whose client has given up is still
//! served. Replies are final: later arrivals change nothing about them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use posthaste_units::{Instant, Seed, Span, Stream};
use rand::RngExt as _;

use crate::law::ServiceLaw;
use crate::limiter::Limiter;
use crate::servers::Servers;
use crate::spec::ServiceSpec;
use crate::speed::Speed;
use crate::stall::Pauses;

/// Time constant of the smoothed busy share, in ns.
const MEMORY: f64 = 100e6;

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceReply {
    /// A reply.
    Answered {
        /// Time of the reply.
        at: Instant,
        /// 200, 429, 503, or the status of an error.
        status: u16,
    },
    /// No reply, ever.
    Never,
}

/// A request in the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The reply.
    pub reply: ServiceReply,
    /// Begin of the service and departure. `None` without service: refused, or never answered.
    pub served: Option<(Instant, Instant)>,
}

/// A service with its state. A clone has the same future for the same arrivals.
#[derive(Clone, Debug)]
pub struct ServiceModel {
    spec: ServiceSpec,
    times: Stream,
    hangs: Stream,
    errors: Stream,
    limiter: Option<Limiter>,
    pauses: Pauses,
    speed: Speed,
    servers: Servers,
    /// Maximum number of requests in the system.
    system_limit: Option<usize>,
    /// Departures of the requests in the system, if their number is limited.
    system: BinaryHeap<Reverse<u64>>,
    /// Time of the last arrival.
    now: u64,
    /// The last departure.
    last: u64,
    busy: f64,
}

impl ServiceModel {
    /// An idle service at the origin of its clock.
    pub fn new(spec: ServiceSpec, seed: Seed) -> Self {
        let system_limit = match spec.law {
            ServiceLaw::Mm1k { capacity, .. } => Some(capacity),
            _ => spec.queue,
        };
        Self {
            spec,
            times: seed.stream("service"),
            hangs: seed.stream("hangs"),
            errors: seed.stream("errors"),
            limiter: spec.limit.map(Limiter::new),
            pauses: Pauses::new(spec.stall),
            speed: Speed::new(spec),
            servers: Servers::new(spec.law.servers(), spec.autoscale),
            system_limit: system_limit.map(|limit| limit as usize),
            system: BinaryHeap::new(),
            now: 0,
            last: 0,
            busy: 0.0,
        }
    }

    /// Adds earlier work: every server is busy for this time from the origin on, pauses not included. It does not count
    /// among the requests in the system.
    pub fn with_backlog(mut self, backlog: Span) -> Self {
        debug_assert!(self.last == 0, "a backlog is for a new service");
        self.last = backlog.as_nanos();
        self.servers.occupy_all(self.last);
        self
    }

    /// The same state with other random numbers from here on.
    pub fn reseeded(&self, seed: Seed) -> Self {
        Self {
            times: seed.stream("service"),
            hangs: seed.stream("hangs"),
            errors: seed.stream("errors"),
            ..self.clone()
        }
    }

    /// The description of this service.
    pub const fn spec(&self) -> &ServiceSpec {
        &self.spec
    }

    /// The reply to a request that arrives at `now`. Arrivals are in order of time: an earlier one is a bug, which panics
    /// in a debug build and counts as an arrival at the time of the last one in a release build.
    pub fn arrive(&mut self, now: Instant) -> ServiceReply {
        self.visit(now).reply
    }

    /// As [`ServiceModel::arrive`], with the time of the service.
    pub fn visit(&mut self, now: Instant) -> Visit {
        debug_assert!(now.as_nanos() >= self.now, "arrivals are not in order");
        let now = now.as_nanos().max(self.now);
        let gap = now - self.now;
        self.now = now;
        self.speed.arrive(now);
        self.servers.scale(now);
        if self
            .limiter
            .as_mut()
            .is_some_and(|limiter| !limiter.take(now))
        {
            return self.refuse(429);
        }
        if let Some(share) = self.spec.hang
            && self.hangs.random::<f64>() < share.share()
        {
            return Visit::NEVER;
        }
        if self.is_full() {
            return match self.spec.law {
                ServiceLaw::Mm1k { .. } => Visit::NEVER,
                _ => self.refuse(503),
            };
        }
        self.serve(gap)
    }

    /// Time of the last arrival, or the origin.
    pub const fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// Smoothed share of the time in which the servers were busy, over about the last tenth of a second, 0 to 1. 0 for
    /// any number of servers.
    pub const fn busy(&self) -> f64 {
        self.busy
    }

    /// Time from `now` until a request that arrives then would be served.
    pub fn backlog(&self, now: Instant) -> Span {
        let now = now.as_nanos();
        Span::from_nanos(self.servers.begin(now) - now)
    }

    /// Number of servers. 0 if unlimited.
    pub fn servers(&self) -> usize {
        self.servers.count()
    }

    fn is_full(&mut self) -> bool {
        let Some(limit) = self.system_limit else {
            return false;
        };
        while self.system.peek().is_some_and(|first| first.0 <= self.now) {
            self.system.pop();
        }
        self.system.len() >= limit
    }

    fn refuse(&self, status: u16) -> Visit {
        let at = Instant::from_nanos(self.pauses.resume(self.now));
        Visit {
            reply: ServiceReply::Answered { at, status },
            served: None,
        }
    }

    fn serve(&mut self, gap: u64) -> Visit {
        let begin = self.servers.begin(self.now);
        let factor = self.speed.factor(begin);
        let mut work = self.spec.law.draw(&mut self.times).as_nanos();
        if factor != 1.0 {
            work = (work as f64 * factor) as u64;
        }
        let departure = self.pauses.end(begin, work);
        debug_assert!(
            begin >= self.now && departure >= begin,
            "Lindley's recursion"
        );
        self.update_busy(gap, departure, work);
        self.servers.occupy(departure, work);
        self.speed.extend(departure);
        self.last = self.last.max(departure);
        if self.system_limit.is_some() {
            self.system.push(Reverse(departure));
        }
        let mut status = 200;
        if let Some(error) = self.spec.error
            && self.errors.random::<f64>() < error.share.share()
        {
            status = error.status;
        }
        let (begin, at) = (Instant::from_nanos(begin), Instant::from_nanos(departure));
        Visit {
            reply: ServiceReply::Answered { at, status },
            served: Some((begin, at)),
        }
    }

    fn update_busy(&mut self, gap: u64, departure: u64, work: u64) {
        let (passed, share) = if self.servers.count() == 1 {
            // From departure to departure, the server's busy time is known exactly.
            let passed = (departure.saturating_sub(self.last)).max(1) as f64;
            (passed, (work as f64 / passed).min(1.0))
        } else {
            (gap as f64, self.servers.busy(self.now - gap, self.now))
        };
        let weight = 1.0 - (-passed / MEMORY).exp();
        self.busy += (share - self.busy) * weight;
        debug_assert!((0.0..=1.0).contains(&self.busy), "a busy share beyond 1");
    }
}

impl Visit {
    const NEVER: Self = Self {
        reply: ServiceReply::Never,
        served: None,
    };

    /// The part of the service within an interval, pauses included.
    pub fn service_within(&self, from: Instant, to: Instant) -> Span {
        self.served.map_or(Span::ZERO, |(begin, end)| {
            end.min(to).saturating_since(begin.max(from))
        })
    }
}
