//! Tables, and migration from earlier versions.
//!
//! A version is the number of executed steps. A released step never changes; further steps are appended.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::super::StoreError;

/// Identifies a database of posthaste (`PRAGMA application_id`): "phst".
const OURS: u32 = 0x7068_7374;

const STEPS: [&str; 3] = [
    "
    CREATE TABLE offers (
        kind TEXT NOT NULL,
        provider TEXT NOT NULL,
        name TEXT NOT NULL,
        expires INTEGER NOT NULL, -- microseconds since 1970, as all times here
        body TEXT NOT NULL,       -- the offer as JSON
        PRIMARY KEY (kind, provider, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX offers_by_end ON offers (expires);

    CREATE TABLE changes (
        number INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        token INTEGER NOT NULL,
        kind TEXT NOT NULL,
        provider TEXT NOT NULL,
        name TEXT NOT NULL,
        body TEXT                 -- null where it was withdrawn
    ) STRICT;
    CREATE TABLE log (last INTEGER NOT NULL) STRICT;
    INSERT INTO log (last) VALUES (0);

    CREATE TABLE tokens (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        provider TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        made INTEGER NOT NULL,
        revoked INTEGER
    ) STRICT;
",
    "
    ALTER TABLE tokens ADD COLUMN role TEXT NOT NULL DEFAULT 'provider';

    CREATE TABLE accounts (
        name TEXT NOT NULL PRIMARY KEY,
        key BLOB UNIQUE,          -- SHA-256 of its API key
        certificate TEXT UNIQUE,  -- subject
        currency TEXT NOT NULL,
        budget INTEGER NOT NULL,  -- millionths, as all amounts here
        period INTEGER NOT NULL,  -- microseconds
        max_price INTEGER,
        made INTEGER NOT NULL,
        closed INTEGER,
        spent_in INTEGER NOT NULL, -- number of the period of `spent`, from 1970
        spent INTEGER NOT NULL,
        version INTEGER NOT NULL UNIQUE
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE account_log (last INTEGER NOT NULL) STRICT;
    INSERT INTO account_log (last) VALUES (0);

    CREATE TABLE gateways (
        gateway BLOB NOT NULL PRIMARY KEY,
        last INTEGER NOT NULL,    -- number of its last booked batch
        seen INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX gateways_by_seen ON gateways (seen);

    CREATE TABLE charges (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        started INTEGER NOT NULL, -- of the period
        gateway BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        account TEXT NOT NULL,
        amount INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        currency TEXT NOT NULL
    ) STRICT;
    CREATE INDEX charges_by_account ON charges (account, number);
",
    "
    ALTER TABLE gateways ADD COLUMN token INTEGER NOT NULL DEFAULT 0; -- that began it
",
];

/// Executes the missing steps. Fails unless the database is of posthaste or empty.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let missing = missing(&transaction)?;
    for step in missing {
        transaction.execute_batch(step)?;
    }
    if !missing.is_empty() {
        let known = STEPS.len();
        let marks = format!("PRAGMA application_id = {OURS}; PRAGMA user_version = {known}");
        transaction.execute_batch(&marks)?;
    }
    Ok(transaction.commit()?)
}

/// Rejects a database that needs migration. Changes nothing.
pub(super) fn check(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    match missing(&transaction)? {
        [] => Ok(()),
        _ => Err(StoreError::Unusable(
            "an earlier version of posthaste wrote this".to_owned(),
        )),
    }
}

/// Missing steps. Fails unless the database is of posthaste or empty.
fn missing(transaction: &Transaction<'_>) -> Result<&'static [&'static str], StoreError> {
    let number = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
    let owner = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if owner != i64::from(OURS) && (owner, version, tables) != (0, 0, 0) {
        let reason = "this database belongs to another program: name another file";
        return Err(StoreError::Unusable(reason.to_owned()));
    }
    let made = usize::try_from(version).unwrap_or(usize::MAX);
    let missing = STEPS.get(made..);
    missing.ok_or_else(|| StoreError::later_version(version, STEPS.len()))
}
