//! The wait for events, and for the next request that is due.

use posthaste_units::{Instant, Span};
use rustix::event::epoll;
use rustix::io::Errno;

use super::EventLoop;

/// Maximum interval between checks for Ctrl-C.
const CHECK_EVERY: Span = Span::from_millis(100);

impl EventLoop<'_> {
    /// Waits for a batch of events, until a deadline or the end of the second, or until shortly before the next request
    /// is due.
    pub(super) fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), Errno> {
        events.clear();
        let now = self.shared.clock.now();
        let until = if self.unread.is_empty() {
            self.next_wakeup(now)
        } else {
            now
        };
        let time_left = until.saturating_since(now);
        let timeout = rustix::event::Timespec {
            tv_sec: (time_left.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (time_left.as_nanos() % 1_000_000_000) as _,
        };
        let spare = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            Ok(0) if !time_left.is_zero() => self.spin.learn(until, self.shared.clock.now()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Returns the end of the next sleep.
    fn next_wakeup(&self, now: Instant) -> Instant {
        let deadlines = [
            self.connecting.next_due(),
            self.replying.next_due(),
            self.closing.next_due(),
        ];
        let deadlines = deadlines.into_iter().flatten();
        let earliest = deadlines.chain(self.streams.timer()).min();
        let latest = (now + CHECK_EVERY).min(self.next_second);
        let until = earliest.map_or(latest, |due| due.min(latest));
        let dues = [self.source.next_due(), self.retries.next_due()];
        match dues.into_iter().flatten().min() {
            Some(due) => until.min(self.spin.begin(due, now)),
            None => until,
        }
    }
}
