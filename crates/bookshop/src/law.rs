//! Service laws: one server, first in first out, with service times that are drawn, independent of the machine.
//!
//! Queueing theory predicts the response times of such a server, so a load generator can be checked against it. For
//! each request the thread computes the departure, max(arrival, previous departure) + service time, and blocks until
//! then. The reply is written at once. A request that was already waiting at the previous departure counts from that
//! departure, not from the moment when the thread reads it. So reading and writing are part of the service time, and no
//! error accumulates in a busy period.
//!
//! The arrival of a request at an idle thread is the thread's wake-up. On a kept connection it is never before the
//! previous reply. The remaining bias is that wake-up and the path of the reply, 20 to 60 µs on loopback with a free
//! processor. Nothing is subtracted for it. On a busy processor, waiting for the processor is added. If other work runs
//! there, give the shop a separate processor.
//!
//! With `mm1` and `md1` connections may stay open, and requests queue in their sockets. The thread takes them in the
//! order of the kernel's reports. `mm1k` needs a connection per request, because its queue is the kernel's: one
//! connection is in service (concurrency 1), and a listening socket with backlog K - 2 holds K - 1 more, since Linux
//! holds one more than configured. The SYN of an arrival that finds K in the system is dropped. A client sees a
//! connection that is not established in time, and ListenDrops counts it. The share of such arrivals is the blocking
//! probability. A retransmitted SYN would count as another arrival, so the client's connect timeout must be below one
//! second.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use posthaste_serve::Hooks;
use posthaste_units::{Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use thiserror::Error;

/// Maximum spinning before a departure, in ns. A sleep may end this much late.
const SPIN: u64 = 60_000;
/// Divisor of the mean service time for another limit on spinning. This is exact enough, and many long services can
/// share a processor.
const SPIN_PART: u64 = 1000;

/// Time constant of the smoothed busy share, in ns.
const MEMORY: f64 = 100e6;

/// A service law, written `md1:5ms`, `mm1:5ms` or `mm1k:5ms:10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceLaw {
    /// M/D/1: constant service time.
    Md1(Span),
    /// M/M/1: exponential service time with this mean.
    Mm1(Span),
    /// M/M/1/K: exponential service time, and at most `capacity` requests in the system, at least 2.
    Mm1k {
        /// Mean service time.
        mean: Span,
        /// K: one in service and the others in the kernel's queue.
        capacity: u32,
    },
}

/// The reason why a text is not a law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no service law ({reason}): write md1:5ms, mm1:5ms or mm1k:5ms:10")]
pub struct LawError {
    text: String,
    reason: String,
}

/// The single server of a law.
pub(crate) struct LawServer {
    law: ServiceLaw,
    spin: u64,
    idle: Arc<Idle>,
    state: RefCell<LawServerState>,
}

struct LawServerState {
    random: Stream,
    departure: u64,
    /// Share of about the last tenth of a second in which the server was busy.
    busy: f64,
}

/// The end of the thread's last wait for the network. Written and read by one thread only.
///
/// A wait counts if the thread gave up the processor voluntarily in it. The duration of a wait proves nothing, because
/// a thread that finds a request at once may still be preempted.
#[derive(Default)]
pub(crate) struct Idle {
    sleeps: AtomicU64,
    woke: AtomicU64,
    /// A request was served since the last wait.
    has_served: AtomicBool,
    /// The end of the last wait before which none was.
    idled: AtomicU64,
}

impl ServiceLaw {
    /// The mean service time.
    pub const fn mean(self) -> Span {
        match self {
            Self::Md1(mean) | Self::Mm1(mean) | Self::Mm1k { mean, .. } => mean,
        }
    }

    fn draw(self, random: &mut Stream) -> u64 {
        match self {
            Self::Md1(time) => time.as_nanos(),
            Self::Mm1(mean) | Self::Mm1k { mean, .. } => {
                (random.sample::<f64, _>(Exp1) * mean.as_nanos() as f64) as u64
            }
        }
    }
}

impl FromStr for ServiceLaw {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let wrong = |reason: String| LawError {
            text: text.to_owned(),
            reason,
        };
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let time: Span = match parts.next() {
            Some(time) => time.parse().map_err(|e| wrong(format!("{e}")))?,
            None => return Err(wrong("no time".to_owned())),
        };
        if time.is_zero() {
            return Err(wrong("the time is zero".to_owned()));
        }
        let law = match (kind, parts.next()) {
            ("md1", None) => Self::Md1(time),
            ("mm1", None) => Self::Mm1(time),
            ("mm1k", Some(capacity)) => match capacity.parse() {
                Ok(capacity @ 2..=65_536) => Self::Mm1k {
                    mean: time,
                    capacity,
                },
                _ => return Err(wrong("K is from 2 to 65536".to_owned())),
            },
            ("mm1k", None) => return Err(wrong("no K".to_owned())),
            ("md1" | "mm1", Some(_)) => return Err(wrong("only mm1k has a third part".to_owned())),
            _ => return Err(wrong("it starts with md1, mm1 or mm1k".to_owned())),
        };
        match parts.next() {
            None => Ok(law),
            Some(more) => Err(wrong(format!("what is {more:?}?"))),
        }
    }
}

impl fmt::Display for ServiceLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md1(time) => write!(f, "md1:{time}"),
            Self::Mm1(mean) => write!(f, "mm1:{mean}"),
            Self::Mm1k { mean, capacity } => write!(f, "mm1k:{mean}:{capacity}"),
        }
    }
}

impl Idle {
    /// Hooks that keep `idle` up to date.
    pub(crate) fn hooks(idle: &Arc<Self>) -> Hooks {
        let (before, after) = (idle.clone(), idle.clone());
        Hooks {
            before_wait: Some(Arc::new(move || before.sleeps.store(sleeps(), Relaxed))),
            after_wait: Some(Arc::new(move || {
                if sleeps() != after.sleeps.load(Relaxed) {
                    after.woke.store(now(), Relaxed);
                }
                if !after.has_served.swap(false, Relaxed) {
                    after.idled.store(now(), Relaxed);
                }
            })),
            in_order: true,
        }
    }
}

impl LawServer {
    /// Creates a server on the calling thread.
    pub(crate) fn new(law: ServiceLaw, seed: Seed, idle: Arc<Idle>) -> Self {
        // With the default slack a sleep may end 50 µs late (prctl(2), PR_SET_TIMERSLACK).
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::warn!(%error, "timer slack stays: departures are less exact");
        }
        let state = LawServerState {
            random: seed.stream("service"),
            departure: 0,
            busy: 0.0,
        };
        Self {
            law,
            spin: SPIN.min(law.mean().as_nanos() / SPIN_PART),
            idle,
            state: RefCell::new(state),
        }
    }

    /// The earliest arrival of a request on a connection that was open before: a wait that follows another without a
    /// service reports what has arrived since that one. A thread that got no processor has no wake-up then.
    pub(crate) fn earliest(&self) -> u64 {
        self.idle.idled.load(Relaxed)
    }

    /// Records a reply without a service time. No request arrives on its connection before it: without this record, a
    /// request that follows it before the thread waits again would count as arrived at the last wake-up.
    pub(crate) fn pass(left: &Cell<u64>) {
        left.set(now());
    }

    /// Blocks the thread until the departure of the current request. `left` is the departure of the connection's last
    /// reply and is updated. Returns the busy share, 0 to 1.
    pub(crate) fn serve(&self, left: &Cell<u64>) -> f64 {
        let mut state = self.state.borrow_mut();
        let arrival = self.idle.woke.load(Relaxed).max(left.get());
        let service = self.law.draw(&mut state.random);
        let before = state.departure;
        state.departure = arrival.max(before).saturating_add(service);
        debug_assert!(before <= state.departure, "departures decrease");
        let passed = (state.departure - before).max(1) as f64;
        let weight = 1.0 - (-passed / MEMORY).exp();
        state.busy += (service as f64 / passed - state.busy) * weight;
        debug_assert!((0.0..=1.0).contains(&state.busy), "a busy share beyond 1");
        sleep_until(state.departure, self.spin);
        self.idle.has_served.store(true, Relaxed);
        left.set(now());
        state.busy
    }
}

/// CLOCK_MONOTONIC in ns.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Number of voluntary context switches of the calling thread.
fn sleeps() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage, which the call fills in; all zeros are a valid one, should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nvcsw.unsigned_abs()
}

fn sleep_until(end: u64, spin: u64) {
    let wake = end.saturating_sub(spin);
    while now() < wake {
        let at = Timespec {
            tv_sec: (wake / 1_000_000_000) as i64,
            tv_nsec: (wake % 1_000_000_000) as i64,
        };
        // After an interruption by a signal, checks the clock and sleeps again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
    }
    while now() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_read_and_print() {
        for text in ["md1:5ms", "mm1:500us", "mm1k:5ms:10"] {
            assert_eq!(text.parse::<ServiceLaw>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "mm1",
            "mm1:5",
            "mm1:0s",
            "mm1:5ms:3",
            "mm1k:5ms",
            "mm1k:5ms:1",
            "gg1:5ms",
            "mm1k:5ms:4:4",
        ] {
            let error = wrong.parse::<ServiceLaw>().unwrap_err().to_string();
            assert!(error.contains("mm1k:5ms:10"), "{error}");
        }
    }

    #[test]
    fn drawn_times_have_the_mean_and_spread_of_their_law() {
        let mut random = Seed(1).stream("service");
        let law: ServiceLaw = "mm1:1ms".parse().unwrap();
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| law.draw(&mut random) as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.045, "{variance}");
        assert_eq!(
            ServiceLaw::Md1(Span::from_millis(2)).draw(&mut random),
            2_000_000
        );
    }
}
