//! Emulation of a slower machine: every request costs a multiple of its CPU time.
//!
//! A load generator on the next core needs more CPU time per connection than a service, so it cannot overload the
//! service. This module measures the CPU time of the whole thread, including the kernel's part, and adds sleep in
//! proportion, as if every instruction took longer. Differences between two forms of a reply keep their proportion; a
//! random service time would hide them. Sleeping instead of spinning leaves the core to other programs, which would
//! otherwise be slowed as well.

use std::cell::Cell;
use std::rc::Rc;

use hyper::{Request, Response};
use posthaste_units::Span;
use rustix::thread::clock_nanosleep_relative;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::connection::peer::Peer;
use crate::exchange::incoming::Incoming;
use crate::framing::check::Rejection;
use crate::framing::unreadable::UnreadableRequest;
use crate::handler::Handler;

/// Minimum sleep in nanoseconds. The first request after a sleep finds cold caches, so frequent sleeps would charge for
/// them each time.
const LEAST_SLEEP: i64 = 4_000_000;

/// Maximum charge for one request, in nanoseconds. Real requests need less. A virtual machine counts time without a
/// processor as used, and would be charged for it many times over.
const MOST_USED: i64 = 2_000_000;

/// The slowdown of one thread, for experiments.
#[derive(Debug)]
pub struct Slowness {
    /// Additional time per nanosecond used.
    more: i64,
    /// The thread's CPU time at the last payment.
    paid: Cell<i64>,
    /// Time owed. Negative after a sleep that ended late.
    owed: Cell<i64>,
}

impl Slowness {
    /// Slows the calling thread down by `times`, at least 1.
    pub fn new(times: u32) -> Self {
        Self {
            more: i64::from(times) - 1,
            paid: Cell::new(read(ClockId::ThreadCPUTime)),
            owed: Cell::new(0),
        }
    }

    /// Returns the duration of `time` on the emulated machine.
    pub fn stretch(&self, time: Span) -> Span {
        time * (1 + self.more.unsigned_abs())
    }

    /// Adds the CPU time since the last call to the time owed, and sleeps if enough is owed.
    pub fn pay(&self) {
        let used = read(ClockId::ThreadCPUTime) - self.paid.get();
        debug_assert!(used >= 0, "CPU time never decreases");
        let mut owed = self.owed.get() + used.min(MOST_USED) * self.more;
        if owed >= LEAST_SLEEP {
            let begin = read(ClockId::Monotonic);
            let rest = Timespec {
                tv_sec: owed / 1_000_000_000,
                tv_nsec: owed % 1_000_000_000,
            };
            // After an interruption by a signal, the rest stays owed.
            let _ = clock_nanosleep_relative(ClockId::Monotonic, &rest);
            owed -= read(ClockId::Monotonic) - begin;
        }
        self.owed.set(owed);
        // The cost of the sleep itself is not charged.
        self.paid.set(read(ClockId::ThreadCPUTime));
    }
}

/// A service on a slower machine: a handler around another, each of whose requests costs a multiple of its CPU time.
#[derive(Debug)]
pub struct SlowMachine<H> {
    handler: Rc<H>,
    slowness: Slowness,
}

impl<H: Handler> SlowMachine<H> {
    /// Slows `handler` and the calling thread down by `times`, at least 1.
    pub fn new(handler: H, times: u32) -> Self {
        Self {
            handler: Rc::new(handler),
            slowness: Slowness::new(times),
        }
    }
}

impl<H: Handler> Handler for SlowMachine<H> {
    type Body = H::Body;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<Self::Body> {
        let response = self.handler.clone().handle(request, peer).await;
        self.slowness.pay();
        response
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, rejection: Rejection) {
        self.handler.rejected(request, peer, rejection);
    }

    fn unreadable(&self, request: &UnreadableRequest, peer: &Peer) {
        self.handler.unreadable(request, peer);
    }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses CPU time, independent of wall-clock time.
    fn work(nanoseconds: i64) {
        let end = read(ClockId::ThreadCPUTime) + nanoseconds;
        while read(ClockId::ThreadCPUTime) < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn work_takes_its_multiple() {
        let slowness = Slowness::new(10);
        let begin = read(ClockId::Monotonic);
        for _ in 0..50 {
            work(100_000);
            slowness.pay();
        }
        let took = read(ClockId::Monotonic) - begin;
        // 5 ms of work, ten times over, less the time still owed. A busy machine makes it longer.
        assert!(took + slowness.owed.get() >= 49_000_000, "{took} ns");
        assert!(slowness.owed.get() < LEAST_SLEEP);
        let stretched = slowness.stretch(Span::from_micros(7));
        assert_eq!(stretched, Span::from_micros(70));
    }
}
