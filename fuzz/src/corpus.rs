//! Corpora: the kept inputs of each target, in one tar file per target.
//!
//! The form is fixed: sorted by name, without times and owners, so that the same inputs make the same bytes. An archive
//! in another form is rejected, and so is one that was cut off. Archives are not compressed, since git compresses them
//! and stores an added input as a small difference.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};

/// Inputs of one target by name. At least one.
pub type Corpus = BTreeMap<String, Vec<u8>>;

/// The path of a target's archive.
pub fn archive(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
        .with_extension("tar")
}

/// Returns the corpus of a target. Fails if its archive is missing, damaged, empty or in another form.
pub fn load(target: &str) -> Result<Corpus> {
    let path = archive(target);
    std::fs::read(&path)
        .and_then(|bytes| unpack(&bytes))
        .map_err(|error| at(&path, error))
}

/// Replaces the archive of a target.
pub fn save(target: &str, corpus: &Corpus) -> Result<()> {
    let path = archive(target);
    pack(corpus)
        .and_then(|bytes| std::fs::write(&path, bytes))
        .map_err(|error| at(&path, error))
}

/// An error with the path that it is about.
pub fn at(path: &Path, error: Error) -> Error {
    Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The bytes of the archive of a corpus. Fails if it is empty or a name is not that of a file in one folder.
pub(crate) fn pack(corpus: &Corpus) -> Result<Vec<u8>> {
    if corpus.is_empty() {
        return Err(Error::new(ErrorKind::InvalidData, "no inputs"));
    }
    let mut builder = tar::Builder::new(Vec::new());
    for (name, input) in corpus {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            let message = format!("{name:?} is not the name of a file");
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        let mut header = tar::Header::new_ustar();
        header.set_size(input.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        builder.append_data(&mut header, name, input.as_slice())?;
    }
    builder.into_inner()
}

/// The corpus in the bytes of an archive.
pub(crate) fn unpack(archive: &[u8]) -> Result<Corpus> {
    let mut corpus = Corpus::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut input = Vec::new();
        entry.read_to_end(&mut input)?;
        corpus.insert(name, input);
    }
    if pack(&corpus)? != archive {
        let message = "damaged, or not packed by the example `corpus` (see fuzz/README.md)";
        return Err(Error::new(ErrorKind::InvalidData, message));
    }
    Ok(corpus)
}
