//! Reproducing and drawing: from studies to records, from records to pictures and a report.
//!
//! The two halves meet on disk only: `reproduce` runs studies and writes their records, then
//! draws the folder as [`draw`] would do a year later. A study that fails takes nothing else
//! with it, and what was measured before Ctrl-C stays.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use posthaste_units::{Seed, Size, Span};

use crate::check::Check;
use crate::figure::{Conditions, Failure, Figure, Plot, Study};
use crate::folder;
use crate::lab::Lab;
use crate::manifest::{Ended, Machine, Manifest};
use crate::progress::Progress;
use crate::records::Records;
use crate::report;

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

/// What became of one figure in a folder of results.
pub struct Drawn<'f> {
    /// The figure.
    pub figure: &'f Figure,
    /// What was run; `None` where the manifest cannot be read.
    pub manifest: Option<Manifest>,
    /// Its pictures; none where it failed.
    pub plots: Vec<Plot>,
    /// Its checks; none where it failed.
    pub checks: Vec<Check>,
    /// Why there is no picture.
    pub error: Option<String>,
}

impl<'f> Drawn<'f> {
    fn nothing(figure: &'f Figure) -> Self {
        Self {
            figure,
            manifest: None,
            plots: Vec::new(),
            checks: Vec::new(),
            error: None,
        }
    }

    /// Whether the run was told to stop before it was complete.
    pub fn stopped(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(|manifest| manifest.ended == Ended::Stopped)
    }
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
    progress: &dyn Progress,
) -> Result<Outcome<'f>, RunError> {
    prepare(&options.out)?;
    let machine = Machine::here();
    let studies = studies(selection);
    let mut unwritten: BTreeMap<&str, String> = BTreeMap::new();
    let mut ran: Vec<&str> = Vec::new();
    for (index, (study, users)) in studies.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let budget = users
            .iter()
            .map(|figure| figure.budget)
            .max()
            .unwrap_or(Span::ZERO);
        progress.begin(index + 1, studies.len(), study.name, budget);
        let begun = Instant::now();
        let conditions = Conditions {
            full: options.full,
            seed: options.seed.child(study.name),
            lab: &options.lab,
            stop,
            progress,
            assumed_capacity: None,
        };
        let measured = run_study(study, &conditions);
        let stopped = stop.load(Ordering::Relaxed);
        let took = Span::from(begun.elapsed());
        progress.end(&ending(&measured, stopped, took));
        for figure in users {
            let manifest = Manifest {
                commit: options.commit.clone(),
                machine: machine.clone(),
                duration_s: took.as_secs_f64(),
                ..manifest(figure, options, &measured, stopped)
            };
            let dir = options.out.join(figure.id);
            match folder::write(&dir, &manifest, measured.as_ref().ok()) {
                Ok(None) => {}
                Ok(Some(kept)) => {
                    let kept = kept.display();
                    progress.say(&format!("{}: the run before is in {kept}", figure.id));
                }
                Err(error) => {
                    progress.say(&format!("{}: {error}", figure.id));
                    unwritten.insert(figure.id, error.to_string());
                }
            }
            ran.push(figure.id);
        }
    }
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

/// Figures whose results could not be written have failed, whatever an earlier run has left.
fn note_unwritten<'f>(
    drawn: &mut Vec<Drawn<'f>>,
    selection: &[&'f Figure],
    unwritten: &BTreeMap<&str, String>,
) {
    drawn.retain(|drawn| !unwritten.contains_key(drawn.figure.id));
    for figure in selection {
        if let Some(error) = unwritten.get(figure.id) {
            drawn.push(Drawn {
                error: Some(error.clone()),
                ..Drawn::nothing(figure)
            });
        }
    }
}

/// Draws the results in `dir` again, without running anything: pictures, checks, the report.
pub fn draw<'f>(figures: &[&'f Figure], dir: &Path) -> Result<Outcome<'f>, RunError> {
    let drawn = draw_figures(figures, dir);
    if drawn.is_empty() {
        return Err(RunError::Empty {
            dir: dir.to_owned(),
        });
    }
    let report = write_report(figures, &drawn, dir)?;
    Ok(Outcome {
        stopped: drawn.iter().any(Drawn::stopped),
        figures: drawn,
        report,
    })
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

/// The studies of `selection` in the order of their first figure, each with its figures.
fn studies<'f>(selection: &[&'f Figure]) -> Vec<(&'static Study, Vec<&'f Figure>)> {
    let mut studies: Vec<(&'static Study, Vec<&'f Figure>)> = Vec::new();
    for figure in selection {
        let known = studies
            .iter_mut()
            .find(|(study, _)| study.name == figure.study.name);
        match known {
            Some((_, users)) => users.push(figure),
            None => studies.push((figure.study, vec![figure])),
        }
    }
    studies
}

/// Runs one study; a panic in it is an error of this study alone.
fn run_study(study: &Study, conditions: &Conditions<'_>) -> Result<Records, Failure> {
    unless_it_panics(|| (study.run)(conditions)).unwrap_or_else(|panic| Err(panic.into()))
}

/// What comes of `work`; a panic is an error with its words.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| format!("panicked: {}", panic_words(&*panic)))
}

fn panic_words(panic: &(dyn Any + Send)) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned());
    words
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}

fn ending(measured: &Result<Records, Failure>, stopped: bool, took: Span) -> String {
    match (ended(measured, stopped), measured) {
        (Ended::Complete, _) => format!("done in {took}"),
        (Ended::Stopped, _) => format!("stopped after {took}; what was measured is kept"),
        (Ended::Failed(error), Ok(_)) => {
            format!("failed after {took}: {error}; what was measured is kept")
        }
        (Ended::Failed(error), Err(_)) => format!("failed after {took}: {error}"),
    }
}

fn ended(measured: &Result<Records, Failure>, stopped: bool) -> Ended {
    match measured.as_ref().map(Records::trouble) {
        Ok(Some(error)) => Ended::Failed(error.to_owned()),
        Ok(None) if stopped => Ended::Stopped,
        Ok(None) => Ended::Complete,
        Err(error) => Ended::Failed(error.to_string()),
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
    let numbers = records.numbers().iter();
    Manifest {
        figure: figure.id.to_owned(),
        study: figure.study.name.to_owned(),
        ended: ended(measured, stopped),
        commit: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: options.seed,
        full: options.full,
        duration_s: 0.0,
        machine: Machine::default(),
        parameters: records.parameters().clone(),
        numbers: numbers
            .map(|(name, number)| (name.clone(), Some(*number).filter(|n| n.is_finite())))
            .collect(),
        tables: records.columns(),
    }
}

/// Everything in `dir` that belongs to one of `figures`, with its pictures written.
fn draw_figures<'f>(figures: &[&'f Figure], dir: &Path) -> Vec<Drawn<'f>> {
    let there = |figure: &&&Figure| dir.join(figure.id).join("manifest.json").exists();
    let drawn = |figure: &&'f Figure| draw_figure(figure, &dir.join(figure.id));
    figures.iter().filter(there).map(drawn).collect()
}

fn draw_figure<'f>(figure: &'f Figure, dir: &Path) -> Drawn<'f> {
    let mut drawn = Drawn::nothing(figure);
    let read = read_results(dir).and_then(|(manifest, records)| {
        drawn.manifest = Some(manifest);
        let Some(records) = records else {
            return Ok(());
        };
        let pictures = || ((figure.plot)(&records), (figure.checks)(&records));
        (drawn.plots, drawn.checks) = unless_it_panics(pictures)?;
        write_plots(dir, &drawn.plots)
            .and_then(|()| write_checks(dir, &drawn.checks))
            .map_err(|error| error.to_string())
    });
    let failed = match drawn.manifest.as_ref().map(|manifest| &manifest.ended) {
        Some(Ended::Failed(error)) => Some(error.clone()),
        _ => None,
    };
    drawn.error = read.err().or(failed);
    drawn
}

/// The manifest, and the records unless the run failed without any.
fn read_results(dir: &Path) -> Result<(Manifest, Option<Records>), String> {
    let path = dir.join("manifest.json");
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest: Manifest = serde_json::from_slice(&json)
        .map_err(|error| format!("{}: {error}; run the figure again", path.display()))?;
    let path = dir.join("records.csv");
    if matches!(manifest.ended, Ended::Failed(_)) && !path.exists() {
        return Ok((manifest, None));
    }
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let numbers = manifest.numbers.iter();
    let numbers = numbers.map(|(name, number)| (name.clone(), number.unwrap_or(f64::NAN)));
    let parameters = manifest.parameters.clone();
    let records = Records::read_csv(file, &manifest.tables, numbers.collect(), parameters)
        .map_err(|error| error.to_string())?;
    Ok((manifest, Some(records)))
}

/// Writes `checks.json`: for programs what the report is for people.
fn write_checks(dir: &Path, checks: &[Check]) -> io::Result<()> {
    let text = serde_json::to_string_pretty(checks).map_err(io::Error::other)?;
    fs::write(dir.join("checks.json"), text)
}

/// The file of a figure's picture: `figure.svg`, and `figure-2.svg` and so on where there are more.
pub(crate) fn plot_name(index: usize) -> String {
    match index {
        0 => "figure.svg".to_owned(),
        more => format!("figure-{}.svg", more + 1),
    }
}

fn write_plots(dir: &Path, plots: &[Plot]) -> io::Result<()> {
    for (index, plot) in plots.iter().enumerate() {
        let svg = match plot {
            Plot::Chart(chart) => chart.svg(),
            Plot::Bars(bars) => bars.svg(),
        };
        fs::write(dir.join(plot_name(index)), svg)?;
    }
    Ok(())
}

fn write_report(figures: &[&Figure], drawn: &[Drawn<'_>], dir: &Path) -> Result<PathBuf, RunError> {
    let path = dir.join("index.html");
    let unwritable = |error| RunError::Unwritable {
        dir: dir.to_owned(),
        error,
    };
    fs::write(&path, report::page(figures, drawn).html()).map_err(unwritable)?;
    Ok(path)
}
