//! The folder of one figure. New results replace earlier ones only after they are complete on disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::iter;
use std::path::{Path, PathBuf};

use crate::manifest::{Manifest, StudyEnd};
use crate::records::Records;

/// Folder of the results being written. Absent between runs.
const NEW: &str = ".new";

/// Earlier results, kept next to a run that was stopped or failed. Further ones are `previous-2` and so on.
const PREVIOUS: &str = "previous";

/// Writes the manifest and the records. A complete run deletes all earlier results. A run that was stopped or failed
/// keeps them in a folder of their own; returns that folder.
pub(crate) fn write(
    dir: &Path,
    manifest: &Manifest,
    records: Option<&Records>,
) -> io::Result<Option<PathBuf>> {
    let new = dir.join(NEW);
    remove(&new)?;
    fs::create_dir_all(&new)?;
    if let Err(error) = write_new(&new, manifest, records) {
        // Frees the space that the partial results take.
        let _ = remove(&new);
        return Err(error);
    }
    let mut kept = None;
    if manifest.ended == StudyEnd::Complete {
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

/// Folders for earlier results, in the order in which they are filled.
fn earlier(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let more = (2..).map(|number| format!("{PREVIOUS}-{number}"));
    let names = iter::once(PREVIOUS.to_owned()).chain(more);
    names.map(|name| dir.join(name))
}

/// True if `name` is one of the folders for earlier results.
fn is_earlier(name: &str) -> bool {
    let number = |rest: &str| rest.strip_prefix('-').map(str::parse::<u32>);
    let rest = name.strip_prefix(PREVIOUS);
    rest.is_some_and(|rest| rest.is_empty() || matches!(number(rest), Some(Ok(_))))
}

/// Files in `dir` that this crate has written.
fn results(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut results = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().expect("an entry of a folder has a name");
        let name = name.to_string_lossy();
        let ours = ["manifest.json", "records.csv", "checks.json"].contains(&&*name);
        if ours || (name.starts_with("figure") && name.ends_with(".svg")) {
            results.push(path);
        }
    }
    Ok(results)
}
