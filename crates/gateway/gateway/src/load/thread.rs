//! Load of a worker, sampled by a task on its own thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

use posthaste_compression::Work;
use posthaste_serve::environment::is_simulated;
use posthaste_units::{Instant, Span};

use super::{Controller, EVERY, share};
use crate::clock::{now, processor_time};
use crate::context::GatewayContext;
use crate::idle;
use crate::response::worker::CompressionWorker;

/// Samples the calling thread until it ends.
pub(crate) async fn sample_load(context: Arc<GatewayContext>, worker: Rc<CompressionWorker>) {
    let threshold = || context.resolved().config.compression.high_demand();
    let mut controller = Controller::new(threshold(), 1.0, Work::default());
    // A simulated processor is never taken away.
    let schedule = if is_simulated() {
        None
    } else {
        File::open("/proc/thread-self/schedstat").ok()
    };
    let sample = || ThreadTimes {
        at: now(),
        idle: idle::sum(),
        ran: processor_time(),
        delayed: delay(schedule.as_ref()),
    };
    let mut last = sample();
    loop {
        tokio::time::sleep(EVERY).await;
        let seen = sample();
        let busy = seen.busy_since(&last);
        last = seen;
        let work = worker.work();
        worker.publish_load(controller.push(threshold(), busy, work));
    }
}

/// One sample of the thread's cumulative times.
struct ThreadTimes {
    at: Instant,
    /// Idle time, from the hooks around waits.
    idle: Span,
    /// CPU time.
    ran: Span,
    /// Time runnable without a processor.
    delayed: Span,
}

impl ThreadTimes {
    /// Returns the share of time in which the thread ran or was delayed, since `last`.
    ///
    /// Counts scheduling delay once. It can overlap idle time (late wake-up) or busy time (preemption); the CPU time
    /// tells them apart. The lower bound is the time not spent idle, which includes kernel work that no clock of the
    /// thread shows. The upper bound excludes the cost of falling asleep, which only the scheduler's clock shows.
    fn busy_since(&self, last: &Self) -> f64 {
        let passed = self.at.since(last.at);
        let [idle, ran, delayed] = [
            (self.idle, last.idle),
            (self.ran, last.ran),
            (self.delayed, last.delayed),
        ]
        .map(|(now, then)| now.saturating_sub(then));
        let worked = passed.saturating_sub(idle);
        share((ran + delayed).clamp(worked, worked + delayed), passed)
    }
}

/// Returns the time runnable without a processor: the second number of the file, in nanoseconds. Zero if the kernel
/// does not report it.
fn delay(schedule: Option<&File>) -> Span {
    let mut line = [0; 64];
    let length = schedule.and_then(|file| file.read_at(&mut line, 0).ok());
    let line = std::str::from_utf8(&line[..length.unwrap_or(0)]).unwrap_or_default();
    let nanos = line.split(' ').nth(1).and_then(|n| n.trim().parse().ok());
    Span::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The busy share of 200 ms with these times, in milliseconds.
    fn busy(idle: u64, ran: u64, delayed: u64) -> f64 {
        let sample = |at, [idle, ran, delayed]: [u64; 3]| ThreadTimes {
            at,
            idle: Span::from_millis(idle),
            ran: Span::from_millis(ran),
            delayed: Span::from_millis(delayed),
        };
        let begin = Instant::from_nanos(1_000_000_000);
        let last = sample(begin, [7, 5, 3]);
        let seen = sample(
            begin + Span::from_millis(200),
            [7 + idle, 5 + ran, 3 + delayed],
        );
        seen.busy_since(&last)
    }

    #[test]
    fn a_delay_counts_once_whether_it_was_woken_late_or_put_aside() {
        let is = |found: f64, busy: f64| assert!((found - busy).abs() < 1e-9, "{found}");
        is(busy(100, 100, 0), 0.5);
        is(busy(140, 60, 40), 0.5);
        is(busy(100, 60, 40), 0.5);
        is(busy(120, 60, 40), 0.5);
        is(busy(0, 60, 140), 1.0);
    }

    #[test]
    fn busy_time_counts_work_that_only_one_clock_shows() {
        // Kernel work on behalf of the thread.
        assert!((busy(100, 80, 0) - 0.5).abs() < 1e-9);
        // The cost of falling asleep.
        assert!((busy(140, 75, 0) - 0.3).abs() < 1e-9);
        assert!((busy(140, 75, 40) - 0.5).abs() < 1e-9);
    }
}
