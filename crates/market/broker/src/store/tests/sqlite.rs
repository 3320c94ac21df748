//! Tests for SQLite only: foreign files, and a full disk.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rusqlite::Connection;

use super::commits::all;
use super::{TestStore, at, offer, put};
use crate::store::sqlite::Sqlite;
use crate::store::{Condition, Store as _, StoreError};

fn refusal(file: &Path) -> String {
    match Sqlite::open(file).unwrap_err() {
        StoreError::Unusable(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_is_something_else_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diary");
    let text = "Dear diary, ".repeat(1_000);
    std::fs::write(&file, &text).unwrap();
    assert!(refusal(&file).ends_with("diary: this is no SQLite database: name another file"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    let file = folder.path().join("other.sqlite");
    let other = Connection::open(&file).unwrap();
    other
        .execute_batch("CREATE TABLE diary (day TEXT)")
        .unwrap();
    assert!(
        refusal(&file)
            .ends_with("other.sqlite: this database belongs to another program: name another file")
    );
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = other.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_database_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("offers.sqlite");
    drop(Sqlite::open(&file).unwrap());
    let later = Connection::open(&file).unwrap();
    later.pragma_update(None, "user_version", 4).unwrap();
    assert!(
        refusal(&file)
            .contains("a later version of posthaste wrote this (schema 4, this one knows 3)")
    );
}

#[test]
fn a_store_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("absent/offers.sqlite");
    let error = Sqlite::open(&file).unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(message) if message.starts_with(file.to_str().unwrap())),
        "{error:?}"
    );
}

#[test]
fn commits_are_on_the_disk_before_they_are_answered() {
    let world = TestStore::sqlite();
    let store = Sqlite::open(&world.file()).unwrap();
    let pragma = |name| {
        store
            .connection()
            .pragma_query_value(None, name, |row| row.get::<_, String>(0))
    };
    assert_eq!(pragma("journal_mode").unwrap(), "wal");
    let synchronous = store
        .connection()
        .pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
    assert_eq!(synchronous.unwrap(), 2, "FULL");
}

#[test]
fn nobody_else_can_read_the_files() {
    let world = TestStore::sqlite();
    let mut store = Sqlite::open(&world.file()).unwrap();
    store
        .commit(&[put(offer("Gold", 40, 60), Condition::Any)], at())
        .unwrap();
    let file = world.file();
    let folder = file.parent().unwrap().read_dir().unwrap();
    let modes: Vec<u32> = folder
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert_eq!(
        modes, [0o600; 3],
        "the database, its log and the log's index"
    );
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let world = TestStore::sqlite();
    let mut store = Sqlite::open(&world.file()).unwrap();
    store
        .commit(&[put(offer("Gold", 40, 60), Condition::Any)], at())
        .unwrap();
    let pages: i64 = store
        .connection()
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    let most = |pages: i64| format!("PRAGMA max_page_count = {pages}");
    store.connection().execute_batch(&most(pages + 2)).unwrap();
    let many: Vec<_> = (0..100)
        .map(|number| put(offer(&format!("{number}"), 1, 60), Condition::Any))
        .collect();
    let error = store.commit(&many, at()).unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(message) if message.contains("full")),
        "{error:?}"
    );
    assert_eq!(all(&mut store).len(), 1);
    assert_eq!(all(&mut *world.open()).len(), 1);
    assert_eq!(store.load(&mut |_, _| ()).unwrap(), 1);
    // Once there is space again, writes succeed.
    store
        .connection()
        .execute_batch(&most(pages + 1_000))
        .unwrap();
    store.commit(&many, at()).unwrap();
    assert_eq!(all(&mut store).len(), 101);
    assert_eq!(store.load(&mut |_, _| ()).unwrap(), 101);
}

#[test]
fn an_offer_that_cannot_be_read_is_passed_over() {
    let world = TestStore::sqlite();
    let mut store = Sqlite::open(&world.file()).unwrap();
    let both = ["Gold", "Silver"].map(|name| put(offer(name, 40, 60), Condition::Any));
    store.commit(&both, at()).unwrap();
    let spoil =
        "UPDATE offers SET body = '{\"name\": \"Gold\", \"colour\": 1}' WHERE name = 'Gold'";
    store.connection().execute_batch(spoil).unwrap();
    let names: Vec<String> = all(&mut store)
        .into_iter()
        .map(|(key, _)| key.name)
        .collect();
    assert_eq!(names, ["Silver"]);
}
