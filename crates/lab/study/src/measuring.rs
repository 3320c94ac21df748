//! One study: its run, and its records in the folders of its figures.

use std::any::Any;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use posthaste_units::Span;

use crate::figure::{Conditions, Failure, Figure, Study};
use crate::folder;
use crate::manifest::{Machine, Manifest, StudyEnd};
use crate::options::Options;
use crate::progress::{Board, Progress};
use crate::records::Records;

/// A study and the selected figures that need it.
pub(crate) struct Task<'f> {
    pub(crate) study: &'static Study,
    pub(crate) figures: Vec<&'f Figure>,
}

/// A figure without written results, and the error.
pub(crate) type Unwritten = (String, String);

/// Studies that have run.
#[derive(Default)]
pub(crate) struct FinishedStudies {
    /// Ids of their figures.
    pub(crate) ran: Vec<&'static str>,
    pub(crate) unwritten: Vec<Unwritten>,
}

impl FinishedStudies {
    /// Adds a finished study and those of its figures that were not written.
    pub(crate) fn add(&mut self, task: &Task<'_>, unwritten: Vec<Unwritten>) {
        let ids = task.figures.iter().map(|figure| figure.id);
        self.ran.extend(ids);
        self.unwritten.extend(unwritten);
    }
}

impl<'f> Task<'f> {
    /// Returns the studies of `selection`, in the order of their first figures.
    pub(crate) fn from_figures(selection: &[&'f Figure]) -> Vec<Self> {
        let mut tasks: Vec<Self> = Vec::new();
        for figure in selection {
            let known = tasks
                .iter_mut()
                .find(|task| task.study.name == figure.study.name);
            match known {
                Some(task) => task.figures.push(figure),
                None => tasks.push(Self {
                    study: figure.study,
                    figures: vec![figure],
                }),
            }
        }
        tasks
    }

    /// Time budget of a quick run.
    pub(crate) fn budget(&self) -> Span {
        let budgets = self.figures.iter().map(|figure| figure.budget);
        budgets.max().unwrap_or(Span::ZERO)
    }

    /// True if another machine has run the study.
    pub(crate) fn is_from_elsewhere(&self, options: &Options) -> bool {
        options.simulated.contains_key(self.study.name)
    }

    /// Runs the study in this process, unless another machine has, and writes its records. A study that is stopped or
    /// fails keeps its records so far.
    pub(crate) fn run(
        &self,
        options: &Options,
        stop: &AtomicBool,
        progress: &dyn Progress,
        board: &dyn Board,
    ) -> Vec<Unwritten> {
        let (measured, took) = match options.simulated.get(self.study.name) {
            Some(simulated) => (Ok(simulated.clone()), None),
            None => self.run_here(options, stop, progress),
        };
        let stopped = took.is_some() && stop.load(Ordering::Relaxed);
        progress.end(&ending(&measured, stopped, took));
        let mut unwritten = Vec::new();
        for figure in &self.figures {
            let manifest = Manifest {
                duration_s: took.map(Span::as_secs_f64),
                ..manifest(figure, options, &measured, stopped)
            };
            let dir = options.out.join(figure.id);
            match folder::write(&dir, &manifest, measured.as_ref().ok()) {
                Ok(None) => {}
                Ok(Some(kept)) => {
                    let kept = kept.display();
                    board.say(&format!("{}: the run before is in {kept}", figure.id));
                }
                Err(error) => {
                    board.say(&format!("{}: {error}", figure.id));
                    unwritten.push((figure.id.to_owned(), error.to_string()));
                }
            }
        }
        unwritten
    }

    /// Runs the study in this process. Returns the time that it took, too.
    fn run_here(
        &self,
        options: &Options,
        stop: &AtomicBool,
        progress: &dyn Progress,
    ) -> (Result<Records, Failure>, Option<Span>) {
        let begun = Instant::now();
        let conditions = Conditions {
            full: options.full,
            seed: options.seed.child(self.study.name),
            threads: all_processors(),
            lab: &options.lab,
            stop,
            progress,
            assumed_capacity: None,
        };
        let measured = run_study(self.study, &conditions);
        (measured, Some(Span::from(begun.elapsed())))
    }
}

/// Number of processors that this process may use.
fn all_processors() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Runs one study. A panic becomes an error of this study alone.
pub(crate) fn run_study(study: &Study, conditions: &Conditions<'_>) -> Result<Records, Failure> {
    unless_it_panics(|| (study.run)(conditions)).unwrap_or_else(|panic| Err(panic.into()))
}

/// Returns the result of `work`. A panic becomes an error with the panic's message.
pub(crate) fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| format!("panicked: {}", panic_message(&*panic)))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned());
    message
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}

/// Words about the end of a study. `took` is `None` if another machine ran it.
fn ending(measured: &Result<Records, Failure>, stopped: bool, took: Option<Span>) -> String {
    let Some(took) = took else {
        return "simulated on another machine".to_owned();
    };
    match (ended(measured, stopped), measured) {
        (StudyEnd::Complete, _) => format!("done in {took}"),
        (StudyEnd::Stopped, _) => format!("stopped after {took}; what was measured is kept"),
        (StudyEnd::Failed(error), Ok(_)) => {
            format!("failed after {took}: {error}; what was measured is kept")
        }
        (StudyEnd::Failed(error), Err(_)) => format!("failed after {took}: {error}"),
    }
}

fn ended(measured: &Result<Records, Failure>, stopped: bool) -> StudyEnd {
    match measured.as_ref().map(Records::error) {
        Ok(Some(error)) => StudyEnd::Failed(error.to_owned()),
        Ok(None) if stopped => StudyEnd::Stopped,
        Ok(None) => StudyEnd::Complete,
        Err(error) => StudyEnd::Failed(error.to_string()),
    }
}

fn manifest(
    figure: &Figure,
    options: &Options,
    measured: &Result<Records, Failure>,
    stopped: bool,
) -> Manifest {
    let none = Records::new();
    let records = measured.as_ref().unwrap_or(&none);
    Manifest {
        figure: figure.id.to_owned(),
        study: figure.study.name.to_owned(),
        ended: ended(measured, stopped),
        commit: options.commit.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: options.seed,
        full: options.full,
        duration_s: None,
        machine: Machine::here(),
        parameters: records.parameters().clone(),
        numbers: records.finite_numbers(),
        tables: records.columns(),
    }
}
