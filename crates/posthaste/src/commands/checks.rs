//! The options that write checks for other programs.

use std::path::{Path, PathBuf};

use posthaste_evaluation::checks::Checks;

use super::{Failure, print};

/// The standard output as a file name.
const STDOUT: &str = "-";

/// The options that take the checks to files.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct CheckFiles {
    /// Write the verdicts as a Markdown table, for a pull request; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the verdicts as JUnit XML, for a build server; `-` is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl CheckFiles {
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
            put(file, &checks.markdown())?;
        }
        if let Some(file) = &self.junit {
            put(file, &checks.junit())?;
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
