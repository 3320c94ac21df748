//! qlog files of connections: `draft-ietf-quic-qlog-main-schema` as JSON text sequences (RFC 7464), `.sqlog`.
//!
//! A folder for a run, and a file for each of the first connections. Events are written by `connection_log`. Files get
//! their events in pieces of 64 KiB, from the thread of the event loop.

mod connection_log;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub(super) use connection_log::{ConnectionLog, QlogClosing, QlogDirection};

use crate::cause::Cause;

/// qlog files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QlogOptions {
    /// Folder. It is created, and must not have files of an earlier run.
    pub directory: PathBuf,
    /// Connections with a file: the first ones.
    pub connections: u64,
}

/// The qlog files of a run, for its report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QlogReport {
    /// The folder.
    pub directory: String,
    /// Files, one for each connection.
    pub files: u64,
    /// Connections without a file, because they are beyond the limit.
    pub omitted: u64,
    /// Connections whose file is missing or incomplete, because it could not be written.
    pub incomplete: u64,
    /// The first error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// The folder, shared by all event loops.
#[derive(Debug)]
pub(crate) struct QlogDirectory {
    options: QlogOptions,
    /// Connections so far.
    connections: AtomicU64,
    incomplete: AtomicU64,
    error: Mutex<Option<String>>,
}

impl QlogDirectory {
    /// Creates the folder. Fails if it cannot be written to, or has qlog files.
    pub(crate) fn create(options: &QlogOptions) -> Result<Self, Cause> {
        let path = &options.directory;
        fs::create_dir_all(path)?;
        for entry in fs::read_dir(path)? {
            if Path::new(&entry?.file_name())
                .extension()
                .is_some_and(|extension| extension == "sqlog")
            {
                return Err("it has files of an earlier run: name another folder".into());
            }
        }
        let probe = path.join(".writable");
        File::create(&probe).and_then(|_| fs::remove_file(&probe))?;
        Ok(Self {
            options: options.clone(),
            connections: AtomicU64::new(0),
            incomplete: AtomicU64::new(0),
            error: Mutex::new(None),
        })
    }

    /// Opens the file of the next connection. None beyond the limit, or if it cannot be opened.
    fn open(&self) -> Option<(u64, File)> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        if number > self.options.connections {
            return None;
        }
        match File::create_new(self.path(number)) {
            Ok(file) => Some((number, file)),
            Err(error) => {
                self.fail(number, &error);
                None
            }
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.options.directory.join(format!("{number}.sqlog"))
    }

    /// Counts a file that could not be written.
    fn fail(&self, number: u64, error: &io::Error) {
        self.incomplete.fetch_add(1, Ordering::Relaxed);
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| format!("{}: {error}", self.path(number).display()));
    }

    /// The files written so far.
    pub(crate) fn report(&self) -> QlogReport {
        let connections = self.connections.load(Ordering::Relaxed);
        let files = connections.min(self.options.connections);
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        QlogReport {
            directory: self.options.directory.display().to_string(),
            files,
            omitted: connections - files,
            incomplete: self.incomplete.load(Ordering::Relaxed),
            error: error.clone(),
        }
    }
}

impl QlogReport {
    /// Describes the files that could not be written, if there are some.
    pub fn failure_in_words(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let (incomplete, files) = (self.incomplete, self.files);
        Some(format!(
            "{incomplete} of {files} qlog files are missing or incomplete ({error})"
        ))
    }
}
