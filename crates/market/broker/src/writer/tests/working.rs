//! Behaviour of the store writer, the same with every store.

use jiff::Timestamp;
use tokio::task::JoinSet;

use super::{TestWriter, all_at_once, ask, ends, put_valid, soon, valid, wait};
use crate::store::tests::{TestStore, over_all_stores, put, withdraw};
use crate::store::{Condition, Log, WriteEffect, WriteOutcome};
use crate::token::{Hash, TokenRole};

over_all_stores! {
    writes_are_visible_at_once,
    a_writer_begins_with_what_is_there,
    many_writers_are_answered_each_with_its_own,
    the_log_can_be_read,
    expired_offers_disappear_without_a_write,
    tokens_made_elsewhere_hold_here,
    writes_requested_before_the_end_are_done,
}

fn writes_are_visible_at_once(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    let gold = valid("Gold");
    let done = kept.write(put(gold.clone(), Condition::Absent));
    assert_eq!(
        done,
        Ok(WriteOutcome::Made(WriteEffect {
            replaced: 0,
            withdrawn: 0
        }))
    );
    assert_eq!(kept.offers(), [gold]);
    assert_eq!(
        kept.write(put_valid("Gold")),
        Ok(WriteOutcome::Made(WriteEffect {
            replaced: 1,
            withdrawn: 0
        }))
    );
    assert_eq!(
        kept.write(put(valid("Gold"), Condition::Absent)),
        Ok(WriteOutcome::Refused)
    );
    kept.write(withdraw("Gold", Condition::There)).unwrap();
    assert_eq!(kept.names(), [""; 0]);
    assert_eq!(kept.registry.read().number, 3);
}

fn a_writer_begins_with_what_is_there(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    for name in ["Gold", "Silver"] {
        kept.write(put_valid(name)).unwrap();
    }
    let before = kept.offers();
    drop(kept.running);
    let kept = TestWriter::in_world(world);
    assert_eq!((kept.offers(), kept.registry.read().number), (before, 2));
}

fn many_writers_are_answered_each_with_its_own(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    kept.write(put_valid("0")).unwrap();
    let writes = (0..3_000).map(|number| {
        let only_if = [Condition::Absent, Condition::There][number % 2];
        put(valid(&format!("{}", number / 2)), only_if)
    });
    // `Absent` succeeds for every new name. `There` is refused if it comes before `Absent`.
    let outcomes = wait(all_at_once(&kept.writer, writes.collect()));
    let count = |outcome| {
        outcomes
            .iter()
            .filter(|other| **other == Ok(outcome))
            .count()
    };
    assert_eq!(
        count(WriteOutcome::Refused)
            + count(WriteOutcome::Made(WriteEffect {
                replaced: 0,
                withdrawn: 0
            }))
            + count(WriteOutcome::Made(WriteEffect {
                replaced: 1,
                withdrawn: 0
            })),
        3_000
    );
    assert_eq!(
        count(WriteOutcome::Made(WriteEffect {
            replaced: 0,
            withdrawn: 0
        })),
        1_499
    );
    assert_eq!(kept.names().len(), 1_500);
}

fn the_log_can_be_read(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    for name in ["a", "b", "c"] {
        kept.write(put_valid(name)).unwrap();
    }
    let Log::Changes(log) = wait(kept.writer.since(1, 1)).unwrap() else {
        panic!("it is all there");
    };
    assert_eq!((log.len(), log[0].number, &*log[0].key.name), (1, 2, "b"));
    assert_eq!(wait(kept.writer.since(4, 1)), Ok(Log::Forgotten));
}

fn expired_offers_disappear_without_a_write(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    kept.write(put(ends("short", 1), Condition::Any)).unwrap();
    kept.write(put_valid("long")).unwrap();
    assert_eq!(kept.names().last().unwrap(), "short");
    soon(|| kept.names() == ["long"]);
}

fn tokens_made_elsewhere_hold_here(world: &TestStore) {
    let kept = TestWriter::in_world(world);
    let mut store = world.open();
    assert!(kept.registry.grant("secret").is_none());
    let number = store
        .grant(
            TokenRole::Provider,
            "a",
            Hash::from_token("secret"),
            Timestamp::now(),
        )
        .unwrap();
    soon(|| {
        kept.registry
            .grant("secret")
            .is_some_and(|grant| grant.provider == "a")
    });
    assert!(store.revoke(number, Timestamp::now()).unwrap());
    soon(|| kept.registry.grant("secret").is_none());
}

fn writes_requested_before_the_end_are_done(world: &TestStore) {
    let TestWriter {
        writer, running, ..
    } = TestWriter::in_world(world);
    let writes = (0..500).map(|number| put_valid(&format!("{number}")));
    let outcomes = wait(async {
        let batch: JoinSet<_> = writes.map(|write| ask(&writer, write)).collect();
        // At least one task makes its request per yield.
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        drop(running);
        batch.join_all().await
    });
    assert_eq!(outcomes.len(), 500);
    assert!(outcomes.iter().all(Result::is_ok));
    assert!(wait(writer.write(put_valid("late"))).is_err());
    assert_eq!(TestWriter::in_world(world).names().len(), 500);
}
