//! Reproduction: studies run and write records, then the folder is drawn.
//!
//! The two halves communicate through the disk only: the folder is drawn as by a later [`draw`](crate::draw). A failing
//! study affects no other, and measurements before Ctrl-C are kept.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::Size;

use crate::collection::Collection;
use crate::drawing::{draw_figures, write_report};
use crate::figure::{Figure, Needs};
use crate::measuring::{FinishedStudies, Task, Unwritten};
use crate::options::Options;
use crate::outcome::{Drawn, MIN_FREE, Reproduction, RunError};
use crate::progress::Board;
use crate::side_by_side;

/// Runs each study of `selection` once, writes the records and draws the folder.
///
/// The report includes earlier results of the other figures of `collection`. `stop` may be set at any time from any
/// thread.
pub fn reproduce<'f>(
    collection: &Collection<'f>,
    selection: &[&'f Figure],
    options: &Options,
    stop: &AtomicBool,
    board: &dyn Board,
) -> Result<Reproduction<'f>, RunError> {
    prepare(&options.out)?;
    let FinishedStudies { ran, unwritten } = measure(selection, options, stop, board);
    let mut drawn = draw_figures(collection, &options.out);
    note_unwritten(&mut drawn, selection, &unwritten);
    let report = write_report(collection, &drawn, &options.out)?;
    drawn.retain(|drawn| ran.contains(&drawn.figure.id));
    Ok(Reproduction {
        figures: drawn,
        stopped: stop.load(Ordering::Relaxed),
        report,
    })
}

/// Runs the studies of `selection` for another process, which displays progress and draws.
pub fn reproduce_part(
    selection: &[&Figure],
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    prepare(&options.out)?;
    let finished = measure(selection, options, stop, &side_by_side::ParentProcess);
    side_by_side::ParentProcess.over(finished.unwritten);
    Ok(())
}

/// Runs studies that mostly wait side by side, then the others one after another.
fn measure(
    selection: &[&Figure],
    options: &Options,
    stop: &AtomicBool,
    board: &dyn Board,
) -> FinishedStudies {
    let tasks = Task::from_figures(selection);
    let all = tasks.len();
    let waits = |task: &Task<'_>| options.program.is_some() && task.study.needs == Needs::Time;
    let (waiting, alone): (Vec<_>, Vec<_>) = tasks.into_iter().partition(waits);
    let mut finished = match &options.program {
        Some(program) => side_by_side::run(&waiting, all, program, options, stop, board),
        None => FinishedStudies::default(),
    };
    // Records that other machines have sent are kept after Ctrl-C, too.
    let runs = |task: &Task<'_>| task.is_from_elsewhere(options) || !stop.load(Ordering::Relaxed);
    let alone = (waiting.len() + 1..).zip(&alone);
    for (number, task) in alone.filter(|(_, task)| runs(task)) {
        let progress = board.begin((number, all), task.study.name, task.budget());
        finished.add(task, task.run(options, stop, &*progress, board));
    }
    finished
}

/// Marks figures as failed if their results could not be written, regardless of earlier results.
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

/// Creates the folder. Checks that it is writable and has enough free space.
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
    if free < MIN_FREE {
        return Err(RunError::Full {
            dir: dir.to_owned(),
            free,
        });
    }
    Ok(())
}
