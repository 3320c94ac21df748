//! Draws pictures, checks and the report from the records on disk, at any time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use posthaste_draw::Format;

use crate::check::Check;
use crate::collection::Collection;
use crate::figure::{Figure, Plot};
use crate::manifest::{Manifest, StudyEnd};
use crate::measuring::unless_it_panics;
use crate::outcome::{Drawn, Reproduction, RunError, narrow_plot_name, plot_name};
use crate::records::Records;
use crate::report;

/// Draws the results in `dir` again without running a study: pictures, checks and the report.
pub fn draw<'f>(collection: &Collection<'f>, dir: &Path) -> Result<Reproduction<'f>, RunError> {
    let drawn = draw_figures(collection, dir);
    if drawn.is_empty() {
        return Err(RunError::Empty {
            dir: dir.to_owned(),
        });
    }
    let report = write_report(collection, &drawn, dir)?;
    Ok(Reproduction {
        stopped: drawn.iter().any(Drawn::stopped),
        figures: drawn,
        report,
    })
}

/// Draws all figures that have a manifest in `dir`, and writes their pictures.
pub(crate) fn draw_figures<'f>(collection: &Collection<'f>, dir: &Path) -> Vec<Drawn<'f>> {
    let there = |figure: &&&Figure| dir.join(figure.id).join("manifest.json").exists();
    let drawn = |figure: &&'f Figure| draw_figure(collection, figure, &dir.join(figure.id));
    collection.figures.iter().filter(there).map(drawn).collect()
}

fn draw_figure<'f>(collection: &Collection<'f>, figure: &'f Figure, dir: &Path) -> Drawn<'f> {
    let question = collection
        .questions
        .iter()
        .find(|question| question.figure == figure.id);
    let mut drawn = Drawn::nothing(figure);
    let read = read_results(dir).and_then(|(manifest, records)| {
        let complete = manifest.ended == StudyEnd::Complete;
        drawn.manifest = Some(manifest);
        let Some(records) = records else {
            return Ok(());
        };
        let pictures = || {
            let answer = question
                .filter(|_| complete)
                .and_then(|question| question.sentence(&records));
            ((figure.plot)(&records), (figure.checks)(&records), answer)
        };
        (drawn.plots, drawn.checks, drawn.answer) = unless_it_panics(pictures)?;
        write_plots(dir, &drawn.plots)
            .and_then(|()| write_checks(dir, &drawn.checks))
            .map_err(|error| error.to_string())
    });
    let failed = match drawn.manifest.as_ref().map(|manifest| &manifest.ended) {
        Some(StudyEnd::Failed(error)) => Some(error.clone()),
        _ => None,
    };
    drawn.error = read.err().or(failed);
    drawn
}

/// Reads the manifest and the records. No records if the run failed before it wrote any.
fn read_results(dir: &Path) -> Result<(Manifest, Option<Records>), String> {
    let path = dir.join("manifest.json");
    let json = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest: Manifest = serde_json::from_slice(&json)
        .map_err(|error| format!("{}: {error}; run the figure again", path.display()))?;
    let path = dir.join("records.csv");
    if matches!(manifest.ended, StudyEnd::Failed(_)) && !path.exists() {
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

/// Writes `checks.json`, the machine-readable form of the report's checks.
fn write_checks(dir: &Path, checks: &[Check]) -> io::Result<()> {
    let text = serde_json::to_string_pretty(checks).map_err(io::Error::other)?;
    fs::write(dir.join("checks.json"), text)
}

fn write_plots(dir: &Path, plots: &[Plot]) -> io::Result<()> {
    for (index, plot) in plots.iter().enumerate() {
        fs::write(dir.join(plot_name(index)), plot.svg_in(Format::Wide))?;
        fs::write(
            dir.join(narrow_plot_name(index)),
            plot.svg_in(Format::Narrow),
        )?;
    }
    Ok(())
}

pub(crate) fn write_report(
    collection: &Collection<'_>,
    drawn: &[Drawn<'_>],
    dir: &Path,
) -> Result<PathBuf, RunError> {
    let path = dir.join("index.html");
    let unwritable = |error| RunError::Unwritable {
        dir: dir.to_owned(),
        error,
    };
    fs::write(&path, report::page(collection, drawn).html()).map_err(unwritable)?;
    Ok(path)
}
