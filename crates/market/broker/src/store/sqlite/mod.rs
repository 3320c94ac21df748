//! Store in SQLite: one file, no server.
//!
//! Every commit is on the disk before it is acknowledged (WAL, `synchronous = FULL`). Other processes may use the file
//! concurrently, for example to create tokens. Their changes are seen with the next check.

mod accounts;
pub(super) mod backup;
mod schema;

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use posthaste_qos::Offer;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Row, Transaction, TransactionBehavior, params,
};

use super::plan::{self, Standing, Standings, WritePlan, WriteStep, alone, keys, tags_count};
use super::row::{self, LogEntry};
use super::{AT_ONCE, Log, Store, StoreError, TokenRecord, Write, WriteOutcome, expired_by};
use crate::change::{OfferChange, OfferGroup, OfferKey, Tag};
use crate::token::{Grant, Hash, TokenRole};

/// Maximum wait for the write lock of another process.
const PATIENCE: Duration = Duration::from_secs(3);

/// An open database.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    file: PathBuf,
    state: DatabaseState,
}

/// Usability of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseState {
    Open,
    /// Opened on a full disk: read-only, and locked against other processes.
    ReadOnly,
    /// Reopening failed. The connection is to an empty database in memory.
    Closed,
}

impl Sqlite {
    /// Opens the database in `file`, or creates it with access for its owner only. Read-only if the disk is full.
    pub(super) fn open(file: &Path) -> Result<Self, StoreError> {
        create(file);
        let named = |error: StoreError| error.with_store(file.display());
        let opened = match Self::opened(file, DatabaseState::Open) {
            Err(error @ StoreError::Unavailable(_)) => {
                let read_only = Self::opened(file, DatabaseState::ReadOnly);
                let read_only = read_only.map_err(|_| named(error.clone()))?;
                tracing::error!(
                    "offers can be looked up and not published: {}",
                    named(error)
                );
                Ok(read_only)
            }
            opened => opened,
        };
        opened.map_err(named)
    }

    fn opened(file: &Path, state: DatabaseState) -> Result<Self, StoreError> {
        let mut connection = Connection::open(file)?;
        connection.busy_timeout(PATIENCE)?;
        if state == DatabaseState::ReadOnly {
            // Without this SQLite needs a file for the WAL index, and the disk is full (https://sqlite.org/wal.html,
            // "Use of WAL Without Shared-Memory").
            connection.pragma_update(None, "locking_mode", "exclusive")?;
            schema::check(&mut connection)?;
        } else {
            schema::migrate(&mut connection)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
        }
        // Acknowledged commits are on the disk, even if space is freed before it is opened for writing.
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(Self {
            connection,
            file: file.to_owned(),
            state,
        })
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reopens a read-only database for writing, if there is space again.
    fn open_again(&mut self) -> Result<(), StoreError> {
        // The old connection holds an exclusive lock, which excludes this process too.
        self.connection = Connection::open_in_memory()?;
        self.state = DatabaseState::Closed;
        let opened = Self::opened(&self.file, DatabaseState::Open);
        *self = opened.or_else(|_| Self::opened(&self.file, DatabaseState::ReadOnly))?;
        if self.state == DatabaseState::Open {
            tracing::info!("offers can be published again");
        }
        Ok(())
    }

    /// Begins a transaction with the write lock.
    fn begin(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

impl Store for Sqlite {
    fn load(&mut self, take: &mut dyn FnMut(OfferKey, Offer)) -> Result<u64, StoreError> {
        let transaction = self.connection.transaction()?;
        let last = last(&transaction)?;
        let sql = "SELECT kind, provider, name, body FROM offers ORDER BY kind, provider, name";
        let mut all = transaction.prepare_cached(sql)?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let key = key(row, 0)?;
            let body = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
            if let Some(offer) = row::offer(&key, body) {
                take(key, offer);
            }
        }
        Ok(last)
    }

    fn commit(
        &mut self,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        let transaction = self.begin()?;
        let there = standing(&transaction, writes)?;
        let WritePlan { outcomes, steps } = plan::plan(writes, now, there);
        if !steps.is_empty() {
            make(&transaction, &steps, now)?;
            transaction.commit()?;
        }
        Ok(outcomes)
    }

    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError> {
        // After a failure of the store the store writer calls this first.
        if self.state == DatabaseState::Closed {
            self.open_again()?;
        }
        let transaction = self.connection.transaction()?;
        let last = last(&transaction)?;
        let sql = "SELECT number, at, token, kind, provider, name, body FROM changes
                   WHERE number > ?1 ORDER BY number LIMIT ?2";
        let mut statement = transaction.prepare_cached(sql)?;
        let behind = statement.query_map(params![number as i64, limit as i64], entry)?;
        let behind: Vec<LogEntry> = behind.collect::<Result<_, _>>()?;
        Ok(row::log(number, last, behind))
    }

    fn audit(&mut self, limit: usize) -> Result<Vec<(u64, OfferChange)>, StoreError> {
        let sql = "SELECT number, at, token, kind, provider, name, body FROM changes
                   ORDER BY number DESC LIMIT ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let newest = statement.query_map([limit as i64], entry)?;
        let newest: Vec<LogEntry> = newest.collect::<Result<_, _>>()?;
        Ok(newest.into_iter().map(LogEntry::audited).collect())
    }

    fn grants(&mut self) -> Result<Vec<Grant>, StoreError> {
        let sql = "SELECT number, provider, hash, role FROM tokens WHERE revoked IS NULL";
        let mut valid = self.connection.prepare_cached(sql)?;
        let valid = valid.query_map([], grant)?;
        Ok(valid.collect::<Result<_, _>>()?)
    }

    fn tokens(&mut self) -> Result<Vec<TokenRecord>, StoreError> {
        let sql = "SELECT number, provider, hash, role, made, revoked FROM tokens ORDER BY number";
        let mut all = self.connection.prepare_cached(sql)?;
        let time = |micros| Timestamp::from_microsecond(micros).unwrap_or_default();
        let token = |row: &Row<'_>| {
            Ok(TokenRecord {
                grant: grant(row)?,
                made: time(row.get(4)?),
                revoked: row.get::<_, Option<i64>>(5)?.map(time),
            })
        };
        let all = all.query_map([], token)?;
        Ok(all.collect::<Result<_, _>>()?)
    }

    fn grant(
        &mut self,
        role: TokenRole,
        provider: &str,
        hash: Hash,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let sql = "INSERT INTO tokens (role, provider, hash, made) VALUES (?1, ?2, ?3, ?4) RETURNING number";
        let values = params![role.name(), provider, hash.0, now.as_microsecond()];
        Ok(self
            .connection
            .query_row(sql, values, |row| number(row, 0))?)
    }

    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError> {
        let sql = "UPDATE tokens SET revoked = ?2 WHERE number = ?1 AND revoked IS NULL";
        let values = params![token as i64, now.as_microsecond()];
        Ok(self.connection.execute(sql, values)? > 0)
    }

    fn tidy(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        if self.state == DatabaseState::ReadOnly {
            self.open_again()?;
        }
        let (expired, keep) = (expired_by(now), keep.max(1) as i64);
        let untidy = "SELECT EXISTS (SELECT 1 FROM offers WHERE expires <= ?1)
                          OR EXISTS (SELECT 1 FROM changes, log WHERE number <= last - ?2)";
        let untidy = self
            .connection
            .query_row(untidy, params![expired, keep], |row| row.get(0));
        if !untidy? {
            return Ok(false);
        }
        let transaction = self.begin()?;
        let forget = |sql, beyond| transaction.execute(sql, params![beyond, AT_ONCE as i64]);
        let offers = "DELETE FROM offers WHERE (kind, provider, name) IN
            (SELECT kind, provider, name FROM offers WHERE expires <= ?1 LIMIT ?2)";
        let changes = "DELETE FROM changes WHERE number IN
            (SELECT number FROM changes, log WHERE number <= last - ?1 ORDER BY number LIMIT ?2)";
        let (offers, changes) = (forget(offers, expired)?, forget(changes, keep)?);
        transaction.commit()?;
        Ok(offers.max(changes) == AT_ONCE)
    }
}

/// Creates a missing file with access for its owner only. SQLite gives its companion files the same mode.
fn create(file: &Path) {
    // SQLite reports the error if the file cannot be created.
    let _ = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
}

/// State of the stored offers that `writes` concern.
fn standing<'w>(
    transaction: &Transaction<'_>,
    writes: &'w [Write],
) -> rusqlite::Result<Standings<'w>> {
    let tagged = tags_count(writes);
    let standing = |row: &Row<'_>| {
        let body: Option<&str> = row.get_ref(1)?.as_str_or_null()?;
        Ok(Standing {
            expires: row.get(0)?,
            tag: body.map(|body| Tag::of_json(body.as_bytes())),
        })
    };
    let sql = "SELECT expires, CASE WHEN ?4 THEN body END FROM offers
               WHERE kind = ?1 AND provider = ?2 AND name = ?3";
    let mut find = transaction.prepare_cached(sql)?;
    let mut there = Standings::new();
    for key in keys(writes) {
        let names = params![key.kind, key.provider, key.name, tagged];
        if let Some(standing) = find.query_row(names, standing).optional()? {
            there.insert(Cow::Borrowed(key), standing);
        }
    }
    let sql = "SELECT expires, body, name FROM offers WHERE kind = ?1 AND provider = ?2";
    let mut find = transaction.prepare_cached(sql)?;
    for OfferGroup { kind, provider } in alone(writes) {
        let mut rows = find.query(params![kind, provider])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(2)?;
            there.insert(
                Cow::Owned(OfferKey::new(kind, provider, &name)),
                standing(row)?,
            );
        }
    }
    Ok(there)
}

fn make(
    transaction: &Transaction<'_>,
    steps: &[WriteStep<'_>],
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO offers (kind, provider, name, expires, body) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET expires = excluded.expires, body = excluded.body",
    )?;
    let mut remove = transaction
        .prepare_cached("DELETE FROM offers WHERE kind = ?1 AND provider = ?2 AND name = ?3")?;
    let mut note = transaction.prepare_cached(
        "INSERT INTO changes (number, at, token, kind, provider, name, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let first: i64 = transaction.query_row(
        "UPDATE log SET last = last + ?1 RETURNING last - ?1 + 1",
        [steps.len() as i64],
        |row| row.get(0),
    )?;
    debug_assert!(first > 0, "the log's numbers begin with 1");
    let at = now.as_microsecond();
    for (number, WriteStep { key, by, body }) in (first..).zip(steps) {
        let OfferKey {
            kind,
            provider,
            name,
        } = &**key;
        let json = body.as_ref().map(|body| &body.json);
        match body {
            Some(body) => put.execute(params![kind, provider, name, body.expires, json])?,
            None => remove.execute(params![kind, provider, name])?,
        };
        let noted = note.execute(params![number, at, *by as i64, kind, provider, name, json])?;
        debug_assert_eq!(noted, 1, "a change without its entry in the log");
    }
    Ok(())
}

/// Number of the last change.
fn last(connection: &Connection) -> rusqlite::Result<u64> {
    let mut last = connection.prepare_cached("SELECT last FROM log")?;
    last.query_row([], |row| number(row, 0))
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}

fn key(row: &Row<'_>, from: usize) -> rusqlite::Result<OfferKey> {
    Ok(OfferKey {
        kind: row.get(from)?,
        provider: row.get(from + 1)?,
        name: row.get(from + 2)?,
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<LogEntry> {
    Ok(LogEntry {
        number: number(row, 0)?,
        at: row.get(1)?,
        by: number(row, 2)?,
        key: key(row, 3)?,
        body: row.get(6)?,
    })
}

fn grant(row: &Row<'_>) -> rusqlite::Result<Grant> {
    Ok(Grant {
        number: number(row, 0)?,
        provider: row.get(1)?,
        hash: Hash(row.get(2)?),
        role: TokenRole::of_name(row.get_ref(3)?.as_str()?),
    })
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, error) = &error {
            return Self::Unusable(format!("another program has written here: {error}"));
        }
        let message = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                Self::Unusable("this is no SQLite database: name another file".to_owned())
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Unusable(message),
            Some(ErrorCode::DatabaseBusy) => Self::Unavailable(
                "another process has kept the database locked for seconds".to_owned(),
            ),
            _ => Self::Unavailable(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_could_not_be_opened_again_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, aside) = (folder.path().join("offers.db"), folder.path().join("aside"));
        drop(Sqlite::open(&file).unwrap());
        let mut store = Sqlite::opened(&file, DatabaseState::ReadOnly).unwrap();
        std::fs::rename(&file, &aside).unwrap();
        std::fs::create_dir(&file).unwrap();
        store.tidy(Timestamp::UNIX_EPOCH, 1).unwrap_err();
        assert_eq!(store.state, DatabaseState::Closed);
        store.since(0, 1).unwrap_err();
        assert_eq!(store.state, DatabaseState::Closed);
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&aside, &file).unwrap();
        store.since(0, 1).unwrap();
        assert_eq!(store.state, DatabaseState::Open);
    }
}
