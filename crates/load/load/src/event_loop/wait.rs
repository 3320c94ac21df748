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
        let now = self.shared.clock.now();
        let until = if self.connections.has_unread() {
            now
        } else {
            self.next_wakeup(now)
        };
        let time_left = until.saturating_since(now);
        match self.connections.wait(events, time_left) {
            Ok(0) if !time_left.is_zero() => self.spin.learn(until, self.shared.clock.now()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    /// Returns the end of the next sleep.
    fn next_wakeup(&self, now: Instant) -> Instant {
        let deadlines = [
            self.connections.next_deadline(),
            self.requests.exchanges.next_deadline(),
            self.queues.timers.next_due(),
        ];
        let earliest = deadlines.into_iter().flatten().min();
        let latest = (now + CHECK_EVERY).min(self.requests.recording.next_second);
        let until = earliest.map_or(latest, |due| due.min(latest));
        match self.requests.arrivals.next_due() {
            Some(due) => until.min(self.spin.begin(due, now)),
            None => until,
        }
    }
}
