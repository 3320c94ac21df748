//! One figure's folder: results take the place of earlier ones once they are on the disk whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::manifest::{Ended, Manifest};
use crate::records::Records;

/// What is being written; nothing is there between two runs.
const NEW: &str = ".new";

/// The last complete run, where a later one was stopped or failed.
const PREVIOUS: &str = "previous";

/// Writes manifest and records. Where a run that was stopped or has failed follows a complete one, that is kept: in the
/// folder that is returned.
pub(crate) fn write(
    dir: &Path,
    manifest: &Manifest,
    records: Option<&Records>,
) -> io::Result<Option<PathBuf>> {
    let (new, previous) = (dir.join(NEW), dir.join(PREVIOUS));
    remove(&new)?;
    fs::create_dir_all(&new)?;
    if let Err(error) = write_new(&new, manifest, records) {
        // The room it took is needed.
        let _ = remove(&new);
        return Err(error);
    }
    let keeps = manifest.ended != Ended::Complete && is_complete(dir);
    if keeps || manifest.ended == Ended::Complete {
        remove(&previous)?;
    }
    if keeps {
        fs::create_dir(&previous)?;
    }
    for path in results(dir)? {
        match path.file_name() {
            Some(name) if keeps => fs::rename(&path, previous.join(name))?,
            _ => fs::remove_file(&path)?,
        }
    }
    for path in results(&new)? {
        if let Some(name) = path.file_name() {
            fs::rename(&path, dir.join(name))?;
        }
    }
    fs::remove_dir(&new)?;
    Ok(keeps.then_some(previous))
}

fn write_new(dir: &Path, manifest: &Manifest, records: Option<&Records>) -> io::Result<()> {
    if let Some(records) = records {
        let mut file = BufWriter::new(File::create(dir.join("records.csv"))?);
        records.write_csv(&mut file)?;
        file.flush()?;
    }
    let mut json = serde_json::to_string_pretty(manifest)?;
    json.push('\n');
    fs::write(dir.join("manifest.json"), json)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a folder has the results of a run that came to its end.
fn is_complete(dir: &Path) -> bool {
    let json = fs::read(dir.join("manifest.json")).unwrap_or_default();
    let manifest = serde_json::from_slice::<Manifest>(&json);
    manifest.is_ok_and(|manifest| manifest.ended == Ended::Complete)
}

/// The files in a folder that are ours.
fn results(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut results = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ours = ["manifest.json", "records.csv", "checks.json"].contains(&&*name);
        if ours || (name.starts_with("figure") && name.ends_with(".svg")) {
            results.push(path);
        }
    }
    Ok(results)
}
