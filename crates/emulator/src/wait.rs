//! Waiting for the next packet or the next due time: asleep while there is time, awake at the end.
//!
//! A sleeping thread wakes some ten microseconds late on an idle machine and much later on a busy
//! one, so the last stretch is spent looking at the clock and at the rings. A real-time thread
//! must not do that for long: the kernel stops one that gives nobody else a turn, for fifty
//! milliseconds at a time. It therefore pays with sleep for being awake.

use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::clock::Clock;
use crate::device::Device;

/// From here to a due time the loop stays awake.
const AWAKE: Span = Span::from_micros(100);
/// A real-time thread sleeps one part for so many awake: a tenth, where the kernel takes a twentieth.
const SHARE: u64 = 9;
/// Owed sleep from which on waiting is done asleep to its end...
const OWED: Span = Span::from_micros(200);
/// ... and from which on a pause is made whatever is due. It costs less than the kernel's own.
const OVERDUE: Span = Span::from_micros(500);
/// Longest sleep, so that a lost wake-up is no end.
const LONGEST: Span = Span::from_secs(1);

/// Tells the emulator from another thread that it is to stop.
#[derive(Debug)]
pub(crate) struct Stop {
    asked: AtomicBool,
    bell: OwnedFd,
}

impl Stop {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            asked: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Asks; the loop's next look sees it.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        // The bell only wakes a sleeper; it cannot fail before it has been rung 2^64 times.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// How the loop waits.
pub(crate) struct Waiter {
    clock: Clock,
    real_time: bool,
    /// Until when being awake has been paid for or is on the bill.
    accounted: Instant,
    owed: Span,
    pauses: u64,
}

impl Waiter {
    pub(crate) fn new(clock: Clock, real_time: bool) -> Self {
        Self {
            clock,
            real_time,
            accounted: clock.now(),
            owed: Span::ZERO,
            pauses: 0,
        }
    }

    /// Pauses that had to be made whatever was due.
    pub(crate) fn pauses(&self) -> u64 {
        self.pauses
    }

    /// Returns when `due` has come, a frame is there, or stop has been asked for. To be called in
    /// every turn, also when something is due already: this is where pauses are made.
    pub(crate) fn wait(
        &mut self,
        due: Option<Instant>,
        devices: &[Device; 2],
        stop: &Stop,
    ) -> Result<(), Errno> {
        let mut now = self.clock.now();
        self.bill(now);
        if self.owed >= OVERDUE {
            self.pauses += 1;
            return self.sleep(now, self.owed, &mut []);
        }
        let has_news = || devices.iter().any(Device::has_arrival) || stop.is_asked();
        let due = due.unwrap_or(now + LONGEST);
        let awake = if self.owed >= OWED { Span::ZERO } else { AWAKE };
        if due.since(now) > awake && !has_news() {
            let mut files = [
                PollFd::new(&devices[0], PollFlags::IN),
                PollFd::new(&devices[1], PollFlags::IN),
                PollFd::new(&stop.bell, PollFlags::IN),
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

    /// Writes down what has been awake since the last time.
    fn bill(&mut self, now: Instant) {
        if self.real_time {
            self.owed += now.since(self.accounted) / SHARE;
        }
        self.accounted = now;
    }

    /// Sleeps so long, or until one of the files has news.
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
