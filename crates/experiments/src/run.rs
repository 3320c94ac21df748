//! Reproducing: studies run and write records, then the folder is drawn.
//!
//! The two halves meet on disk only: the folder is drawn as [`draw`](crate::draw) would do a year later. A study that fails takes nothing else
//! with it, and what was measured before Ctrl-C stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::{Seed, Size};

use crate::check::Check;
use crate::drawing::{Drawn, draw_figures, write_report};
use crate::figure::{Figure, Needs};
use crate::lab::Lab;
use crate::measuring::{Task, Unwritten};
use crate::progress::Board;
use crate::side_by_side;

/// Free space below which nothing is run.
const ROOM: Size = Size::from_bytes(16_000_000);

/// How to reproduce.
#[derive(Clone, Debug)]
pub struct Options {
    /// As long as the papers did, instead of within the quick budgets.
    pub full: bool,
    /// The seed of everything random.
    pub seed: Seed,
    /// The commit that the program was built from, where it is known.
    pub commit: Option<String>,
    /// The folder for the results.
    pub out: PathBuf,
    /// What [`lab::enter`](crate::lab::enter) has reached.
    pub lab: Lab,
    /// The program that runs studies side by side as `PROGRAM reproduce --part`; without it all run one after the other.
    pub program: Option<PathBuf>,
}

/// Why nothing was run or drawn.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder for the results cannot be used.
    #[error("cannot write results to {}: {error}; choose another folder with --out", dir.display())]
    Unwritable {
        /// The folder.
        dir: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The disk is nearly full.
    #[error("only {free} free in {}; free at least {ROOM}, or choose another folder with --out", dir.display())]
    Full {
        /// The folder.
        dir: PathBuf,
        /// What is left.
        free: Size,
    },
    /// There is nothing to draw.
    #[error("{} holds no results; `posthaste reproduce --out {}` makes some", dir.display(), dir.display())]
    Empty {
        /// The folder.
        dir: PathBuf,
    },
}

/// What a run has led to.
pub struct Outcome<'f> {
    /// The figures of this run, in their order.
    pub figures: Vec<Drawn<'f>>,
    /// Whether it was told to stop.
    pub stopped: bool,
    /// The report.
    pub report: PathBuf,
}

impl Outcome<'_> {
    /// 0 when all is well, 1 when an instrument check failed, 3 when a study failed or the run
    /// was stopped.
    pub fn exit_code(&self) -> u8 {
        let checks = || self.figures.iter().flat_map(|drawn| &drawn.checks);
        if self.stopped || self.figures.iter().any(|drawn| drawn.error.is_some()) {
            3
        } else {
            u8::from(checks().any(Check::fails_the_run))
        }
    }
}

/// Runs the studies of `selection`, each once, writes what they measured and draws the folder.
///
/// `figures` are all that are built: the report shows earlier results of the others, too.
/// `stop` may be set at any time from anywhere.
pub fn reproduce<'f>(
    figures: &[&'f Figure],
    selection: &[&'f Figure],
    options: &Options,
    stop: &AtomicBool,
    board: &dyn Board,
) -> Result<Outcome<'f>, RunError> {
    prepare(&options.out)?;
    let Measured { ran, unwritten } = measure(selection, options, stop, board);
    let mut drawn = draw_figures(figures, &options.out);
    note_unwritten(&mut drawn, selection, &unwritten);
    let report = write_report(figures, &drawn, &options.out)?;
    drawn.retain(|drawn| ran.contains(&drawn.figure.id));
    Ok(Outcome {
        figures: drawn,
        stopped: stop.load(Ordering::Relaxed),
        report,
    })
}

/// Runs the studies of `selection` as a part of another process's run, which shows progress and draws.
pub fn reproduce_part(
    selection: &[&Figure],
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    prepare(&options.out)?;
    let measured = measure(selection, options, stop, &side_by_side::Pipe);
    side_by_side::Pipe.over(measured.unwritten);
    Ok(())
}

/// Studies that have run.
struct Measured {
    /// Ids of their figures.
    ran: Vec<&'static str>,
    unwritten: Vec<Unwritten>,
}

/// Runs studies that wait on emulated links side by side, and then the others one after the other.
fn measure(
    selection: &[&Figure],
    options: &Options,
    stop: &AtomicBool,
    board: &dyn Board,
) -> Measured {
    let tasks = Task::of(selection);
    let all = tasks.len();
    let waits = |task: &Task<'_>| options.program.is_some() && task.study.needs == Needs::Links;
    let (links, alone): (Vec<_>, Vec<_>) = tasks.into_iter().partition(waits);
    let mut measured = Measured {
        ran: Vec::new(),
        unwritten: Vec::new(),
    };
    if let Some(program) = &options.program {
        let ids = links.iter().flat_map(|task| &task.figures);
        measured.ran.extend(ids.map(|figure| figure.id));
        measured.unwritten = side_by_side::run(&links, all, program, options, stop, board);
    }
    for (index, task) in alone.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let place = (links.len() + index + 1, all);
        let progress = board.begin(place, task.study.name, task.budget());
        let unwritten = task.run(options, stop, &*progress, board);
        measured.unwritten.extend(unwritten);
        let ids = task.figures.iter().map(|figure| figure.id);
        measured.ran.extend(ids);
    }
    measured
}

/// Figures whose results could not be written have failed, whatever an earlier run has left.
fn note_unwritten<'f>(
    drawn: &mut Vec<Drawn<'f>>,
    selection: &[&'f Figure],
    unwritten: &[Unwritten],
) {
    let error = |figure: &Figure| unwritten.iter().find(|(id, _)| id == figure.id);
    drawn.retain(|drawn| error(drawn.figure).is_none());
    for figure in selection {
        if let Some((_, error)) = error(figure) {
            drawn.push(Drawn {
                error: Some(error.clone()),
                ..Drawn::nothing(figure)
            });
        }
    }
}

/// Makes the folder and sees that it can be written to and has room.
fn prepare(dir: &Path) -> Result<(), RunError> {
    let unwritable = |error| RunError::Unwritable {
        dir: dir.to_owned(),
        error,
    };
    fs::create_dir_all(dir).map_err(unwritable)?;
    let probe = dir.join(".posthaste");
    fs::write(&probe, "can be removed\n").map_err(unwritable)?;
    fs::remove_file(&probe).map_err(unwritable)?;
    let space = rustix::fs::statvfs(dir).map_err(|error| unwritable(error.into()))?;
    let free = Size::from_bytes(space.f_bavail.saturating_mul(space.f_frsize));
    if free < ROOM {
        return Err(RunError::Full {
            dir: dir.to_owned(),
            free,
        });
    }
    Ok(())
}
