//! Writes, their conditions and their effects.

use jiff::Timestamp;
use posthaste_qos::Offer;

use super::{TestStore, at, later, offer, put, withdraw};
use crate::change::{OfferKey, Tag};
use crate::store::{Condition, Store, Write, WriteEffect, WriteOutcome};

super::over_all_stores! {
    committed_changes_are_there_when_the_store_opens_again,
    a_write_whose_condition_does_not_hold_is_left_out_whole,
    a_write_sees_those_before_it,
    expired_offers_count_as_absent,
    names_are_kept_as_they_are,
    all_that_is_loaded_is_of_one_moment,
}

pub(super) fn all(store: &mut dyn Store) -> Vec<(OfferKey, Offer)> {
    let mut all = Vec::new();
    store
        .load(&mut |key, offer| all.push((key, offer)))
        .unwrap();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

fn offers(store: &mut dyn Store) -> Vec<Offer> {
    let all = all(store).into_iter();
    all.map(|(_, offer)| offer).collect()
}

const MADE: WriteOutcome = WriteOutcome::Made(WriteEffect {
    replaced: 0,
    withdrawn: 0,
});
const REPLACED: WriteOutcome = WriteOutcome::Made(WriteEffect {
    replaced: 1,
    withdrawn: 0,
});

fn committed_changes_are_there_when_the_store_opens_again(world: &TestStore) {
    let (gold, silver) = (offer("Gold", 40, 60), offer("Silver", 20, 60));
    let writes = [
        put(gold.clone(), Condition::Any),
        put(silver.clone(), Condition::Any),
        withdraw("Bronze", Condition::Any),
    ];
    let done = world.open().commit(&writes, at()).unwrap();
    assert_eq!(done, [MADE, MADE, MADE]);
    let mut store = world.open();
    assert_eq!(offers(&mut *store), [gold, silver.clone()]);
    let done = store
        .commit(&[withdraw("Gold", Condition::Any)], at())
        .unwrap();
    assert_eq!(done, [REPLACED]);
    drop(store);
    let mut store = world.open();
    assert_eq!(offers(&mut *store), [silver]);
    assert_eq!(
        store.load(&mut |_, _| ()).unwrap(),
        3,
        "withdrawing nothing is no change"
    );
}

fn a_write_whose_condition_does_not_hold_is_left_out_whole(world: &TestStore) {
    let mut store = world.open();
    let (old, new) = (offer("Gold", 40, 60), offer("Gold", 30, 60));
    let both = |only_if| {
        let mut write = put(new.clone(), only_if);
        write
            .changes
            .extend(put(offer("Silver", 1, 60), only_if).changes);
        write
    };
    for (only_if, without, with) in [
        (Condition::Any, MADE, REPLACED),
        (Condition::There, WriteOutcome::Refused, REPLACED),
        (Condition::Absent, MADE, WriteOutcome::Refused),
        (
            Condition::Says(Tag::from_offer(&old)),
            WriteOutcome::Refused,
            REPLACED,
        ),
        (
            Condition::Says(Tag::from_offer(&new)),
            WriteOutcome::Refused,
            WriteOutcome::Refused,
        ),
    ] {
        let mut try_it = |before: Option<&Offer>, outcome| {
            let gone = ["Gold", "Silver"].map(|name| withdraw(name, Condition::Any));
            store.commit(&gone, at()).unwrap();
            let before = before.map(|offer| put(offer.clone(), Condition::Any));
            store.commit(before.as_slice(), at()).unwrap();
            let last = store.load(&mut |_, _| ()).unwrap();
            let marks = put(offer("Marks", 1, 60), Condition::Any);
            let done = store
                .commit(&[put(new.clone(), only_if), marks], at())
                .unwrap();
            assert_eq!(done[0], outcome, "{only_if:?} {before:?}");
            let is_new = offers(&mut *store).contains(&new);
            assert_eq!(
                is_new,
                outcome != WriteOutcome::Refused,
                "{only_if:?} {before:?}"
            );
            let changes = 1 + u64::from(is_new);
            assert_eq!(store.load(&mut |_, _| ()).unwrap(), last + changes);
        };
        try_it(None, without);
        try_it(Some(&old), with);
    }
    // If one of two offers is missing, neither is changed.
    let before = offers(&mut *store);
    let done = store
        .commit(&[both(Condition::There), both(Condition::Absent)], at())
        .unwrap();
    assert_eq!(done, [WriteOutcome::Refused, WriteOutcome::Refused]);
    assert_eq!(offers(&mut *store), before);
}

fn a_write_sees_those_before_it(world: &TestStore) {
    let mut store = world.open();
    let (first, second) = (offer("Gold", 40, 60), offer("Gold", 30, 60));
    let writes = [
        put(first.clone(), Condition::Absent),
        put(second.clone(), Condition::Says(Tag::from_offer(&first))),
        put(first.clone(), Condition::Absent),
        withdraw("Gold", Condition::There),
        withdraw("Gold", Condition::There),
        put(second.clone(), Condition::Absent),
    ];
    let done = store.commit(&writes, at()).unwrap();
    let refused = WriteOutcome::Refused;
    assert_eq!(done, [MADE, REPLACED, refused, REPLACED, refused, MADE]);
    assert_eq!(offers(&mut *store), [second]);
}

fn expired_offers_count_as_absent(world: &TestStore) {
    let mut store = world.open();
    let short = offer("Gold", 40, 10);
    store
        .commit(&[put(short.clone(), Condition::Any)], at())
        .unwrap();
    let mut commit = |only_if, now: Timestamp| {
        let gone = put(offer("Gold", 30, 60), only_if);
        store.commit(&[gone], now).unwrap()[0]
    };
    assert_eq!(commit(Condition::There, later(10)), WriteOutcome::Refused);
    let says = Condition::Says(Tag::from_offer(&short));
    assert_eq!(commit(says, later(10)), WriteOutcome::Refused);
    assert_eq!(commit(Condition::Absent, later(9)), WriteOutcome::Refused);
    assert_eq!(commit(Condition::Absent, later(10)), MADE);
}

fn names_are_kept_as_they_are(world: &TestStore) {
    let names = [
        "",
        " ",
        "'; DROP TABLE offers; --",
        "Bücher & Söhne",
        "a\nb",
        "%_\\",
        &"x".repeat(512),
    ];
    let keys = names.map(|name| OfferKey {
        kind: format!("kind {name}"),
        provider: name.to_owned(),
        name: format!("{name}!"),
    });
    let mut wanted: Vec<(OfferKey, Offer)> = keys
        .into_iter()
        .map(|key| {
            let offer = offer(&key.name, 1, 60);
            (key, offer)
        })
        .collect();
    wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut store = world.open();
    let write = |(key, offer): &(OfferKey, Offer)| Write {
        by: 0,
        changes: vec![(key.clone(), Some(offer.clone()))],
        only_if: Condition::Absent,
        alone: None,
    };
    let writes: Vec<Write> = wanted.iter().map(write).collect();
    store.commit(&writes, at()).unwrap();
    assert_eq!(all(&mut *store), wanted);
}

fn all_that_is_loaded_is_of_one_moment(world: &TestStore) {
    let (mut store, mut other) = (world.open(), world.open());
    let both = ["Gold", "Silver"].map(|name| put(offer(name, 40, 60), Condition::Any));
    store.commit(&both, at()).unwrap();
    let mut names = Vec::new();
    let last = store.load(&mut |key, _| {
        names.push(key.name);
        // Another broker writes meanwhile, without waiting.
        let more = put(
            offer(&format!("Tin {}", names.len()), 1, 60),
            Condition::Any,
        );
        let writes = [more, withdraw("Silver", Condition::Any)];
        std::thread::scope(|scope| {
            let done = scope.spawn(|| other.commit(&writes, at()));
            done.join().unwrap().unwrap()
        });
    });
    assert_eq!(last, Ok(2));
    assert_eq!(names, ["Gold", "Silver"]);
}
