//! Adds inputs to the archive of a target, unpacks it into a new folder, or packs a folder.
//!
//! ```sh
//! cargo run -p posthaste-fuzz --example corpus -- add wsdl fuzz/artifacts/wsdl/crash-0123
//! cargo run -p posthaste-fuzz --example corpus -- unpack wsdl fuzz/target/corpus/wsdl
//! cargo run -p posthaste-fuzz --example corpus -- pack wsdl fuzz/target/corpus/wsdl
//! ```

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posthaste_fuzz::TARGETS;
use posthaste_fuzz::corpus::{self, Corpus, at};

/// Adds a file under its name. Fails if another input has that name.
fn add(corpus: &mut Corpus, file: &Path) -> Result<()> {
    let input = fs::read(file).map_err(|error| at(file, error))?;
    let name = file.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        return Err(at(file, ErrorKind::InvalidFilename.into()));
    };
    match corpus.insert(name.into(), input.clone()) {
        Some(other) if other != input => {
            let error = Error::new(
                ErrorKind::AlreadyExists,
                "rename it, the corpus has another input of this name",
            );
            Err(at(file, error))
        }
        _ => Ok(()),
    }
}

/// Writes each input to a file in `folder`, which must not exist.
fn unpack(corpus: &Corpus, folder: &Path) -> Result<()> {
    if folder.exists() {
        return Err(at(folder, ErrorKind::AlreadyExists.into()));
    }
    fs::create_dir_all(folder)?;
    for (name, input) in corpus {
        fs::write(folder.join(name), input)?;
    }
    Ok(())
}

/// The files in `folder`.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, error))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn run(action: &str, target: &str, paths: &[PathBuf]) -> Result<()> {
    let (mut corpus, files) = match (action, paths) {
        ("unpack", [folder]) => return unpack(&corpus::load(target)?, folder),
        ("pack", [folder]) => (Corpus::new(), files(folder)?),
        // The first input of a new target.
        ("add", [_, ..]) if !corpus::archive(target).exists() => (Corpus::new(), paths.to_vec()),
        ("add", [_, ..]) => (corpus::load(target)?, paths.to_vec()),
        _ => {
            let usage =
                "usage: corpus add TARGET FILE... | unpack TARGET FOLDER | pack TARGET FOLDER";
            return Err(Error::new(ErrorKind::InvalidInput, usage));
        }
    };
    for file in files {
        add(&mut corpus, &file)?;
    }
    corpus::save(target, &corpus)?;
    println!("{target} has {} inputs", corpus.len());
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let action = arguments.next().unwrap_or_default();
    let target = arguments.next().unwrap_or_default();
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let done = if TARGETS.iter().any(|(name, _)| *name == target) {
        run(&action, &target, &paths)
    } else {
        let unknown = format!("no target {target:?} in TARGETS");
        Err(Error::new(ErrorKind::NotFound, unknown))
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {error}");
            ExitCode::FAILURE
        }
    }
}
