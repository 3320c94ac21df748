//! Waiting for the next packet or due time: asleep at first, and polling at the end.
//!
//! A sleeping thread wakes some ten microseconds late on an idle machine and much later on a busy one, so the last part
//! is spent polling the clock and the rings. A real-time thread must not do that for long: the kernel stops one that
//! uses up its share, for fifty milliseconds at a time. The thread therefore owes sleep for its time awake.

use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::clock::EmulatorClock;
use crate::path::device::Device;

/// Time before a due time during which the loop polls.
const AWAKE: Span = Span::from_micros(100);
/// Parts awake for each part of sleep of a real-time thread: it sleeps a tenth, while the kernel takes a twentieth.
const SHARE: u64 = 9;
/// Owed sleep above which the thread waits asleep until the due time.
const OWED: Span = Span::from_micros(200);
/// Owed sleep above which it pauses regardless of due times. A pause is shorter than the kernel's.
const OVERDUE: Span = Span::from_micros(500);
/// Longest sleep, as a safeguard against a lost wake-up.
const LONGEST: Span = Span::from_secs(1);

/// A request from another thread that the emulator stops, or that it looks at its messages.
#[derive(Debug)]
pub(crate) struct Stop {
    requested: AtomicBool,
    /// There are messages.
    messages: AtomicBool,
    wake_event: OwnedFd,
}

impl Stop {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            requested: AtomicBool::new(false),
            messages: AtomicBool::new(false),
            wake_event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Requests the stop. The loop sees it at its next check.
    pub(crate) fn ask(&self) {
        self.requested.store(true, Ordering::Release);
        self.wake_sleeper();
    }

    /// Wakes the loop for a message that has been sent.
    pub(crate) fn wake(&self) {
        self.messages.store(true, Ordering::Release);
        self.wake_sleeper();
    }

    fn wake_sleeper(&self) {
        // It can fail only after 2^64 writes.
        let _ = rustix::io::write(&self.wake_event, &1u64.to_ne_bytes());
    }

    /// True once after a [`wake`](Self::wake).
    pub(crate) fn take_wake(&self) -> bool {
        let woken = self.has_wake() && self.messages.swap(false, Ordering::Acquire);
        if woken {
            // Otherwise no sleep would begin any more. A stop is seen by its flag.
            let _ = rustix::io::read(&self.wake_event, &mut [0; 8]);
        }
        woken
    }

    fn has_wake(&self) -> bool {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }
}

/// Waiting of the loop.
pub(crate) struct Waiter {
    clock: EmulatorClock,
    real_time: bool,
    /// Time up to which time awake has been charged.
    accounted: Instant,
    owed: Span,
    pauses: u64,
}

impl Waiter {
    pub(crate) fn new(clock: EmulatorClock, real_time: bool) -> Self {
        Self {
            clock,
            real_time,
            accounted: clock.now(),
            owed: Span::ZERO,
            pauses: 0,
        }
    }

    /// Pauses made regardless of due times.
    pub(crate) fn pauses(&self) -> u64 {
        self.pauses
    }

    /// Returns when `due` has passed, a frame has arrived, or a stop or a wake was requested. Call it in every iteration, even if
    /// something is due already, because pauses are made here.
    pub(crate) fn wait(
        &mut self,
        due: Option<Instant>,
        devices: &[Device; 2],
        stop: &Stop,
    ) -> Result<(), Errno> {
        let mut now = self.clock.now();
        self.charge(now);
        if self.owed >= OVERDUE {
            self.pauses += 1;
            return self.sleep(now, self.owed, &mut []);
        }
        let has_news =
            || devices.iter().any(Device::has_arrival) || stop.is_asked() || stop.has_wake();
        let due = due.unwrap_or(now + LONGEST);
        let awake = if self.owed >= OWED { Span::ZERO } else { AWAKE };
        if due.saturating_since(now) > awake && !has_news() {
            let mut files = [
                PollFd::new(&devices[0], PollFlags::IN),
                PollFd::new(&devices[1], PollFlags::IN),
                PollFd::new(&stop.wake_event, PollFlags::IN),
            ];
            self.sleep(now, due.since(now + awake), &mut files)?;
            now = self.clock.now();
        }
        while now < due && due.since(now) <= awake && !has_news() {
            std::hint::spin_loop();
            now = self.clock.now();
        }
        Ok(())
    }

    /// Charges the time awake since the last call.
    fn charge(&mut self, now: Instant) {
        debug_assert!(now >= self.accounted, "the clock went backwards");
        if self.real_time {
            self.owed += now.since(self.accounted) / SHARE;
        }
        self.accounted = now;
    }

    /// Sleeps for `length`, or until one of the files is ready.
    fn sleep(&mut self, now: Instant, length: Span, files: &mut [PollFd<'_>]) -> Result<(), Errno> {
        let ns = length.as_nanos();
        let timeout = Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        match poll(files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        self.accounted = self.clock.now();
        self.owed = self.owed.saturating_sub(self.accounted.since(now));
        Ok(())
    }
}
