//! Figures, studies, and the selection of figures by name.
//!
//! A figure is data about one picture of a paper: one `const` in one file, one line in [`FIGURES`](crate::FIGURES).
//! Several figures may share a [`Study`], which runs once. Nothing runs or is drawn in this module.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

pub use posthaste_draw::Plot;
use posthaste_units::{Seed, Span};

use crate::check::Check;
use crate::lab::Lab;
use crate::papers::{self, ALIASES, Planned};
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

impl Figure {
    /// True if no paper contains the figure. Its claim is then a goal of this project.
    pub fn goes_beyond(&self) -> bool {
        !papers::PLANNED.iter().any(|planned| planned.id == self.id)
    }
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
    /// Emulated links. The study mostly waits and may run next to others of this kind.
    Links,
    /// The processor. The study runs alone.
    Processor,
}

/// Error of a study that produced no records.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Conditions of a study's run.
pub struct Conditions<'a> {
    /// True for a run as long as the paper's.
    pub full: bool,
    /// The study's own seed.
    pub seed: Seed,
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

#[cfg(test)]
impl<'a> Conditions<'a> {
    /// Conditions of a test: a short run with the first seed and no progress output.
    pub(crate) fn of_a_test(lab: &'a Lab, stop: &'a AtomicBool) -> Self {
        Self {
            full: false,
            seed: Seed(1),
            lab,
            stop,
            progress: &crate::progress::Silent,
            assumed_capacity: None,
        }
    }

    /// The same conditions, with rates as multiples of `capacity`.
    pub(crate) fn assuming(self, capacity: f64) -> Self {
        Self {
            assumed_capacity: Some(capacity),
            ..self
        }
    }
}

impl Conditions<'_> {
    /// Returns the base of rates: the assumed capacity, otherwise `measured`.
    pub(crate) fn capacity(&self, measured: f64) -> f64 {
        self.assumed_capacity.unwrap_or(measured)
    }

    /// True if the study should finish now.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A selection that names no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No figure has this name.
    #[error("no figure {word:?}{}; `posthaste reproduce --list` shows all", nearest.as_ref().map_or_else(String::new, |near| format!(", did you mean {near:?}?")))]
    Unknown {
        /// The requested name.
        word: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// A figure of the papers that this release does not contain.
    #[error("{id} ({title}) is not built yet: it comes {comes}")]
    NotBuilt {
        /// Its id.
        id: &'static str,
        /// Subject of the figure.
        title: &'static str,
        /// The part of the project that will provide it.
        comes: &'static str,
    },
}

/// An entry of the list of figures.
pub enum Listed<'a> {
    /// A figure that can be reproduced.
    Built(&'a Figure),
    /// A figure that cannot be reproduced yet.
    Planned(&'static Planned),
}

/// Returns the figures that `words` name: ids, aliases, or prefixes of ids ("overload"). Without words, all figures or
/// those of the core studies. Each figure appears once, in the order of `figures`.
pub fn select<'f>(
    figures: &[&'f Figure],
    words: &[String],
    all: bool,
) -> Result<Vec<&'f Figure>, SelectError> {
    let unnamed = |figure: &&Figure| words.is_empty() && (all || figure.study.core);
    let mut chosen: Vec<bool> = figures.iter().map(unnamed).collect();
    for word in words {
        let id = papers::id_of(word);
        let exact = figures.iter().position(|figure| figure.id == id);
        let begins = |figure: &Figure| {
            let mut names = ALIASES.iter().filter(|(_, of)| *of == figure.id);
            let by_alias = names.any(|(alias, _)| alias.starts_with(word.as_str()));
            !word.is_empty() && (figure.id.starts_with(id) || by_alias)
        };
        let mut found = false;
        for (index, figure) in figures.iter().enumerate() {
            let named = exact.map_or_else(|| begins(figure), |exact| exact == index);
            chosen[index] |= named;
            found |= named;
        }
        if !found {
            return Err(unknown(figures, word, id));
        }
    }
    let chosen = figures.iter().zip(chosen).filter(|(_, chosen)| *chosen);
    Ok(chosen.map(|(figure, _)| *figure).collect())
}

fn unknown(figures: &[&Figure], word: &str, id: &str) -> SelectError {
    let planned = planned(figures);
    let near = || planned.iter().find(|planned| planned.id.starts_with(id));
    if let Some(planned) = planned
        .iter()
        .find(|planned| planned.id == id)
        .or_else(near)
        && !id.is_empty()
    {
        return SelectError::NotBuilt {
            id: planned.id,
            title: planned.title,
            comes: planned.comes,
        };
    }
    let ids = figures.iter().map(|figure| figure.id);
    let planned = planned.iter().map(|planned| planned.id);
    let papers = papers::PAPERS.iter().map(|(prefix, _)| *prefix);
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let distance = |name: &str| strsim::damerau_levenshtein(name, word);
    let nearest = ids
        .chain(planned)
        .chain(papers)
        .chain(aliases)
        .min_by_key(|name| distance(name))
        .filter(|name| distance(name) <= 1 + name.len() / 3)
        .map(str::to_owned);
    SelectError::Unknown {
        word: word.to_owned(),
        nearest,
    }
}

/// Lists every figure of the papers: first `figures`, then the missing ones.
pub fn list<'f>(figures: &[&'f Figure]) -> Vec<Listed<'f>> {
    let mut listed: Vec<Listed<'f>> = figures.iter().copied().map(Listed::Built).collect();
    listed.extend(planned(figures).into_iter().map(Listed::Planned));
    listed
}

/// Figures of the papers that `figures` lacks.
pub(crate) fn planned(figures: &[&Figure]) -> Vec<&'static Planned> {
    let built = |planned: &&Planned| figures.iter().any(|figure| figure.id == planned.id);
    papers::PLANNED
        .iter()
        .filter(|planned| !built(planned))
        .collect()
}
