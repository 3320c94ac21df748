//! Copies of a database that is in use.
//!
//! A copy of the file alone lacks the commits that are still in the write-ahead log, and can be of two moments.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::PATIENCE;
use crate::store::StoreError;

/// Writes all that is committed in the database `file` to the new file `to`, as of one moment. Writers go on meanwhile.
/// Only the owner has access to the copy.
pub(in crate::store) fn backup(file: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |error: &dyn std::fmt::Display| {
        StoreError::Unavailable(format!("{}: {error}", to.display()))
    };
    // SQLite takes the name as text.
    let name = to
        .to_str()
        .ok_or_else(|| failed(&"the name is not UTF-8"))?;
    let mut create = OpenOptions::new();
    let created = create.write(true).create_new(true).mode(0o600).open(to);
    let copy = created.map_err(|error| failed(&error))?;
    let copied = || {
        let source = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        source.busy_timeout(PATIENCE)?;
        source.execute("VACUUM INTO ?1", [name])
    };
    let synced = copied().map_err(|error| failed(&error));
    let synced = synced.and_then(|_| copy.sync_all().map_err(|error| failed(&error)));
    if synced.is_err() {
        // The error is more useful than one about an incomplete copy.
        let _ = std::fs::remove_file(to);
    }
    synced
}
