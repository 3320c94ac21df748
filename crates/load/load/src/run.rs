//! The execution of a plan: prepare, start the event loops, join their seconds, assemble the results.

pub(crate) mod observer;
pub(crate) mod preparation;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::io::Errno;

use crate::clock::RunClock;
use crate::error::RunError;
use crate::event_loop::{EventLoop, Shared};
use crate::exchange::attempt_recorder::AttemptRecorder;
use crate::plan::Plan;
use crate::plan::share::Share;
use crate::results::Run;
use crate::run::observer::Observer;
use crate::run::preparation::prepare;
use crate::stop::{StopOrders, StopTime};
use crate::tally::LoadTally;
use crate::tally::seconds::{JoinedSeconds, LoopSecond, SECOND};
use crate::tally::tick::Tick;
use crate::target::{AnyTarget, TargetOrigin, TargetPolicy};

/// Time for the threads to get ready before the first request is due.
const LEAD: Duration = Duration::from_millis(5);
/// Interval of looking for seconds that are overdue.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The thread of one event loop, unless the system refused it.
type LoopThread<'scope> = std::io::Result<ScopedJoinHandle<'scope, Result<(), Errno>>>;

/// An event loop's thread, and the way back for its tallies.
struct StartedLoop<'scope> {
    thread: LoopThread<'scope>,
    empty: Sender<Box<LoadTally>>,
}

/// Receives the measurements of a share of a plan.
pub trait ShareObserver {
    /// Called when all loops have been started, before the first request.
    fn begin(&mut self) {}

    /// Called for each second, once all loops have reported it. `second` is its number, from 1. The sum of all seconds is
    /// the result of the share. `is_over` after the end of all loops.
    fn second(&mut self, second: u64, tally: &LoadTally, is_over: bool);
}

/// Carries out `plan`. Setting `stop` ends it early and keeps the results so far.
pub fn run(plan: &Plan, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Run, RunError> {
    run_whole(plan, stop, observer, None)
}

/// Like [`run`], with the local ports and the records of an experiment.
pub fn run_recorded(
    plan: &Plan,
    stop: &AtomicBool,
    recorder: &AttemptRecorder,
) -> Result<Run, RunError> {
    run_whole(plan, stop, &mut (), Some(recorder))
}

fn run_whole(
    plan: &Plan,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    recorder: Option<&AttemptRecorder>,
) -> Result<Run, RunError> {
    static NEVER: StopTime = StopTime::never();
    let orders = StopOrders {
        now: stop,
        at: &NEVER,
    };
    let mut prepared = PreparedShare::new(plan, Share::whole(plan), orders, &AnyTarget)?;
    prepared.shared.recorder = recorder;
    let mut seconds = Seconds {
        observer,
        started: Timestamp::now(),
    };
    let qlog = prepared.shared.qlog.clone();
    let tally = prepared.carry_out(Instant::now() + LEAD, &mut seconds)?;
    let is_stopped = stop.load(Ordering::Relaxed);
    let mut run = Run::new(plan, seconds.started, tally, is_stopped);
    run.qlog = qlog.map(|qlog| qlog.report());
    Ok(run)
}

/// A share of a plan that is ready: everything that can fail before the first request has been done.
pub struct PreparedShare<'p> {
    shared: Shared<'p>,
}

impl<'p> PreparedShare<'p> {
    /// Prepares a share of `plan`: looks names up, reads certificates and follows offers. Connects to nothing that
    /// `policy` does not permit.
    pub fn new(
        plan: &'p Plan,
        share: Share,
        orders: StopOrders<'p>,
        policy: &dyn TargetPolicy,
    ) -> Result<Self, RunError> {
        let shared = prepare(plan, share, orders, policy)?;
        Ok(Self { shared })
    }

    /// The servers, with their addresses.
    pub fn origins(&self) -> &[TargetOrigin] {
        &self.shared.origins
    }

    /// Maximum number of open connections.
    pub fn connection_limit(&self) -> usize {
        self.shared.limit * self.shared.share.loops
    }

    /// Sends the requests of the share from `origin` on, which is when the plan begins. Passes each second to
    /// `observer`, and returns the sum of the seconds.
    pub fn carry_out(
        mut self,
        origin: Instant,
        observer: &mut dyn ShareObserver,
    ) -> Result<LoadTally, RunError> {
        self.shared.clock = RunClock::new(origin);
        carry_out(&self.shared, observer)
    }
}

/// Passes the seconds of a run on to its observer.
struct Seconds<'o> {
    observer: &'o mut dyn Observer,
    started: Timestamp,
}

impl ShareObserver for Seconds<'_> {
    fn begin(&mut self) {
        self.observer.begin(self.started);
    }

    fn second(&mut self, second: u64, tally: &LoadTally, is_over: bool) {
        let is_empty = tally.intended + tally.outcomes.total() == 0;
        if is_over && is_empty {
            return;
        }
        self.observer
            .tick(SECOND * second, &Tick::from_tally(tally));
    }
}

/// Starts the event loops, joins their seconds, and returns the sum of them.
fn carry_out(shared: &Shared<'_>, observer: &mut dyn ShareObserver) -> Result<LoadTally, RunError> {
    std::thread::scope(|scope| {
        let (seconds, from_loops) = mpsc::channel();
        let loops = start_loops(scope, shared, &seconds);
        drop(seconds);
        if loops.iter().all(|started| started.thread.is_ok()) {
            observer.begin();
        } else {
            shared.incomplete.store(true, Ordering::Relaxed);
        }
        let total = join_seconds(&from_loops, &loops, shared, observer);
        join_threads(loops)?;
        Ok(total)
    })
}

fn start_loops<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'scope>,
    seconds: &Sender<LoopSecond>,
) -> Vec<StartedLoop<'scope>> {
    let start = |index| {
        let (empty, spare) = mpsc::channel();
        // One is filled while the other is on its way.
        let _ = empty.send(Box::new(LoadTally::for_plan(shared.plan)));
        let seconds = seconds.clone();
        let run_loop = move || {
            prepare_thread(shared.plan, index);
            let event_loop = EventLoop::new(shared, index, seconds, spare);
            let event_loop =
                event_loop.inspect_err(|_| shared.incomplete.store(true, Ordering::Relaxed))?;
            std::thread::sleep(shared.clock.until_origin().into());
            event_loop.run()
        };
        StartedLoop {
            thread: std::thread::Builder::new().spawn_scoped(scope, run_loop),
            empty,
        }
    };
    (0..shared.share.loops).map(start).collect()
}

/// Makes the thread's timers exact, and pins the thread to its core if one is named.
fn prepare_thread(plan: &Plan, index: usize) {
    // A thread that may do neither still measures, and reports its lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if let Some(count) = std::num::NonZeroUsize::new(plan.cpus.len()) {
        let _ = posthaste_serve::pin_thread(&[plan.cpus[index % count]]);
    }
}

/// Joins the seconds of the loops until all have ended. Passes each on, and returns their sum.
fn join_seconds(
    from_loops: &Receiver<LoopSecond>,
    loops: &[StartedLoop<'_>],
    shared: &Shared<'_>,
    observer: &mut dyn ShareObserver,
) -> LoadTally {
    let mut total = LoadTally::for_plan(shared.plan);
    let mut joined = JoinedSeconds::new(loops.len());
    let mut is_over = false;
    joined.add(0, 0, &shared.look_ups());
    while !is_over {
        match from_loops.recv_timeout(LOOK_EVERY) {
            Ok(report) => take_report(report, &mut joined, loops),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => is_over = true,
        }
        while let Some((second, tally)) = joined.take(shared.clock.now(), is_over) {
            total.merge(&tally);
            observer.second(second, &tally, is_over);
            joined.reuse(tally);
        }
    }
    total
}

/// Adds a report of a loop, and returns the empty tally to it.
fn take_report(report: LoopSecond, joined: &mut JoinedSeconds, loops: &[StartedLoop<'_>]) {
    let LoopSecond {
        index,
        second,
        mut tally,
        is_last,
    } = report;
    joined.add(index, second, &tally);
    if is_last {
        joined.end(index);
    }
    tally.clear();
    // A loop that has ended needs no more.
    let _ = loops[index].empty.send(tally);
}

fn join_threads(loops: Vec<StartedLoop<'_>>) -> Result<(), RunError> {
    let join = |started: StartedLoop<'_>| -> Result<(), RunError> {
        let ended = started.thread.map_err(RunError::Thread)?.join();
        Ok(ended.expect("an event loop panicked: a bug")?)
    };
    loops.into_iter().try_for_each(join)
}
