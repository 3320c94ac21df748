//! The emulated service: replies leave when the model of [`posthaste_services`] says, independent of the machine.
//!
//! The model answers each arrival with a departure and a status. There are two ways to wait for a departure:
//!
//! | service | waiting | arrivals |
//! |---|---|---|
//! | a law with one server and nothing else | the thread sleeps, then spins: exact | the thread's wake-up |
//! | every other | a timer; others are handled meanwhile | the time when the thread reads the request |
//!
//! **One server.** Queueing theory predicts the response times of such a server, so a load generator can be checked
//! against it. The thread blocks until the departure, max(arrival, previous departure) + service time. The reply is
//! written at once. A request that was already waiting at the previous departure counts from that departure, not from
//! the moment when the thread reads it. So reading and writing are part of the service time, and no error accumulates in
//! a busy period.
//!
//! The arrival of a request at an idle thread is the thread's wake-up. On a kept connection it is never before the
//! previous reply. The remaining bias is that wake-up and the path of the reply, 20 to 60 µs on loopback with a free
//! processor. Nothing is subtracted for it. On a busy processor, waiting for the processor is added. If other work runs
//! there, give the shop a separate processor.
//!
//! Connections may stay open, and requests queue in their sockets. The thread takes them in the order of the kernel's
//! reports. `mm1k` needs a connection per request, because its queue is the kernel's: one connection is in service
//! (concurrency 1), and a listening socket with backlog K - 2 holds K - 1 more, since Linux holds one more than
//! configured. The SYN of an arrival that finds K in the system is dropped. A client sees a connection that is not
//! established in time, and ListenDrops counts it. The share of such arrivals is the blocking probability. A
//! retransmitted SYN would count as another arrival, so the client's connect timeout must be below one second.
//!
//! **Other services.** Refusals leave at once, and several servers serve at once, so the thread must not block. Reading
//! and writing are added to the response time: 0.1 to 0.2 ms. A request that hangs keeps its connection until the client
//! closes it, at most ten minutes.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use posthaste_serve::Hooks;
use posthaste_services::{ServiceLaw, ServiceModel, ServiceReply, ServiceSpec};
use posthaste_units::{Instant, Seed};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::clock::now;
use crate::pace::Pacer;

/// Maximum spinning before a departure, in ns. A sleep may end this much late.
const SPIN: u64 = 60_000;
/// Divisor of the mean service time for another limit on spinning. This is exact enough, and many long services can
/// share a processor.
const SPIN_PART: u64 = 1000;
/// Time after which a request that is never answered gets 503 anyway, in ns.
const HANG: u64 = 600_000_000_000;

/// The emulated service of the thread.
pub(crate) struct LawServer {
    model: RefCell<ServiceModel>,
    /// CLOCK_MONOTONIC at the origin of the model's time.
    origin: u64,
    is_exact: bool,
    spin: u64,
    idle: Arc<Idle>,
    /// The ends of the last service but one, and of the last.
    ended: Cell<[u64; 2]>,
}

/// The outcome of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceOutcome {
    /// 200, or the status of a refusal or an error.
    pub(crate) status: u16,
    /// Busy share of the servers, 0 to 1.
    pub(crate) busy: f64,
}

/// True if the thread may block for each service: one server, and nothing leaves before its turn.
pub(crate) fn is_exact(spec: &ServiceSpec) -> bool {
    spec.is_plain() && spec.law.servers() == Some(1)
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
    pub(crate) fn new(spec: ServiceSpec, seed: Seed, idle: Arc<Idle>) -> Self {
        // With the default slack a sleep may end 50 µs late (prctl(2), PR_SET_TIMERSLACK).
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::warn!(%error, "timer slack stays: departures are less exact");
        }
        let is_exact = is_exact(&spec);
        let spin = SPIN.min(spec.law.mean().as_nanos() / SPIN_PART);
        let model = match spec.law {
            // The kernel refuses what is beyond K.
            ServiceLaw::Mm1k { mean, .. } => ServiceLaw::Mm1(mean).into(),
            _ => spec,
        };
        Self {
            model: RefCell::new(ServiceModel::new(model, seed)),
            origin: now(),
            is_exact,
            spin,
            idle,
            ended: Cell::new([0; 2]),
        }
    }

    /// True if [`LawServer::serve`] serves, else [`LawServer::attend`] does.
    pub(crate) const fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The earliest arrival of a request on a connection that was open before: a wait that follows another without a
    /// service reports what has arrived since that one. A thread that got no processor has no wake-up then.
    pub(crate) fn earliest(&self) -> u64 {
        self.idle.idled.load(Relaxed)
    }

    /// The earliest arrival of a request that is read now. A connection is read between two services, so a request that
    /// came right after it was read has waited until the end of the next service.
    pub(crate) fn earliest_unread(&self) -> u64 {
        if !self.is_exact {
            return now();
        }
        let woken = self.idle.woke.load(Relaxed);
        self.earliest().max(woken).max(self.ended.get()[0])
    }

    /// Records a reply without a service time. No request arrives on its connection before it: without this record, a
    /// request that follows it before the thread waits again would count as arrived at the last wake-up.
    pub(crate) fn pass(left: &Cell<u64>) {
        left.set(now());
    }

    /// Blocks the thread until the departure of the current request. `left` is the departure of the connection's last
    /// reply and is updated.
    pub(crate) fn serve(&self, left: &Cell<u64>) -> ServiceOutcome {
        let arrival = self.idle.woke.load(Relaxed).max(left.get());
        // A request that is read after a later one has waited for it: only the departure of that one counts.
        let (reply, busy) = self.arrive(arrival);
        let ServiceReply::Answered { at, status } = reply else {
            unreachable!("a plain law answers every request")
        };
        sleep_until(self.origin.saturating_add(at.as_nanos()), self.spin);
        self.idle.has_served.store(true, Relaxed);
        left.set(now());
        self.ended.set([self.ended.get()[1], left.get()]);
        ServiceOutcome { status, busy }
    }

    /// Waits for the reply to a request that has just been read. The thread handles others meanwhile.
    pub(crate) async fn attend(&self, pacer: &Pacer) -> ServiceOutcome {
        let (reply, busy) = self.arrive(now());
        let (end, status) = match reply {
            ServiceReply::Answered { at, status } => {
                (self.origin.saturating_add(at.as_nanos()), status)
            }
            ServiceReply::Never => (now().saturating_add(HANG), 503),
        };
        pacer.until(end).await;
        ServiceOutcome { status, busy }
    }

    /// The reply to a request that arrives at `at`, or at the last arrival if that was later.
    fn arrive(&self, at: u64) -> (ServiceReply, f64) {
        let mut model = self.model.borrow_mut();
        let arrival = Instant::from_nanos(at.saturating_sub(self.origin)).max(model.now());
        (model.arrive(arrival), model.busy())
    }
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
    fn one_plain_server_is_exact() {
        for (text, exact) in [
            ("md1:5ms", true),
            ("mm1:500us", true),
            ("mm1k:5ms:10", true),
            ("bimodal:5ms:50ms:10%", true),
            ("mmc:5ms:4", false),
            ("inf:5ms", false),
            ("md1:5ms,queue=4", false),
        ] {
            assert_eq!(is_exact(&text.parse().unwrap()), exact, "{text}");
        }
    }
}
