//! The files of a simulation: the picture and the ladder, by the endings of their names.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use posthaste_draw::Ladder;
use posthaste_sim::{CaseResults, SimulationCases, picture};

use crate::commands::Failure;

/// Destination of a ladder. It decides the form.
#[derive(Clone, Debug)]
pub(super) enum LadderFile {
    /// Text to standard output.
    Stdout,
    /// Text to a file.
    Text(PathBuf),
    /// SVG to a file.
    Svg(PathBuf),
}

impl FromStr for LadderFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        match ending(&path) {
            _ if text == "-" => Ok(Self::Stdout),
            Some("txt") => Ok(Self::Text(path)),
            Some("svg") => Ok(Self::Svg(path)),
            _ => Err("name the ladder FILE.svg or FILE.txt".to_owned()),
        }
    }
}

impl LadderFile {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::Text(path) | Self::Svg(path) => Some(path),
        }
    }

    /// The content. `notes` go below a ladder in a file; a terminal already shows them above it.
    pub(super) fn content(&self, mut ladder: Ladder, notes: &[String]) -> String {
        if self.path().is_some() {
            ladder.notes.extend_from_slice(notes);
        }
        match self {
            Self::Svg(_) => ladder.svg(),
            Self::Stdout | Self::Text(_) => ladder.text(),
        }
    }
}

/// Refuses a picture without a known ending, and a picture of a single case.
pub(super) fn check_picture(path: &Path, cases: &SimulationCases) -> Result<(), Failure> {
    match ending(path) {
        Some("svg" | "html") if cases.list.len() > 1 => Ok(()),
        Some("svg" | "html") => Err(Failure::usage(
            "--picture draws several combinations: give an option a list, or --compare remedies",
        )),
        _ => Err(Failure::usage(format!(
            "{}: name the picture FILE.svg or FILE.html",
            path.display()
        ))),
    }
}

/// The content of a picture. `notes` go below each chart.
pub(super) fn picture(
    path: &Path,
    cases: &SimulationCases,
    results: &CaseResults,
    notes: &[String],
) -> String {
    match ending(path) {
        Some("svg") => picture::svg(cases, results, notes),
        _ => picture::html(cases, results, notes),
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

/// Writes a file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Checks that such a file exists or can be created, before hours of simulation. Leaves no new file, except an empty
/// one if a link leads to a missing name.
pub(super) fn try_to_write(path: &Path) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.append(true);
    let tried = match options.clone().create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options.create(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    tried.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::run(format!(
        "{path}: {error}; name a file in a folder that can be written to"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_to_write_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old.svg", "new.svg"].map(|name| folder.path().join(name));
        fs::write(&old, "a picture").unwrap();
        for path in [&old, &new] {
            try_to_write(path).unwrap();
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "a picture");
        assert!(!new.exists());
        assert!(try_to_write(&folder.path().join("no/such/file.svg")).is_err());
    }
}
