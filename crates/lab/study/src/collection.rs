//! A collection of figures, and the selection of figures by name.
//!
//! The collection lists each figure and table of its papers, built or not, so that the report names the missing ones.

use crate::figure::Figure;
use crate::question::PaperQuestion;

/// All figures of a release, with their papers.
#[derive(Clone, Copy)]
pub struct Collection<'f> {
    /// The figures, in the order of the report.
    pub figures: &'f [&'f Figure],
    /// The papers: prefix of their ids, and citation.
    pub papers: &'f [(&'f str, &'f str)],
    /// Figures that two papers share: the alias, and the id.
    pub aliases: &'f [(&'f str, &'f str)],
    /// Every figure and table of the papers, in the order of the report.
    pub planned: &'static [Planned],
    /// Questions about the papers, in the order of the report.
    pub questions: &'f [PaperQuestion],
}

/// A figure of the papers and the part of the project it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its id.
    pub id: &'static str,
    /// Subject of the figure.
    pub title: &'static str,
    /// The part of the project that provides it: "with the simulator".
    pub comes: &'static str,
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
pub enum ListedFigure<'f> {
    /// A figure that can be reproduced.
    Built(&'f Figure),
    /// A figure that cannot be reproduced yet.
    Planned(&'static Planned),
}

impl<'f> Collection<'f> {
    /// Returns the figures that `patterns` name, by id, alias or the beginning of either ("overload/fig-08", "overload").
    /// Without patterns, all figures or those of the core studies. Each figure appears once, in the order of the report.
    pub fn select(&self, patterns: &[String], all: bool) -> Result<Vec<&'f Figure>, SelectError> {
        let unnamed = |figure: &&Figure| patterns.is_empty() && (all || figure.study.core);
        let mut chosen: Vec<bool> = self.figures.iter().map(unnamed).collect();
        for word in patterns {
            let id = self.id_of(word);
            let exact = self.figures.iter().position(|figure| figure.id == id);
            let begins = |figure: &Figure| {
                let mut names = self
                    .aliases
                    .iter()
                    .filter(|(_, target)| *target == figure.id);
                let by_alias = names.any(|(alias, _)| alias.starts_with(word.as_str()));
                !word.is_empty() && (figure.id.starts_with(id) || by_alias)
            };
            let mut found = false;
            for (index, figure) in self.figures.iter().enumerate() {
                let named = exact.map_or_else(|| begins(figure), |exact| exact == index);
                chosen[index] |= named;
                found |= named;
            }
            if !found {
                return Err(self.unknown(word, id));
            }
        }
        let chosen = self
            .figures
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| *chosen);
        Ok(chosen.map(|(figure, _)| *figure).collect())
    }

    /// Lists every figure of the papers: first the built ones, then the missing ones.
    pub fn list(&self) -> Vec<ListedFigure<'f>> {
        let mut listed: Vec<ListedFigure<'f>> = self
            .figures
            .iter()
            .copied()
            .map(ListedFigure::Built)
            .collect();
        listed.extend(self.missing().map(ListedFigure::Planned));
        listed
    }

    /// Figures of the papers that this release lacks.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &'static Planned> {
        let built = |planned: &&Planned| self.figures.iter().any(|figure| figure.id == planned.id);
        self.planned.iter().filter(move |planned| !built(planned))
    }

    /// True if no paper contains the figure. Its claim is then a goal of this project.
    pub(crate) fn goes_beyond(&self, figure: &Figure) -> bool {
        !self.planned.iter().any(|planned| planned.id == figure.id)
    }

    /// Returns the id for `name`: the alias's target, otherwise `name` itself.
    fn id_of<'n>(&'n self, name: &'n str) -> &'n str {
        let alias = self.aliases.iter().find(|(alias, _)| *alias == name);
        alias.map_or(name, |(_, id)| id)
    }

    fn unknown(&self, word: &str, id: &str) -> SelectError {
        let named = self.missing().find(|planned| planned.id == id);
        let near = || self.missing().find(|planned| planned.id.starts_with(id));
        if let Some(planned) = named.or_else(near)
            && !id.is_empty()
        {
            return SelectError::NotBuilt {
                id: planned.id,
                title: planned.title,
                comes: planned.comes,
            };
        }
        let ids = self.figures.iter().map(|figure| figure.id);
        let planned = self.missing().map(|planned| planned.id);
        let papers = self.papers.iter().map(|(prefix, _)| *prefix);
        let aliases = self.aliases.iter().map(|(alias, _)| *alias);
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
}
