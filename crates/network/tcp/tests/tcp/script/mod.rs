//! A small language for one endpoint and a scripted peer. Every script of `tests/scripts` runs in virtual time.
//!
//! `README.md` in the folder of the scripts describes it. [`parse`] parses lines, [`world`] runs them, [`peer`]
//! supplies the fields that scripts omit, [`expect`] compares.

mod expect;
mod parse;
mod peer;
mod settings;
mod tokens;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parse::Script;
use posthaste_tcp::profile;
use world::ScriptWorld;

/// Minimum number of scripts. Detects a missing folder.
const LEAST: usize = 60;

/// Runs a script for one profile. The error names the line, the expected and the actual result.
fn run(script: &Script, name: &str) -> Result<(), String> {
    let profile = profile::named(name).map_err(|unknown| unknown.to_string())?;
    let profile = Arc::new(script.settings.applied(profile)?);
    let mut world = ScriptWorld::new(&script.settings, profile);
    for line in &script.lines {
        world.play(line).map_err(|failure| {
            let (number, text) = (line.number, line.text.trim());
            format!("line {number}: {text}\n{failure}\n{}", world.ladder())
        })?;
    }
    world
        .nothing_unexpected()
        .map_err(|failure| format!("at the end\n{failure}"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

#[test]
fn every_script_holds_for_each_of_its_profiles() {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the scripts lie beside the tests")
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "script"))
        .collect();
    files.sort();
    assert!(files.len() >= LEAST, "{} scripts", files.len());
    let mut failures = Vec::new();
    for path in &files {
        let name = path.file_name().expect("a file").to_string_lossy();
        let text = fs::read_to_string(path).expect("a text");
        match parse::script(&text) {
            Ok(script) => {
                for profile in &script.settings.profiles {
                    if let Err(failure) = run(&script, profile) {
                        failures.push(format!("{name} ({profile}), {failure}"));
                    }
                }
            }
            Err(error) => failures.push(format!("{name}, {error}")),
        }
    }
    let (count, failures) = (failures.len(), failures.join("\n"));
    assert!(
        failures.is_empty(),
        "{count} of {} scripts fail:\n{failures}",
        files.len()
    );
}
