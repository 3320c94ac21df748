//! A machine so many times slower: every request costs a multiple of the processor time it took.
//!
//! A generator on the next core costs more per connection than a service does, so a service cannot be
//! pushed past its limit from there. Here the processor time of all that the thread does, the
//! kernel's part of it included, is measured and paid for with sleep, as if every instruction took
//! longer. What differs between two forms of a reply thus keeps its proportion, which a drawn
//! service time would cover up. It sleeps instead of spinning, so that other
//! programs on the core do not slow the slow machine down.

use std::cell::Cell;

use posthaste_units::Span;
use rustix::thread::clock_nanosleep_relative;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// What is owed is slept off in pieces of at least this many nanoseconds: the first request after a
/// sleep finds cold caches, and would be charged for them as often as it slept.
const LEAST_SLEEP: i64 = 4_000_000;

/// What one request is charged for at most. None needs as much: a virtual machine that loses its
/// processor for a while counts that as used, and would pay for the loss many times over.
const MOST_USED: i64 = 2_000_000;

/// The slowness of one thread, for experiments.
#[derive(Debug)]
pub struct Slowness {
    /// Further times by which each nanosecond is paid.
    more: i64,
    /// The thread's processor time when a request was last paid for.
    paid: Cell<i64>,
    /// Time owed; below zero when a sleep ended late.
    owed: Cell<i64>,
}

impl Slowness {
    /// The calling thread becomes `times` slower, at least 1.
    pub fn new(times: u32) -> Self {
        Self {
            more: i64::from(times) - 1,
            paid: Cell::new(read(ClockId::ThreadCPUTime)),
            owed: Cell::new(0),
        }
    }

    /// What takes `time` of the processor here, as it is on the slower machine.
    pub fn stretch(&self, time: Span) -> Span {
        time * (1 + self.more.unsigned_abs())
    }

    /// Adds what the thread has used since the last call to what it owes, and sleeps that off.
    pub fn pay(&self) {
        let used = read(ClockId::ThreadCPUTime) - self.paid.get();
        let mut owed = self.owed.get() + used.min(MOST_USED) * self.more;
        if owed >= LEAST_SLEEP {
            let begin = read(ClockId::Monotonic);
            let rest = Timespec {
                tv_sec: owed / 1_000_000_000,
                tv_nsec: owed % 1_000_000_000,
            };
            // Interrupted by a signal: the rest stays owed.
            let _ = clock_nanosleep_relative(ClockId::Monotonic, &rest);
            owed -= read(ClockId::Monotonic) - begin;
        }
        self.owed.set(owed);
        // The sleep's own cost is not the request's.
        self.paid.set(read(ClockId::ThreadCPUTime));
    }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses processor time, not time.
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
        // 5 ms of work, ten times over, less what is still owed; a busy machine makes it longer.
        assert!(took + slowness.owed.get() >= 49_000_000, "{took} ns");
        assert!(slowness.owed.get() < LEAST_SLEEP);
        let stretched = slowness.stretch(Span::from_micros(7));
        assert_eq!(stretched, Span::from_micros(70));
    }
}
