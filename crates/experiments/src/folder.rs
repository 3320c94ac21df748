//! One figure's folder: results take the place of earlier ones once they are on the disk whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::iter;
use std::path::{Path, PathBuf};

use crate::manifest::{Ended, Manifest};
use crate::records::Records;

/// What is being written; nothing is there between two runs.
const NEW: &str = ".new";

/// What was measured before a run that was stopped or failed; further ones are `previous-2` and so on.
const PREVIOUS: &str = "previous";

/// Writes manifest and records. What was measured before stays until a run comes to its end: beside one that was
/// stopped or has failed, in the folder that is returned.
pub(crate) fn write(
    dir: &Path,
    manifest: &Manifest,
    records: Option<&Records>,
) -> io::Result<Option<PathBuf>> {
    let new = dir.join(NEW);
    remove(&new)?;
    fs::create_dir_all(&new)?;
    if let Err(error) = write_new(&new, manifest, records) {
        // The room it took is needed.
        let _ = remove(&new);
        return Err(error);
    }
    let mut kept = None;
    if manifest.ended == Ended::Complete {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if is_earlier(&entry.file_name().to_string_lossy()) {
                remove(&entry.path())?;
            }
        }
    } else if dir.join("records.csv").exists() {
        kept = earlier(dir).find(|folder| !folder.exists());
    }
    if let Some(kept) = &kept {
        fs::create_dir(kept)?;
    }
    for path in results(dir)? {
        match (path.file_name(), &kept) {
            (Some(name), Some(kept)) => fs::rename(&path, kept.join(name))?,
            _ => fs::remove_file(&path)?,
        }
    }
    for path in results(&new)? {
        if let Some(name) = path.file_name() {
            fs::rename(&path, dir.join(name))?;
        }
    }
    fs::remove_dir(&new)?;
    Ok(kept)
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

/// Where earlier results are kept, in the order in which the folders are filled.
fn earlier(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let more = (2..).map(|number| format!("{PREVIOUS}-{number}"));
    let names = iter::once(PREVIOUS.to_owned()).chain(more);
    names.map(|name| dir.join(name))
}

/// Whether a folder of this name is one of those.
fn is_earlier(name: &str) -> bool {
    let number = |rest: &str| rest.strip_prefix('-').map(str::parse::<u32>);
    let rest = name.strip_prefix(PREVIOUS);
    rest.is_some_and(|rest| rest.is_empty() || matches!(number(rest), Some(Ok(_))))
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
