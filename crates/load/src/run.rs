//! The execution of a plan: prepare, start the event loops, observe each second, join the loops, assemble the results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use jiff::Timestamp;
use posthaste_units::{Instant, Span};
use rustix::io::Errno;

use crate::assembly::assemble;
use crate::clock::RunClock;
use crate::error::RunError;
use crate::event_loop::{EventLoop, Shared};
use crate::observer::Observer;
use crate::plan::Plan;
use crate::preparation::prepare;
use crate::results::Run;
use crate::tally::{LoopTally, Tick};

/// Time for the threads to get ready before the first request is due.
const LEAD: Span = Span::from_millis(5);
/// Time limit for a loop to report a second. The others are then passed on without it.
const LATE: Span = Span::from_secs(2);
/// Interval of reports during a run.
const SECOND: Span = Span::from_secs(1);

/// The thread of one event loop, unless the system refused it.
type LoopThread<'scope> = std::io::Result<ScopedJoinHandle<'scope, Result<LoopTally, Errno>>>;

/// Carries out `plan`. Setting `stop` ends it early and keeps the results so far.
pub fn run(plan: &Plan, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let (mut shared, dns) = prepare(plan, stop)?;
    shared.clock = RunClock::starting_in(LEAD);
    let started = Timestamp::now();
    let tallies = std::thread::scope(|scope| {
        let (ticks, from_loops) = mpsc::channel();
        let loops = start_loops(scope, &shared, ticks);
        match loops.iter().all(Result::is_ok) {
            true => observer.begin(started),
            false => shared.incomplete.store(true, Ordering::Relaxed),
        }
        observe(&from_loops, &shared, observer);
        join_loops(loops)
    })?;
    Ok(assemble(&shared, started, &dns, &tallies))
}

fn start_loops<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'scope>,
    ticks: mpsc::Sender<Tick>,
) -> Vec<LoopThread<'scope>> {
    let start = |index| {
        let ticks = ticks.clone();
        let run_loop = move || {
            prepare_thread(shared.plan, index);
            let event_loop = EventLoop::new(shared, index, ticks);
            let event_loop =
                event_loop.inspect_err(|_| shared.incomplete.store(true, Ordering::Relaxed))?;
            std::thread::sleep(shared.clock.until_origin().into());
            event_loop.run()
        };
        std::thread::Builder::new().spawn_scoped(scope, run_loop)
    };
    (0..shared.plan.threads).map(start).collect()
}

/// Makes the thread's timers exact, and pins the thread to its core if one is named.
fn prepare_thread(plan: &Plan, index: usize) {
    // A thread that may do neither still measures, and reports its lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if let Some(count) = std::num::NonZeroUsize::new(plan.cpus.len()) {
        let _ = posthaste_serve::pin_thread(&[plan.cpus[index % count]]);
    }
}

/// Joins the ticks of all loops. Passes them on, in whole seconds, when each loop has reported its second.
fn observe(ticks: &mpsc::Receiver<Tick>, shared: &Shared<'_>, observer: &mut dyn Observer) {
    let (mut joined, mut received) = (Tick::default(), 0);
    // The last second passed on, so that each is passed on once.
    let mut last = 0;
    loop {
        match ticks.recv_timeout(Duration::from_millis(200)) {
            Ok(tick) => {
                joined.merge(&tick);
                received += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = shared.clock.now().since(Instant::ORIGIN);
        let second = now.as_nanos() / SECOND.as_nanos();
        let is_late = now.saturating_sub(SECOND * last) >= LATE;
        debug_assert!(second >= last, "seconds decrease");
        if second > last && (received >= shared.plan.threads || is_late) {
            (last, received) = (second, 0);
            observer.tick(SECOND * second, &std::mem::take(&mut joined));
        }
    }
    if joined.intended + joined.outcomes.total() > 0 {
        let now = shared.clock.now().since(Instant::ORIGIN).as_nanos();
        let second = now.div_ceil(SECOND.as_nanos()).max(last + 1);
        observer.tick(SECOND * second, &joined);
    }
}

fn join_loops(loops: Vec<LoopThread<'_>>) -> Result<Vec<LoopTally>, RunError> {
    let join = |thread: LoopThread<'_>| -> Result<LoopTally, RunError> {
        let ended = thread.map_err(RunError::Thread)?.join();
        Ok(ended.expect("an event loop panicked: a bug")?)
    };
    loops.into_iter().map(join).collect()
}
