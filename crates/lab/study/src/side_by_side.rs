//! Studies side by side, each in a process of its own.
//!
//! A study needs a private network namespace, private counters and private threads, hence a process. It reports over
//! its standard output, one JSON document per line, and writes its records itself.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use posthaste_units::Span;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::measuring::{FinishedStudies, Task, Unwritten};
use crate::options::Options;
use crate::progress::{Board, Progress};

/// Concurrent studies per core. Each uses less than half of a core.
const PER_CORE: usize = 2;

/// Interval between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// A line from a study's process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Message {
    Step {
        done: u64,
        #[serde(rename = "of")]
        total: u64,
        #[serde(rename = "words")]
        message: String,
    },
    Say(String),
    End(String),
    /// The last line, after everything else has been written.
    Over(Vec<Unwritten>),
}

/// Runs `tasks`, those with the longest budget first, as the first of `all` studies of a run.
pub(crate) fn run(
    tasks: &[Task<'_>],
    all: usize,
    program: &Path,
    options: &Options,
    stop: &AtomicBool,
    board: &dyn Board,
) -> FinishedStudies {
    let run = SideBySide {
        waiting: Mutex::new(longest_first(tasks)),
        finished: Mutex::default(),
        begun: AtomicUsize::new(0),
        all,
        program,
        options,
        stop,
        board,
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..tasks.len().min(PER_CORE * cores) {
            scope.spawn(|| run.work());
        }
    });
    run.finished
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

fn longest_first<'t, 'f>(tasks: &'t [Task<'f>]) -> VecDeque<&'t Task<'f>> {
    let mut tasks: Vec<&Task<'_>> = tasks.iter().collect();
    tasks.sort_by_key(|task| Reverse(task.budget()));
    tasks.into()
}

/// State shared by the threads that each run one study after another.
struct SideBySide<'a, 'f> {
    waiting: Mutex<VecDeque<&'a Task<'f>>>,
    finished: Mutex<FinishedStudies>,
    begun: AtomicUsize,
    /// Number of all studies of the run.
    all: usize,
    program: &'a Path,
    options: &'a Options,
    stop: &'a AtomicBool,
    board: &'a dyn Board,
}

impl SideBySide<'_, '_> {
    /// Runs waiting studies until none is left or the run is stopped.
    fn work(&self) {
        // The lock ends before the study begins.
        let next = || locked(&self.waiting).pop_front();
        while let Some(task) = next() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let ordinal = (self.begun.fetch_add(1, Ordering::Relaxed) + 1, self.all);
            let progress = self.board.begin(ordinal, task.study.name, task.budget());
            if let Some(unwritten) = self.run_one(task, &*progress) {
                locked(&self.finished).add(task, unwritten);
            }
        }
    }

    /// Runs one study in a process that ends with this thread at the latest. `None` if it was stopped before any
    /// measurement.
    fn run_one(&self, task: &Task<'_>, progress: &dyn Progress) -> Option<Vec<Unwritten>> {
        let failed = |error: String| {
            progress.end(&format!("failed: {error}"));
            let ids = task.figures.iter().map(|figure| figure.id.to_owned());
            Some(ids.map(|id| (id, error.clone())).collect())
        };
        let mut child = match command(task, self.program, self.options).spawn() {
            Ok(child) => child,
            Err(error) => return failed(format!("{}: {error}", self.program.display())),
        };
        let output = child.stdout.take().expect("the output is piped");
        let (over, ended) = thread::scope(|scope| {
            let reader = scope.spawn(|| follow(output, progress, self.board));
            let ended = wait(&mut child, self.stop);
            (reader.join().ok().flatten(), ended)
        });
        match (over, ended) {
            (Some(unwritten), _) => Some(unwritten),
            (None, Ok(_)) if self.stop.load(Ordering::Relaxed) => {
                progress.end("stopped before anything was measured");
                None
            }
            (None, Ok(status)) => failed(format!("its process ended early ({status})")),
            (None, Err(error)) => failed(error.to_string()),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn command(task: &Task<'_>, program: &Path, options: &Options) -> Command {
    let mut command = Command::new(program);
    command
        .args(["reproduce", "--part"])
        .args(task.figures.iter().map(|figure| figure.id))
        .args(["--seed", &options.seed.to_string()])
        .args(options.full.then_some("--full"))
        .arg("--out")
        .arg(&options.out)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // A Ctrl-C reaches the process once, through this one.
        .process_group(0);
    command
}

/// Forwards the reports of the process until it ends. `None` if the last line is missing.
fn follow(
    output: ChildStdout,
    progress: &dyn Progress,
    board: &dyn Board,
) -> Option<Vec<Unwritten>> {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
        match message {
            Message::Step {
                done,
                total,
                message,
            } => progress.step(done, total, &message),
            Message::Say(message) => board.say(&message),
            Message::End(message) => progress.end(&message),
            Message::Over(unwritten) => return Some(unwritten),
        }
    }
    None
}

/// Waits for the process. Interrupts it once when the run is stopped.
fn wait(child: &mut Child, stop: &AtomicBool) -> io::Result<std::process::ExitStatus> {
    let mut interrupted = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !interrupted {
            interrupted = true;
            kill_process(Pid::from_child(child), Signal::INT)?;
        }
        thread::sleep(LOOK);
    }
}

/// Standard output, read by the process that displays progress.
pub(crate) struct ParentProcess;

impl ParentProcess {
    /// Ends the report.
    pub(crate) fn over(&self, unwritten: Vec<Unwritten>) {
        self.tell(&Message::Over(unwritten));
    }

    fn tell(&self, message: &Message) {
        let mut out = io::stdout().lock();
        // A closed reader has ended this process already.
        let _ = serde_json::to_writer(&mut out, message);
        let _ = writeln!(out).and_then(|()| out.flush());
    }
}

impl Board for ParentProcess {
    fn begin(&self, _: (usize, usize), _: &str, _: Span) -> Box<dyn Progress> {
        Box::new(Self)
    }

    fn say(&self, message: &str) {
        self.tell(&Message::Say(message.to_owned()));
    }
}

impl Progress for ParentProcess {
    fn step(&self, done: u64, total: u64, message: &str) {
        let message = message.to_owned();
        self.tell(&Message::Step {
            done,
            total,
            message,
        });
    }

    fn end(&self, message: &str) {
        self.tell(&Message::End(message.to_owned()));
    }
}
