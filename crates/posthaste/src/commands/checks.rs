//! The options that write checks for other programs.

use std::fs::{self, File};
use std::io;
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

    /// Fails if a requested file cannot be written. For use before a measurement.
    pub(crate) fn check_writable(&self) -> Result<(), Failure> {
        let files = [&self.markdown, &self.junit].into_iter().flatten();
        let mut files = files.filter(|file| file.as_os_str() != STDOUT);
        files.try_for_each(|file| check_writable(file).map_err(|error| at(file, &error)))
    }

    /// Writes the requested files, each whether or not the other can be written.
    pub(crate) fn write(&self, checks: &Checks) -> Result<(), Failure> {
        let markdown = self.markdown.as_deref();
        let markdown = markdown.map_or(Ok(()), |file| put(file, &checks.markdown()));
        let junit = self.junit.as_deref();
        let junit = junit.map_or(Ok(()), |file| put(file, &checks.junit()));
        markdown.and(junit)
    }
}

/// Opens the file, and creates it only for the moment.
fn check_writable(file: &Path) -> io::Result<()> {
    match File::create_new(file) {
        Ok(_) => fs::remove_file(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            File::options().write(true).open(file).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn put(file: &Path, text: &str) -> Result<(), Failure> {
    if file.as_os_str() == STDOUT {
        print(text)
    } else {
        fs::write(file, text).map_err(|error| at(file, &error))
    }
}

fn at(file: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", file.display()))
}
