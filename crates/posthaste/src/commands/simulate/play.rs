//! Simulation of all cases on all cores: threads take shards of transactions in turn.
//!
//! The result of a case does not depend on the threads, because its totals are whole numbers. When the last shard of a
//! case is complete, only its results are kept.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use posthaste_sim::{CaseNumbers, CaseResults, SimulationCase, Totals};
use posthaste_units::Seed;

use crate::commands::Failure;

/// Interval of screen updates.
const LOOK: Duration = Duration::from_millis(100);

/// A case in progress.
#[derive(Default)]
struct CaseProgress {
    totals: Option<Box<Totals>>,
    shards: u64,
    numbers: Option<CaseNumbers>,
}

/// State shared by the threads.
struct Work<'a> {
    cases: &'a [SimulationCase],
    transactions: u64,
    /// Transactions of a shard.
    shard: u64,
    seed: Seed,
    stop: &'a AtomicBool,
    next: AtomicU64,
    done: AtomicU64,
    progress: Vec<Mutex<CaseProgress>>,
}

/// Simulates `transactions` transactions of each case.
pub(super) fn play(
    cases: &[SimulationCase],
    transactions: u64,
    seed: Seed,
    threads: Option<usize>,
    stop: &AtomicBool,
) -> Result<CaseResults, Failure> {
    let work = Work {
        cases,
        transactions,
        // All cases have the same transport.
        shard: cases.first().map_or(1, |case| case.scenario.batch()),
        seed,
        stop,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        progress: cases.iter().map(|_| Mutex::default()).collect(),
    };
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(cores);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| work.run_shards()))
            .collect();
        let view = View::new(work.all());
        while threads.iter().any(|thread| !thread.is_finished()) {
            view.show(work.done.load(Ordering::Relaxed));
            thread::park_timeout(LOOK);
        }
        view.end();
        let mut results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results
            .try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let stopped = work.done.load(Ordering::Relaxed) < work.all();
    let numbers = work.progress.into_iter().map(|progress| {
        let progress = progress
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner());
        let rest = || CaseNumbers::new(&progress.totals.unwrap_or_default());
        progress.numbers.unwrap_or_else(rest)
    });
    Ok(CaseResults {
        numbers: numbers.collect(),
        stopped,
    })
}

impl Work<'_> {
    fn all(&self) -> u64 {
        self.transactions.saturating_mul(self.cases.len() as u64)
    }

    /// Runs one thread: shard after shard, until none is left.
    fn run_shards(&self) -> Result<(), Failure> {
        let shards = self.transactions.div_ceil(self.shard);
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Ok(case) = usize::try_from(number / shards) else {
                break;
            };
            let (Some(SimulationCase { scenario, .. }), Some(progress)) =
                (self.cases.get(case), self.progress.get(case))
            else {
                break;
            };
            let first = number % shards * self.shard + 1;
            let last = (first + self.shard - 1).min(self.transactions);
            let mut simulator = scenario.simulator(self.seed).map_err(Failure::usage)?;
            let mut totals = Box::new(Totals::new());
            for number in first..=last {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                simulator.add_to(&mut totals, number);
            }
            self.done.fetch_add(totals.connections, Ordering::Relaxed);
            let mut progress = progress.lock().unwrap_or_else(|broken| broken.into_inner());
            progress.add(totals, shards);
        }
        Ok(())
    }
}

impl CaseProgress {
    fn add(&mut self, totals: Box<Totals>, shards: u64) {
        match &mut self.totals {
            Some(sum) => sum.merge(&totals),
            None => self.totals = Some(totals),
        }
        self.shards += 1;
        if self.shards == shards {
            self.numbers = self.totals.take().map(|totals| CaseNumbers::new(&totals));
        }
    }
}

/// Progress: a line on a terminal, nothing elsewhere.
pub(super) struct View {
    bar: ProgressBar,
}

impl View {
    pub(super) fn new(all: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(all), target);
        let template = "{wide_bar:.cyan} {human_pos} of {human_len} transactions, {per_sec}, {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub(super) fn show(&self, done: u64) {
        self.bar.set_position(done);
    }

    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}
