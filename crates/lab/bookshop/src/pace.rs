//! Sleeps that end on time: one timer descriptor per thread, in ns of CLOCK_MONOTONIC.
//!
//! The runtime's own timers count milliseconds, so gaps of less would arrive in bunches.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::now;

/// The sleeps of one thread. Its timer is opened by the first one.
#[derive(Default)]
pub(crate) struct Pacer {
    timer: OnceCell<Option<Rc<PacerTimer>>>,
}

struct PacerTimer {
    descriptor: AsyncFd<OwnedFd>,
    /// By the end of the sleep, then by its number.
    sleeps: RefCell<BTreeMap<(u64, u64), Waker>>,
    begun: Cell<u64>,
}

impl Pacer {
    /// Sleeps until `end`. Without a free descriptor, ends up to 1 ms late.
    pub(crate) async fn until(&self, end: u64) {
        let left = end.saturating_sub(now());
        if left == 0 {
            return;
        }
        match self.timer.get_or_init(PacerTimer::start) {
            Some(timer) => timer.clone().until(end).await,
            None => tokio::time::sleep(Duration::from_nanos(left)).await,
        }
    }
}

impl PacerTimer {
    /// Opens the timer on the calling thread. `None` without a free descriptor.
    fn start() -> Option<Rc<Self>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags);
        let descriptor = descriptor.map_err(std::io::Error::from);
        // SAFETY: the descriptor is owned by the registration until both are dropped, and is never replaced.
        let register = |descriptor| unsafe { AsyncFd::register(descriptor) }.map_err(Into::into);
        let timer = match descriptor.and_then(register) {
            Ok(descriptor) => Rc::new(Self {
                descriptor,
                sleeps: RefCell::default(),
                begun: Cell::new(0),
            }),
            Err(error) => {
                tracing::warn!(%error, "no timer: events are up to 1 ms late");
                return None;
            }
        };
        let task = timer.clone();
        tokio::task::spawn_local(async move { task.run().await });
        Some(timer)
    }

    /// Wakes sleeps at their ends.
    async fn run(&self) {
        while let Ok(mut ready) = self.descriptor.readable().await {
            // The count of expirations is not needed; reading it ends the readiness.
            let _ = ready.try_io(|descriptor| {
                let mut count = [0; 8];
                Ok(rustix::io::read(descriptor.get_ref(), &mut count)?)
            });
            let later = self.sleeps.borrow_mut().split_off(&(now() + 1, 0));
            let due = std::mem::replace(&mut *self.sleeps.borrow_mut(), later);
            due.into_values().for_each(Waker::wake);
            self.arm();
        }
    }

    async fn until(&self, end: u64) {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let _sleep = PacerSleep {
            timer: self,
            key: (end, number),
        };
        poll_fn(|cx| {
            if now() >= end {
                return Poll::Ready(());
            }
            let mut sleeps = self.sleeps.borrow_mut();
            let is_next = sleeps.keys().next().is_none_or(|next| end < next.0);
            sleeps.insert((end, number), cx.waker().clone());
            drop(sleeps);
            if is_next {
                self.arm();
            }
            Poll::Pending
        })
        .await;
    }

    /// Sets the timer to the next end.
    fn arm(&self) {
        let Some(end) = self.sleeps.borrow().keys().next().map(|next| next.0) else {
            return;
        };
        let at = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (end / 1_000_000_000) as i64,
                tv_nsec: (end % 1_000_000_000) as i64,
            },
        };
        let set = timerfd_settime(self.descriptor.get_ref(), TimerfdTimerFlags::ABSTIME, &at);
        debug_assert!(set.is_ok(), "an absolute time is always valid: {set:?}");
    }
}

/// Removes a sleep when it ends or is dropped.
struct PacerSleep<'a> {
    timer: &'a PacerTimer,
    key: (u64, u64),
}

impl Drop for PacerSleep<'_> {
    fn drop(&mut self) {
        self.timer.sleeps.borrow_mut().remove(&self.key);
    }
}
