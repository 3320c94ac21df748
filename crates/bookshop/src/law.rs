//! A service law: one server, first in first out, with a service time that is drawn and not suffered.
//!
//! Queueing theory knows what such a server answers, so a load generator can be checked against it.
//! On taking a request the thread computes its departure, max(arrival, previous departure) + service
//! time, and blocks until then; the reply is written at once. A request that was already waiting when
//! the previous one left counts from that departure, and not from when the thread got round to it: so
//! reading and writing are part of the drawn time, and no error adds up along a busy period.
//!
//! The arrival of a request that finds the thread idle is when the thread wakes up for it; on a
//! connection that is kept open it is never before the reply to the one before. What remains as bias
//! is that wake-up and the way of the reply out, 20 to 60 µs on loopback when the processor is free
//! for the thread: nothing is subtracted for them. A busy processor adds what it makes the thread wait
//! for; with other work on it, give the shop a processor of its own.
//!
//! With `mm1` and `md1` connections may stay open, and requests queue in their sockets; the thread
//! takes them in the order in which the kernel reports them. `mm1k` needs a connection per request,
//! because its queue is the kernel's: one connection is in service (concurrency 1), and a listening
//! socket with backlog K - 2 holds K - 1 more, since Linux holds one more than it is told. The SYN of
//! an arrival that finds K in the system is dropped. A client sees that as a connection that is not
//! established in time, and ListenDrops counts it; the share of such arrivals is the blocking
//! probability. A client that lets the kernel send its SYN again makes another arrival of it, so the
//! connect timeout must be below one second.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_serve::Hooks;
use posthaste_units::{Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use thiserror::Error;

/// The last stretch before a departure is spun through, in ns: a sleep may end this much late...
const SPIN: u64 = 60_000;
/// ... but never more than this part of the mean service, which is exact enough: many long services
/// then share a processor.
const SPIN_PART: u64 = 1000;

/// What the server says of how busy it is forgets with this time constant, in ns.
const MEMORY: f64 = 100e6;

/// A service law, written `md1:5ms`, `mm1:5ms` or `mm1k:5ms:10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// M/D/1: every service takes this long.
    Md1(Span),
    /// M/M/1: exponential with this mean.
    Mm1(Span),
    /// M/M/1/K: exponential, and at most `capacity` requests in the system, at least 2.
    Mm1k {
        /// Mean service time.
        mean: Span,
        /// K: one in service and the others in the kernel's queue.
        capacity: u32,
    },
}

/// Why a text is no law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no service law ({reason}): write md1:5ms, mm1:5ms or mm1k:5ms:10")]
pub struct LawError {
    text: String,
    reason: String,
}

/// The one server of a law.
pub(crate) struct Clock {
    law: Law,
    spin: u64,
    idle: Arc<Idle>,
    state: RefCell<State>,
}

struct State {
    random: Stream,
    departure: u64,
    /// Share of the last tenth of a second or so in which the server had something to do.
    busy: f64,
}

/// When the thread last had to wait for the network. Written and read by one thread only.
///
/// It did when it gave up the processor of its own accord meanwhile: how long a wait took would not
/// tell, since a thread that found a request there at once may still have been put aside for another.
#[derive(Default)]
pub(crate) struct Idle {
    sleeps: AtomicU64,
    woke: AtomicU64,
}

impl Law {
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

impl FromStr for Law {
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

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md1(time) => write!(f, "md1:{time}"),
            Self::Mm1(mean) => write!(f, "mm1:{mean}"),
            Self::Mm1k { mean, capacity } => write!(f, "mm1k:{mean}:{capacity}"),
        }
    }
}

impl Idle {
    /// The calls that keep `idle` up to date.
    pub(crate) fn hooks(idle: &Arc<Self>) -> Hooks {
        let (before, after) = (idle.clone(), idle.clone());
        Hooks {
            before_wait: Some(Arc::new(move || before.sleeps.store(sleeps(), Relaxed))),
            after_wait: Some(Arc::new(move || {
                if sleeps() != after.sleeps.load(Relaxed) {
                    after.woke.store(now(), Relaxed);
                }
            })),
            in_order: true,
        }
    }
}

impl Clock {
    /// A server on the calling thread.
    pub(crate) fn new(law: Law, seed: Seed, idle: Arc<Idle>) -> Self {
        // A sleep may otherwise end 50 µs late (prctl(2), PR_SET_TIMERSLACK).
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::warn!(%error, "timer slack stays: departures are less exact");
        }
        let state = State {
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

    /// Blocks the thread until the request being handled has had its service. `left` is when the
    /// connection's last reply left, and is set anew. How busy the server is, 0 to 1.
    pub(crate) fn serve(&self, left: &Cell<u64>) -> f64 {
        let mut state = self.state.borrow_mut();
        let arrival = self.idle.woke.load(Relaxed).max(left.get());
        let service = self.law.draw(&mut state.random);
        let before = state.departure;
        state.departure = arrival.max(before).saturating_add(service);
        let passed = state.departure.saturating_sub(before).max(1) as f64;
        let weight = 1.0 - (-passed / MEMORY).exp();
        state.busy += (service as f64 / passed - state.busy) * weight;
        sleep_until(state.departure, self.spin);
        left.set(now());
        state.busy
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often the calling thread has given up the processor of its own accord.
fn sleeps() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage, which the call fills in; all zeros are one, should it fail.
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
        // Interrupted by a signal: look at the clock and sleep on.
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
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
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
            let error = wrong.parse::<Law>().unwrap_err().to_string();
            assert!(error.contains("mm1k:5ms:10"), "{error}");
        }
    }

    #[test]
    fn drawn_times_have_the_mean_and_spread_of_their_law() {
        let mut random = Seed(1).stream("service");
        let law: Law = "mm1:1ms".parse().unwrap();
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| law.draw(&mut random) as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.045, "{variance}");
        assert_eq!(Law::Md1(Span::from_millis(2)).draw(&mut random), 2_000_000);
    }
}
