//! Two store writers on one store.

#[cfg(feature = "postgres")]
use std::time::{Duration, Instant};

use super::{TestWriter, all_at_once, put_valid, soon, wait};
use crate::store::tests::{TestStore, over_all_stores, withdraw};
use crate::store::{Condition, Write};
#[cfg(feature = "postgres")]
use crate::writer::WriteError;

over_all_stores! {
    two_writers_come_to_the_same,
}

fn two_writers_come_to_the_same(world: &TestStore) {
    let both = [TestWriter::in_world(world), TestWriter::in_world(world)];
    let writes = |first: usize| -> Vec<Write> {
        let write = |number: usize| {
            let name = format!("{}", (number * 7 + first) % 50);
            match number % 3 {
                0 => withdraw(&name, Condition::Any),
                _ => put_valid(&name),
            }
        };
        (0..400).map(write).collect()
    };
    std::thread::scope(|scope| {
        for (first, kept) in both.iter().enumerate() {
            scope.spawn(move || {
                for some in writes(first).chunks(20) {
                    for outcome in wait(all_at_once(&kept.writer, some.to_vec())) {
                        outcome.unwrap();
                    }
                }
            });
        }
    });
    let last = world.open().load(&mut |_, _| ()).unwrap();
    soon(|| both.iter().all(|kept| kept.registry.read().number == last));
    assert_eq!(both[0].offers(), both[1].offers());
    assert!(!both[0].offers().is_empty());
}

#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_broker_cut_off_from_its_store_reports_it_and_catches_up() {
    let world = TestStore::postgres();
    let (relay, url) = world.over_a_relay();
    let (near, far) = (
        TestWriter::in_world(&world),
        TestWriter::over(url.open().unwrap()),
    );
    near.write(put_valid("Gold")).unwrap();
    soon(|| far.names() == ["Gold"]);
    assert_eq!(far.registry.age(), None);

    relay.silence(true);
    let lost = far.write(put_valid("Silver"));
    assert!(matches!(lost, Err(WriteError::Store(_))), "{lost:?}");
    soon(|| far.registry.age().is_some());
    for number in 0..300 {
        near.write(put_valid(&format!("{number}"))).unwrap();
    }
    assert_eq!(far.names(), ["Gold"], "lookups go on");

    relay.silence(false);
    soon(|| far.offers() == near.offers() && far.registry.age().is_none());
    assert!(far.names().len() > 300);
    far.write(put_valid("Tin")).unwrap();
    soon(|| near.names().contains(&"Tin".to_owned()));
}

/// Retried, because a busy machine may delay a single check.
#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test runs it"]
fn a_lost_database_is_told_within_a_second() {
    let world = TestStore::postgres();
    let (relay, url) = world.over_a_relay();
    let kept = TestWriter::over(url.open().unwrap());
    let cut = |lost: &dyn Fn(), back: &dyn Fn()| {
        soon(|| kept.registry.outage().is_none());
        lost();
        let begun = Instant::now();
        soon(|| kept.registry.outage().is_some());
        let took = begun.elapsed();
        back();
        took
    };
    let quick = |lost: &dyn Fn(), back: &dyn Fn()| {
        let mut all = (0..5).map(|_| cut(lost, back));
        all.any(|took| took < Duration::from_secs(1))
    };
    assert!(quick(&|| relay.close(), &|| relay.reopen()), "closed");
    assert!(
        quick(&|| relay.silence(true), &|| relay.silence(false)),
        "silent"
    );
}
