//! What a figure is, and which figures a person means.
//!
//! A figure is data about one picture of a paper: one `const` in one file, one line in
//! [`FIGURES`](crate::FIGURES). Several may share a [`Study`], which is run once. Nothing runs
//! or is drawn here.

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
    /// What it shows, in a few words.
    pub title: &'static str,
    /// What the paper says it shows.
    pub claim: &'static str,
    /// The paper, cited shortly.
    pub paper: &'static str,
    /// How long a quick run of it may take; a study takes the largest of its figures.
    pub budget: Span,
    /// Where its records come from.
    pub study: &'static Study,
    /// The pictures, ours beside the paper's; the first is the figure itself.
    pub plot: fn(&Records) -> Vec<Plot>,
    /// What must hold, and what the paper claims.
    pub checks: fn(&Records) -> Vec<Check>,
    /// What differs from the paper, and why.
    pub differs: &'static str,
}

impl Figure {
    /// True if no paper has it: its claim is a goal of our own.
    pub fn goes_beyond(&self) -> bool {
        !papers::PLANNED.iter().any(|planned| planned.id == self.id)
    }
}

/// A run that produces records, under a name of its own.
pub struct Study {
    /// Unique among studies; also the name of its seed.
    pub name: &'static str,
    /// Decides what may run next to it.
    pub needs: Needs,
    /// Belongs to the core selection, which `reproduce` runs when no figure is named.
    pub core: bool,
    /// Runs it. Stopped early, it returns what it has measured so far.
    pub run: fn(&Conditions<'_>) -> Result<Records, Failure>,
}

/// The part of the machine on which a study's numbers depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Emulated links, on which it waits most of the time. It may run next to others of this kind.
    Links,
    /// The processor. It runs alone.
    Processor,
}

/// Why a study produced nothing.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What a study is told.
pub struct Conditions<'a> {
    /// Whether to run as long as the paper did.
    pub full: bool,
    /// The study's own seed.
    pub seed: Seed,
    /// Whose network traffic goes through.
    pub lab: &'a Lab,
    /// Set when the person wants to stop: finish soon and keep what was measured.
    pub stop: &'a AtomicBool,
    /// Where to say how far it is.
    pub progress: &'a dyn Progress,
    /// Requests a second that rates are multiples of, in place of the capacity that a study measures first. Set by
    /// tests: their runs are too short to measure a busy machine.
    pub assumed_capacity: Option<f64>,
}

#[cfg(test)]
impl<'a> Conditions<'a> {
    /// Of a test: a short run with the first seed, told to nobody.
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

    /// The same, with rates that are multiples of `capacity`.
    pub(crate) fn assuming(self, capacity: f64) -> Self {
        Self {
            assumed_capacity: Some(capacity),
            ..self
        }
    }
}

impl Conditions<'_> {
    /// Capacity that rates are multiples of: the assumed one, or else the `measured` one.
    pub(crate) fn capacity(&self, measured: f64) -> f64 {
        self.assumed_capacity.unwrap_or(measured)
    }

    /// Whether the study should finish now.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A selection that names no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// Nothing has such a name.
    #[error("no figure {word:?}{}; `posthaste reproduce --list` shows all", nearest.as_ref().map_or_else(String::new, |near| format!(", did you mean {near:?}?")))]
    Unknown {
        /// What was asked for.
        word: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The papers have it, this release does not.
    #[error("{id} ({title}) is not built yet: it comes {comes}")]
    NotBuilt {
        /// Its id.
        id: &'static str,
        /// What it shows.
        title: &'static str,
        /// With which part of the project it comes.
        comes: &'static str,
    },
}

/// A line of the list of figures: one that is built, or one that is planned.
pub enum Listed<'a> {
    /// It can be reproduced.
    Built(&'a Figure),
    /// It cannot yet.
    Planned(&'static Planned),
}

/// The figures that `words` name: ids, aliases, or beginnings of ids ("overload"). Without a word all, or those of the core
/// studies. In the order of `figures`, each once.
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

/// Every figure of the papers in their order: those of `figures`, and what is still to come.
pub fn list<'f>(figures: &[&'f Figure]) -> Vec<Listed<'f>> {
    let mut listed: Vec<Listed<'f>> = figures.iter().copied().map(Listed::Built).collect();
    listed.extend(planned(figures).into_iter().map(Listed::Planned));
    listed
}

/// What the papers have and `figures` do not.
pub(crate) fn planned(figures: &[&Figure]) -> Vec<&'static Planned> {
    let built = |planned: &&Planned| figures.iter().any(|figure| figure.id == planned.id);
    papers::PLANNED
        .iter()
        .filter(|planned| !built(planned))
        .collect()
}
