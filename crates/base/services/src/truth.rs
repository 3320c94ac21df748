//! The highest rates at which an objective holds: references for an instrument that searches for them.
//!
//! | function | state at the start | time | source |
//! |---|---|---|---|
//! | [`steady`] | any; the start is not counted | without end | theory where there is one, else [`simulated`] |
//! | [`simulated`] | new; the first tenth is not counted | many requests, whole periods of a stall | the model |
//! | [`lasting`] | that of a given service | a given time | the model, mean of many runs |
//!
//! A truth is about the expected share of requests: one run of finite length has more or less of them.
//!
//! | misbehaviour | the steady truth |
//! |---|---|
//! | `stall` | Mean over whole periods. Between two pauses, higher rates hold. |
//! | `limit`, `queue`, `hang`, `error` | Refused, hung and failed requests count as beyond the bound. The bucket is in its steady state: a full one lets a higher rate hold until it is empty. |
//! | `collapse` | Counts fluctuate with Poisson arrivals, so a lower rate holds than with constant ones. |
//! | `cold`, `warm` | The last state, reached after [`ServiceSpec::at_age`] of their times. Before, it is that of a spec at an earlier age. |
//! | `drift` | None, because the service time has no bound. Call it for [`ServiceSpec::at_age`]. |
//! | `hysteresis` | With Poisson arrivals, any overload of a second decides about all later ones: [`lasting`] suits it better. |
//! | `autoscale` | With the servers that the rate itself brings about. |

use posthaste_stats::theory::{Md1, Mm1, Mmc};
use posthaste_units::{Instant, Rate, Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;

use crate::law::ServiceLaw;
use crate::model::{ServiceModel, ServiceReply};
use crate::spec::ServiceSpec;

/// Requests of one simulated rate in [`steady`].
const REQUESTS: u32 = 2_000_000;
/// Fewest periods of a stall in a simulated rate.
const PERIODS: u64 = 50;
/// Relative width of the interval in which a bisection ends.
const PRECISION: f64 = 1e-3;
/// Fewest requests of a run of limited time: one hang among less would decide.
const FEWEST: f64 = 100.0;
/// Lowest and highest rates of a search, per second.
const LOWEST: f64 = 0.01;
const HIGHEST: f64 = 1e6;

/// An upper bound on a statistic of the response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeBound {
    /// This share of all requests is answered with a status below 400 within the time. Others count as beyond it.
    Quantile {
        /// The share, below 1.
        share: f64,
        /// The bound.
        within: Span,
    },
    /// The mean response time of the replies with a status below 400.
    Mean {
        /// The bound.
        within: Span,
        /// Share of the requests that may fail or never be answered.
        tolerance: f64,
    },
}

/// The process of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalProcess {
    /// Independent arrivals.
    Poisson,
    /// Arrivals at a constant interval.
    Constant,
}

/// The rates at which an objective holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truth {
    /// At no rate.
    None,
    /// At all rates up to this one.
    UpTo {
        /// The highest rate.
        rate: Rate,
        /// True if it is a result of theory, false if it was simulated.
        is_exact: bool,
    },
    /// At every rate up to 1M/s.
    Any,
}

impl TimeBound {
    /// 99 % of the requests within this time.
    pub const fn p99(within: Span) -> Self {
        Self::Quantile {
            share: 0.99,
            within,
        }
    }

    const fn within(self) -> Span {
        let (Self::Quantile { within, .. } | Self::Mean { within, .. }) = self;
        within
    }

    /// Share of the requests that are answered successfully, at least.
    fn needed(self) -> f64 {
        match self {
            Self::Quantile { share, .. } => share,
            Self::Mean { tolerance, .. } => 1.0 - tolerance,
        }
    }
}

impl Truth {
    /// The highest rate. `None` without one.
    pub const fn rate(self) -> Option<Rate> {
        match self {
            Self::UpTo { rate, .. } => Some(rate),
            Self::None | Self::Any => None,
        }
    }

    fn up_to(rate: f64, is_exact: bool) -> Self {
        match Rate::per_second(rate) {
            Some(rate) if rate.as_per_second() > 0.0 => Self::UpTo { rate, is_exact },
            _ => Self::None,
        }
    }
}

/// The truth without end, from theory where that has it, otherwise [`simulated`] with two million requests per rate,
/// within about 0.5 %. That takes seconds.
pub fn steady(spec: &ServiceSpec, bound: TimeBound, arrivals: ArrivalProcess) -> Truth {
    let last = match spec.drift {
        None => spec.at_age(Span::MAX),
        Some(_) => return Truth::None,
    };
    theory(&last, bound, arrivals).unwrap_or_else(|| simulated(&last, bound, arrivals, REQUESTS))
}

/// The truth of a long run from a new service on, with this many requests per rate. The same random numbers serve every
/// rate, so the result is deterministic. With Poisson arrivals, 200,000 requests of M/M/1 give the rate for the 99th
/// percentile within about 2 %.
pub fn simulated(
    spec: &ServiceSpec,
    bound: TimeBound,
    arrivals: ArrivalProcess,
    requests: u32,
) -> Truth {
    let (low, high) = limits(spec, bound);
    bisect(low, high, |rate| {
        let mut tally = ReplyTally::default();
        run_steadily(spec, arrivals, rate, requests, &mut tally, bound);
        tally.holds(bound)
    })
}

/// The truth of the next `time` from `now` on, for a service in this state: the mean over `runs` runs, each with other
/// random numbers. For constant arrivals the first one is at a random time within an interval. Rates with fewer than 100
/// requests in the time are not considered.
pub fn lasting(
    service: &ServiceModel,
    now: Instant,
    bound: TimeBound,
    arrivals: ArrivalProcess,
    time: Span,
    runs: u32,
) -> Truth {
    // A full bucket admits its burst beyond the rates that last, and a queue may grow until its last request is late.
    let (low, high) = limits(service.spec(), bound);
    let high = high * (1.0 + bound.within().as_secs_f64() / time.as_secs_f64());
    let burst = service.spec().limit.map_or(0.0, |limit| {
        f64::from(limit.burst) / time.as_secs_f64() / bound.needed()
    });
    let fewest = FEWEST / time.as_secs_f64();
    bisect(low.max(fewest), high.max(fewest) + burst, |rate| {
        let mut tally = ReplyTally::default();
        for run in 0..runs {
            let seed = Seed(0).numbered("run", u64::from(run));
            let mut service = service.reseeded(seed);
            let mut gaps = Gaps::new(arrivals, rate, seed);
            let mut at = gaps.first();
            while at < time.as_secs_f64() {
                let arrival = now + Span::from_secs_f64(at);
                tally.count(arrival, service.arrive(arrival), bound);
                at += gaps.next();
            }
        }
        tally.holds(bound)
    })
}

fn run_steadily(
    spec: &ServiceSpec,
    arrivals: ArrivalProcess,
    rate: f64,
    requests: u32,
    tally: &mut ReplyTally,
    bound: TimeBound,
) {
    let mut service = ServiceModel::new(*spec, Seed(0));
    let mut gaps = Gaps::new(arrivals, rate, Seed(0));
    let mut time = f64::from(requests) / rate;
    let (mut start, mut settle) = (0.0, time / 10.0);
    if let Some(stall) = spec.stall {
        // Whole periods, the first of which has a pause.
        let period = stall.period.as_secs_f64();
        let whole = |time: f64| (time / period).ceil() * period;
        time = whole(time.max(PERIODS as f64 * period));
        (start, settle) = (period, whole(settle));
    }
    let end = start + settle + time;
    let mut at = start + gaps.first();
    while at < end {
        let arrival = Instant::ORIGIN + Span::from_secs_f64(at);
        let reply = service.arrive(arrival);
        if at >= start + settle {
            tally.count(arrival, reply, bound);
        }
        let next = at + gaps.next();
        // Constant arrivals begin each period at another phase. Otherwise some rates would meet each pause at the same
        // phase, and the share of late requests would jump from rate to rate.
        let pause = spec.stall.map(|stall| stall.period.as_secs_f64());
        let pause = pause.map(|period| (at / period + 1e-9).floor() * period + period);
        at = match (arrivals, pause) {
            (ArrivalProcess::Constant, Some(pause)) if next >= pause => pause + gaps.first(),
            _ => next,
        };
    }
}

/// Times between arrivals, in seconds.
struct Gaps {
    arrivals: ArrivalProcess,
    interval: f64,
    random: Stream,
}

impl Gaps {
    fn new(arrivals: ArrivalProcess, rate: f64, seed: Seed) -> Self {
        Self {
            arrivals,
            interval: 1.0 / rate,
            random: seed.stream("arrivals"),
        }
    }

    fn first(&mut self) -> f64 {
        match self.arrivals {
            ArrivalProcess::Poisson => self.next(),
            ArrivalProcess::Constant => self.random.random::<f64>() * self.interval,
        }
    }

    fn next(&mut self) -> f64 {
        match self.arrivals {
            ArrivalProcess::Poisson => self.random.sample::<f64, _>(Exp1) * self.interval,
            ArrivalProcess::Constant => self.interval,
        }
    }
}

/// Counts of a run.
#[derive(Default)]
struct ReplyTally {
    requests: u64,
    /// Successful replies.
    good: u64,
    /// Successful replies within the bound.
    within: u64,
    /// Sum of the response times of successful replies, in seconds.
    time: f64,
}

impl ReplyTally {
    fn count(&mut self, arrival: Instant, reply: ServiceReply, bound: TimeBound) {
        self.requests += 1;
        if let ServiceReply::Answered { at, status: ..400 } = reply {
            let time = at.since(arrival);
            self.good += 1;
            self.within += u64::from(time <= bound.within());
            self.time += time.as_secs_f64();
        }
    }

    fn holds(&self, bound: TimeBound) -> bool {
        let needed = bound.needed() * self.requests as f64;
        match bound {
            TimeBound::Quantile { .. } => self.within as f64 >= needed,
            TimeBound::Mean { within, .. } => {
                self.good as f64 >= needed && self.time <= within.as_secs_f64() * self.good as f64
            }
        }
    }
}

/// Rates between which the truth lies. Beyond the capacity for long, too many requests fail.
fn limits(spec: &ServiceSpec, bound: TimeBound) -> (f64, f64) {
    let servers = spec
        .autoscale
        .map(|scale| scale.most)
        .or(spec.law.servers());
    let speed = spec.warm.map_or(1.0, |warm| warm.factor);
    let capacity = servers.map_or(HIGHEST, |servers| {
        f64::from(servers) * speed / spec.law.mean().as_secs_f64()
    });
    let limit = spec
        .limit
        .map_or(HIGHEST, |limit| limit.rate.as_per_second());
    let useful = 1.0 - spec.hang.map_or(0.0, |hang| hang.share());
    // Hangs use no service time. At `needed` of the requests served, the capacity is exhausted.
    let high = capacity.min(limit) / (bound.needed() * useful).max(0.01) * 1.02;
    (LOWEST.min(high / 1000.0), high.min(HIGHEST))
}

fn bisect(mut low: f64, mut high: f64, mut holds: impl FnMut(f64) -> bool) -> Truth {
    // Most truths lie in the upper part of the range.
    let first = low.max(high / 1000.0);
    if holds(first) {
        low = first;
    } else if first == low || !holds(low) {
        return Truth::None;
    }
    if high >= HIGHEST && holds(HIGHEST) {
        return Truth::Any;
    }
    while high - low > PRECISION * low {
        let middle = if high > 2.0 * low {
            (low * high).sqrt()
        } else {
            0.5 * (low + high)
        };
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Truth::up_to(0.5 * (low + high), false)
}

/// The result of theory, if there is one. `hang` thins the arrivals, `error` wastes service.
fn theory(spec: &ServiceSpec, bound: TimeBound, arrivals: ArrivalProcess) -> Option<Truth> {
    let plain = ServiceSpec {
        hang: spec.hang,
        error: spec.error,
        ..ServiceSpec::new(spec.law)
    };
    if *spec != plain {
        return None;
    }
    let answered = 1.0 - spec.hang.map_or(0.0, |hang| hang.share());
    let good = answered * (1.0 - spec.error.map_or(0.0, |error| error.share.share()));
    if good < bound.needed() {
        return Some(Truth::None);
    }
    // The bound on the served requests alone.
    let bound = match bound {
        TimeBound::Quantile { share, within } => TimeBound::Quantile {
            share: share / good,
            within,
        },
        mean @ TimeBound::Mean { .. } => mean,
    };
    match (spec.law, arrivals) {
        (ServiceLaw::Unlimited(time), _) => Some(if time <= bound.within() {
            Truth::Any
        } else {
            Truth::None
        }),
        (law, ArrivalProcess::Poisson) => {
            let rate = poisson(law, bound)?;
            Some(Truth::up_to(rate / answered, true))
        }
        (law, ArrivalProcess::Constant) if spec.hang.is_none() => {
            Some(Truth::up_to(constant(law, bound)?, true))
        }
        _ => None,
    }
}

/// The highest rate of Poisson arrivals, per second; 0 for none.
fn poisson(law: ServiceLaw, bound: TimeBound) -> Option<f64> {
    let servers = law.servers().filter(|_| bound.needed() < 1.0)?;
    let (mean, capacity) = (law.mean(), law.capacity()?);
    let figure = |load: f64| -> Option<Span> {
        match (law, bound) {
            (ServiceLaw::Mm1(_), TimeBound::Mean { .. }) => {
                Some(Mm1::new(load, mean)?.mean_sojourn())
            }
            (ServiceLaw::Mm1(_), TimeBound::Quantile { share, .. }) => {
                Some(Mm1::new(load, mean)?.sojourn_quantile(share))
            }
            (ServiceLaw::Md1(_), TimeBound::Mean { .. }) => {
                Some(Md1::new(load, mean)?.mean_sojourn())
            }
            (ServiceLaw::Md1(_), TimeBound::Quantile { share, .. }) => {
                Some(Md1::new(load, mean)?.sojourn_quantile(share))
            }
            (ServiceLaw::Mmc { .. }, TimeBound::Mean { .. }) => {
                Some(Mmc::new(load, mean, servers)?.mean_sojourn())
            }
            (ServiceLaw::Mmc { .. }, TimeBound::Quantile { share, .. }) => {
                Some(Mmc::new(load, mean, servers)?.sojourn_quantile(share))
            }
            (_, TimeBound::Mean { .. }) => {
                let second = second_moment(law)?;
                let (rate, mean) = (load / mean.as_secs_f64(), mean.as_secs_f64());
                let wait = rate * second / (2.0 * (1.0 - load));
                Some(Span::from_secs_f64(mean + wait))
            }
            _ => None,
        }
    };
    let within = bound.within();
    let (mut low, mut high) = (1e-9, 0.99);
    if figure(low)? > within {
        return Some(0.0);
    }
    if figure(high)? <= within {
        // Closer to saturation the formulas are less exact than a simulation.
        return None;
    }
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if figure(middle)? <= within {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low * capacity)
}

/// The second moment of the service time in s², for the formula of Pollaczek and Khinchine.
fn second_moment(law: ServiceLaw) -> Option<f64> {
    let square = |time: Span| time.as_secs_f64().powi(2);
    match law {
        ServiceLaw::Bimodal {
            short,
            long,
            long_share,
        } => {
            let share = long_share.share();
            Some((1.0 - share) * square(short) + share * square(long))
        }
        ServiceLaw::Lognormal { mean, variation } => {
            Some(square(mean) * (1.0 + variation * variation))
        }
        _ => None,
    }
}

/// The highest rate of constant arrivals, per second; 0 for none.
fn constant(law: ServiceLaw, bound: TimeBound) -> Option<f64> {
    match (law, bound) {
        (ServiceLaw::Md1(time), _) => Some(if time <= bound.within() {
            law.capacity()?
        } else {
            0.0
        }),
        // D/M/1: the sojourn is exponential with rate mu (1 - s), where s = exp(-mu (1 - s) / rate) (Kleinrock, Queueing
        // Systems I, section 6.4).
        (ServiceLaw::Mm1(mean), bound) => {
            let mu = 1.0 / mean.as_secs_f64();
            let decay = match bound {
                TimeBound::Quantile { share, within } => -(-share).ln_1p() / within.as_secs_f64(),
                TimeBound::Mean { within, .. } => 1.0 / within.as_secs_f64(),
            };
            if decay >= mu {
                return Some(0.0);
            }
            let s = 1.0 - decay / mu;
            Some(decay / -s.ln())
        }
        _ => None,
    }
}
