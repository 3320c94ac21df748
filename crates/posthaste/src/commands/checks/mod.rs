//! Checks for other programs: Markdown for a pull request, JUnit XML for a build server.
//!
//! The writers take a plain list of checks, so that every command with checks can use them.

mod junit;
mod markdown;

use std::path::{Path, PathBuf};

use super::{Failure, print};

/// The standard output as a file name.
const STDOUT: &str = "-";

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Passed,
    Failed,
    /// The data do not decide.
    Unknown,
}

/// One check.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// The checked property: `p99 of the response time`.
    pub(crate) name: String,
    pub(crate) state: State,
    /// The result in a few words: `+12.0 %, worse`.
    pub(crate) found: String,
    /// Further details for a reader. May have several lines, may be empty.
    pub(crate) detail: String,
}

/// The checks of one run of a command.
#[derive(Clone, Debug)]
pub(crate) struct Checks {
    /// The title: `posthaste compare`.
    pub(crate) title: String,
    /// Lines about all checks, such as the options that differ.
    pub(crate) notes: Vec<String>,
    pub(crate) checks: Vec<Check>,
    /// An unknown check counts as skipped, not as an error.
    pub(crate) allow_unknown: bool,
}

/// The options that take the checks to files.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Files {
    /// Write the verdicts as a Markdown table, for a pull request; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the verdicts as JUnit XML, for a build server; `-` is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Files {
    /// True if any form is requested.
    pub(crate) fn any(&self) -> bool {
        self.markdown.is_some() || self.junit.is_some()
    }

    /// Number of forms that go to the standard output.
    pub(crate) fn on_stdout(&self) -> usize {
        let files = [&self.markdown, &self.junit].into_iter().flatten();
        files.filter(|file| file.as_os_str() == STDOUT).count()
    }

    /// Writes the requested files.
    pub(crate) fn write(&self, checks: &Checks) -> Result<(), Failure> {
        if let Some(file) = &self.markdown {
            put(file, &markdown::write(checks))?;
        }
        if let Some(file) = &self.junit {
            let text = junit::write(checks).map_err(|error| at(file, &error))?;
            put(file, &text)?;
        }
        Ok(())
    }
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    match file.as_os_str() == STDOUT {
        true => print(text),
        false => std::fs::write(file, text).map_err(|error| at(file, &error)),
    }
}

fn at(file: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
fn example() -> Checks {
    let check = |name: &str, state, found: &str, detail: &str| Check {
        name: name.to_owned(),
        state,
        found: found.to_owned(),
        detail: detail.to_owned(),
    };
    Checks {
        title: "posthaste compare".to_owned(),
        notes: vec!["target differs: GET http://a/?x=1&y=2 | GET http://b/".to_owned()],
        checks: vec![
            check("mean", State::Passed, "equal within 9 %", ""),
            check(
                "p99 <5ms>",
                State::Failed,
                "+31 %, worse",
                "before 5 ms\nafter 6.5 ms",
            ),
            check("a|b", State::Unknown, "too wide", "\u{1}6 \"runs\""),
        ],
        allow_unknown: false,
    }
}
