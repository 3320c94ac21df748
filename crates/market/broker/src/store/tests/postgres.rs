//! Tests for PostgreSQL only: concurrent starts, and sessions that end abnormally.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::commits::all;
use super::{TestStore, at, offer, put, soon};
use crate::store::postgres::{PATIENCE, Postgres};
use crate::store::{Condition, StoreError, StoreUrl};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_database_of_a_later_version_is_refused() {
    let world = TestStore::postgres();
    drop(world.open());
    world
        .database()
        .ask("UPDATE posthaste.version SET steps = 4");
    let Err(StoreError::Unusable(message)) = world.url.open() else {
        panic!("it is used");
    };
    assert!(
        message.contains("a later version of posthaste wrote this (schema 4, this one knows 3)"),
        "{message}"
    );
    assert!(
        message.starts_with("postgres://127.0.0.1/posthaste_"),
        "{message}"
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn brokers_may_begin_at_once() {
    let world = TestStore::postgres();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| all(&mut *world.open()));
        }
    });
    assert_eq!(
        world.database().ask("SELECT count(*) FROM posthaste.log"),
        "1"
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn commits_are_on_the_disk_before_they_are_answered() {
    let world = TestStore::postgres();
    let (database, name) = (world.database(), world.database().url());
    let name = name.rsplit('/').next().unwrap();
    database.ask(&format!(
        "ALTER DATABASE {name} SET synchronous_commit TO off"
    ));
    assert_eq!(database.ask("SHOW synchronous_commit"), "off");
    let mut store = world.postgres_store();
    assert_eq!(store.ask("SHOW synchronous_commit"), "on");
    database.ask(&format!(
        "ALTER DATABASE {name} SET synchronous_commit TO remote_write"
    ));
    let mut store = world.postgres_store();
    assert_eq!(store.ask("SHOW synchronous_commit"), "remote_write");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn pages_are_loaded_however_long_each_takes() {
    let world = TestStore::postgres();
    let mut store = world.open();
    let many: Vec<_> = (0..12_345)
        .map(|number| put(offer(&format!("{number}"), 1, 60), Condition::Any))
        .collect();
    for some in many.chunks(1_000) {
        store.commit(some, at()).unwrap();
    }
    let mut names = Vec::new();
    store
        .load(&mut |key, _| {
            if names.is_empty() {
                // Longer than the time limit for an idle writer.
                std::thread::sleep(PATIENCE + Duration::from_secs(1));
            }
            names.push(key.name.parse::<u32>().unwrap());
        })
        .unwrap();
    names.sort_unstable();
    assert!(names.into_iter().eq(0..12_345));
}

/// A broker that is cut off in a transaction blocks the others only briefly.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_writer_that_is_cut_off_blocks_others_only_briefly() {
    let world = TestStore::postgres();
    let mut store = world.open();
    let mut cut_off = world.postgres_store();
    cut_off.ask("BEGIN; SELECT last FROM log FOR UPDATE");
    let start = Instant::now();
    while let Err(error) = store.commit(&[put(offer("Gold", 1, 60), Condition::Any)], at()) {
        assert!(start.elapsed() < Duration::from_secs(60), "{error}");
    }
    assert_eq!(all(&mut *store).len(), 1);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_server_that_is_silent_or_gone_is_noticed_and_found_again() {
    let world = TestStore::postgres();
    let (relay, url) = world.over_a_relay();
    let mut store = url.open().unwrap();
    let gold = [put(offer("Gold", 1, 60), Condition::Any)];
    store.commit(&gold, at()).unwrap();

    relay.silence(true);
    let start = Instant::now();
    let error = store.commit(&gold, at()).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(
        error,
        StoreError::Unavailable("no answer within 5 s".to_owned())
    );
    assert!(
        store.since(0, 1).is_err(),
        "nor is there an answer to a new connection"
    );
    relay.silence(false);
    store.commit(&gold, at()).unwrap();

    relay.close();
    assert!(store.since(0, 1).is_err());
    assert!(store.since(0, 1).is_err());
    relay.reopen();
    store.since(0, 1).unwrap();
    assert_eq!(all(&mut *store).len(), 1);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_listener_hears_of_changes_and_of_what_it_may_have_missed() {
    let world = TestStore::postgres();
    let heard = Arc::new(AtomicU32::new(0));
    let count = || heard.load(Ordering::Relaxed);
    let mut store = world.open();
    let counter = heard.clone();
    let wake = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    store.listen(Box::new(wake)).unwrap();
    soon(|| count() == 1);
    let gold = [put(offer("Gold", 1, 60), Condition::Any)];
    world.open().commit(&gold, at()).unwrap();
    soon(|| count() == 2);
    // Rejected writes cause no notification.
    world
        .open()
        .commit(&[put(offer("Gold", 1, 60), Condition::Absent)], at())
        .unwrap();
    world.database().ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    soon(|| count() == 3);
    world.open().commit(&gold, at()).unwrap();
    soon(|| count() == 4);
    // The listener's thread ends with the store.
    drop(store);
    assert_eq!(Arc::strong_count(&heard), 1);
}

/// The server's certificate is valid for 127.0.0.1 and not for 127.0.0.2, where it listens too.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn over_tls_a_server_proves_its_name() {
    let certificate = std::env::var("POSTHASTE_POSTGRES_CERTIFICATE")
        .expect("POSTHASTE_POSTGRES_CERTIFICATE names the server's certificate");
    let world = TestStore::postgres();
    let plain = world.database().url();
    let over_tls = |url: &str| {
        let url: StoreUrl = format!("{url}?sslmode=require").parse().unwrap();
        match url {
            StoreUrl::Postgres(config) => Postgres::open(&config),
            StoreUrl::Sqlite(_) => panic!("it is in a file"),
        }
    };
    let refused = |url: &str| match over_tls(url) {
        Err(StoreError::Unavailable(message)) => message,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it is trusted"),
    };
    if std::env::var("SSL_CERT_FILE").as_ref() != Ok(&certificate) {
        let message = refused(&plain);
        assert!(message.contains("invalid peer certificate"), "{message}");
        // A process reads its trusted certificates from its environment.
        let mut trusting = std::process::Command::new(std::env::current_exe().unwrap());
        let this = "store::tests::postgres::over_tls_a_server_proves_its_name";
        trusting
            .args([this, "--exact", "--include-ignored"])
            .env("SSL_CERT_FILE", &certificate);
        assert!(trusting.status().unwrap().success());
        return;
    }
    let is_over_tls = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(over_tls(&plain).unwrap().ask(is_over_tls), "t");
    assert_eq!(world.postgres_store().ask(is_over_tls), "f");
    let elsewhere = plain.replace("127.0.0.1", "127.0.0.2");
    assert!(
        refused(&elsewhere).contains("not valid for name"),
        "{}",
        refused(&elsewhere)
    );
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_database_that_is_not_there_is_named_without_its_password() {
    let world = TestStore::postgres();
    let absent = world
        .database()
        .url()
        .replace("posthaste_", "absent_")
        .replace('@', ":secret@");
    let url: StoreUrl = absent.parse().unwrap();
    let Err(error) = url.open() else {
        panic!("it is there")
    };
    let message = error.to_string();
    assert!(
        message.contains("does not exist") && message.contains("absent_"),
        "{message}"
    );
    assert!(
        !message.contains("secret") && !format!("{url} {url:?}").contains("secret"),
        "{message}"
    );
}
