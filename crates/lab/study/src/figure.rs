//! Figures and studies.
//!
//! A figure is data about one picture of a paper: one `static` in one file, one line in a
//! [`Collection`](crate::Collection). Several figures may share a [`Study`], which runs once. Nothing runs or is drawn in
//! this module.

use std::error::Error;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};

pub use posthaste_draw::Plot;
use posthaste_units::{Seed, Span};

use crate::check::Check;
use crate::lab::Lab;
use crate::progress::Progress;
use crate::records::Records;

/// One figure or table of a paper.
pub struct Figure {
    /// `paper/figure`, as in "overload/fig-08".
    pub id: &'static str,
    /// Subject, in a few words.
    pub title: &'static str,
    /// The paper's statement about the figure.
    pub claim: &'static str,
    /// Short citation of the paper.
    pub paper: &'static str,
    /// Time budget of a quick run. A study gets the largest budget of its figures.
    pub budget: Span,
    /// Source of the records.
    pub study: &'static Study,
    /// The pictures, with our values next to the paper's. The first is the figure itself.
    pub plot: fn(&Records) -> Vec<Plot>,
    /// Checks of the instrument and claims of the paper.
    pub checks: fn(&Records) -> Vec<Check>,
    /// Differences from the paper, with reasons.
    pub differs: &'static str,
}

/// A named run that produces records.
pub struct Study {
    /// Name, unique among studies. Also selects the study's seed.
    pub name: &'static str,
    /// The resource that limits the study. Decides which studies may run at the same time.
    pub needs: Needs,
    /// True for the core selection, which `reproduce` runs if no figure is named.
    pub core: bool,
    /// Runs the study. If stopped early, returns the records so far.
    pub run: fn(&Conditions<'_>) -> Result<Records, Failure>,
}

/// The part of the machine that determines a study's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Time. The study mostly waits, for emulated links or for a service with modelled service times, and may run next
    /// to others of this kind.
    Time,
    /// The processor. The study runs alone.
    Processor,
    /// Nothing: the study simulates in virtual time, and its records follow from its seed and `full`. It runs alone,
    /// because it uses all threads, or on another machine.
    Nothing,
}

/// Error of a study that produced no records.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Conditions of a study's run.
pub struct Conditions<'a> {
    /// True for a run as long as the paper's.
    pub full: bool,
    /// The study's own seed.
    pub seed: Seed,
    /// Number of threads of simulations in virtual time.
    pub threads: NonZero<usize>,
    /// The network that carries the study's traffic.
    pub lab: &'a Lab,
    /// Set when the user interrupts the run. The study then ends soon and keeps its records so far.
    pub stop: &'a AtomicBool,
    /// Receiver of progress reports.
    pub progress: &'a dyn Progress,
    /// Capacity in requests per second, used as the base of rates. Replaces the capacity that a study measures first.
    /// Set by tests, because their runs are too short to measure a busy machine.
    pub assumed_capacity: Option<f64>,
}

impl Conditions<'_> {
    /// Returns the base of rates: the assumed capacity, otherwise `measured`.
    pub fn capacity(&self, measured: f64) -> f64 {
        self.assumed_capacity.unwrap_or(measured)
    }

    /// True if the study should finish now.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
