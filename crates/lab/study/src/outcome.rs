//! The outcome of a run: the figures as drawn, or the error that prevented it.

use std::io;
use std::path::PathBuf;

use posthaste_units::Size;

use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::manifest::{Manifest, StudyEnd};

/// Minimum free disk space for a run.
pub(crate) const MIN_FREE: Size = Size::from_bytes(16_000_000);

/// Error before anything was run or drawn.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder for the results cannot be used.
    #[error("cannot write results to {}: {error}; choose another folder with --out", dir.display())]
    Unwritable {
        /// The folder.
        dir: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The disk is nearly full.
    #[error("only {free} free in {}; free at least {MIN_FREE}, or choose another folder with --out", dir.display())]
    Full {
        /// The folder.
        dir: PathBuf,
        /// Free space.
        free: Size,
    },
    /// No results to draw.
    #[error("{} holds no results; `posthaste reproduce --out {}` makes some", dir.display(), dir.display())]
    Empty {
        /// The folder.
        dir: PathBuf,
    },
}

/// A figure in a folder of results.
pub struct Drawn<'f> {
    /// The figure.
    pub figure: &'f Figure,
    /// The manifest of its run. `None` if it cannot be read.
    pub manifest: Option<Manifest>,
    /// Its pictures. Empty if it failed.
    pub plots: Vec<Plot>,
    /// Its checks. Empty if it failed.
    pub checks: Vec<Check>,
    /// Its answer to one of the papers' questions.
    pub answer: Option<String>,
    /// Reason for the missing pictures.
    pub error: Option<String>,
}

impl<'f> Drawn<'f> {
    pub(crate) fn nothing(figure: &'f Figure) -> Self {
        Self {
            figure,
            manifest: None,
            plots: Vec::new(),
            checks: Vec::new(),
            answer: None,
            error: None,
        }
    }

    /// True if its run was stopped before it was complete.
    pub fn stopped(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(|manifest| manifest.ended == StudyEnd::Stopped)
    }
}

/// The figures and the report of a run.
pub struct Reproduction<'f> {
    /// The figures of this run, in their order.
    pub figures: Vec<Drawn<'f>>,
    /// True if it was stopped early.
    pub stopped: bool,
    /// The report.
    pub report: PathBuf,
}

impl Reproduction<'_> {
    /// Returns the exit code: 0 for success, 1 if an instrument check failed, 3 if a study failed or the run was
    /// stopped.
    pub fn exit_code(&self) -> u8 {
        let checks = || self.figures.iter().flat_map(|drawn| &drawn.checks);
        if self.stopped || self.figures.iter().any(|drawn| drawn.error.is_some()) {
            3
        } else {
            u8::from(checks().any(Check::fails_the_run))
        }
    }
}

/// File name of a picture: `figure.svg`, then `figure-2.svg` and so on.
pub(crate) fn plot_name(index: usize) -> String {
    match index {
        0 => "figure.svg".to_owned(),
        more => format!("figure-{}.svg", more + 1),
    }
}

/// File name of the same picture for phones.
pub(crate) fn narrow_plot_name(index: usize) -> String {
    plot_name(index).replace(".svg", "-narrow.svg")
}
