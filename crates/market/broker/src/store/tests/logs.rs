//! The log: order, end and deletion.

use super::commits::all;
use super::{TestStore, at, later, offer, put, withdraw};
use crate::change::OfferChange;
use crate::store::{AT_ONCE, Condition, Log, Write};

super::over_all_stores! {
    the_log_has_every_change_in_order,
    a_log_that_does_not_go_on_says_so,
    expired_offers_are_removed_a_minute_later,
    much_is_forgotten_bit_by_bit,
    an_audit_says_who,
}

pub(super) fn changes(log: Log) -> Vec<OfferChange> {
    match log {
        Log::Changes(changes) => changes,
        Log::Forgotten => panic!("the log is forgotten"),
    }
}

fn numbered(count: u64) -> Vec<Write> {
    (0..count)
        .map(|number| put(offer(&format!("{number}"), number, 60), Condition::Any))
        .collect()
}

fn the_log_has_every_change_in_order(world: &TestStore) {
    let mut store = world.open();
    assert_eq!(store.since(0, 10).unwrap(), Log::Changes(Vec::new()));
    store.commit(&numbered(3), at()).unwrap();
    store
        .commit(&[withdraw("1", Condition::Any)], later(1))
        .unwrap();
    let log = changes(world.open().since(0, 10).unwrap());
    let entries: Vec<_> = log
        .iter()
        .map(|change| {
            (
                change.number,
                change.at,
                &*change.key.name,
                change.offer.clone(),
            )
        })
        .collect();
    assert_eq!(
        entries,
        [
            (1, at(), "0", Some(offer("0", 0, 60))),
            (2, at(), "1", Some(offer("1", 1, 60))),
            (3, at(), "2", Some(offer("2", 2, 60))),
            (4, later(1), "1", None),
        ]
    );
    assert_eq!(changes(store.since(1, 2).unwrap()), log[1..3]);
    assert_eq!(changes(store.since(4, 2).unwrap()), []);
}

fn a_log_that_does_not_go_on_says_so(world: &TestStore) {
    let mut store = world.open();
    store.commit(&numbered(10), at()).unwrap();
    // The store was restored from an older copy.
    assert_eq!(store.since(11, 10).unwrap(), Log::Forgotten);
    store.tidy(at(), 4).unwrap();
    assert_eq!(store.since(5, 10).unwrap(), Log::Forgotten);
    assert_eq!(changes(store.since(6, 10).unwrap()).len(), 4);
    store.tidy(at(), 0).unwrap();
    assert_eq!(store.since(8, 10).unwrap(), Log::Forgotten);
    assert_eq!(
        changes(store.since(9, 10).unwrap()).len(),
        1,
        "the last is kept"
    );
    store.commit(&numbered(1), at()).unwrap();
    assert_eq!(changes(store.since(10, 10).unwrap())[0].number, 11);
}

fn expired_offers_are_removed_a_minute_later(world: &TestStore) {
    let mut store = world.open();
    let writes = [10, 20].map(|end| put(offer(&format!("{end}"), 1, end), Condition::Any));
    store.commit(&writes, at()).unwrap();
    let mut names = |now| {
        store.tidy(now, 100).unwrap();
        let all = all(&mut *store).into_iter();
        all.map(|(key, _)| key.name).collect::<Vec<_>>()
    };
    assert_eq!(names(later(69)), ["10", "20"]);
    assert_eq!(names(later(70)), ["20"]);
    assert_eq!(names(later(90)), [""; 0]);
    assert_eq!(
        changes(store.since(2, 10).unwrap()),
        [],
        "no change of the log"
    );
}

fn much_is_forgotten_bit_by_bit(world: &TestStore) {
    let mut store = world.open();
    let most = AT_ONCE as u64;
    store.commit(&numbered(most + 5), at()).unwrap();
    assert!(store.tidy(later(1_000), 1).unwrap());
    assert_eq!(all(&mut *store).len(), 5);
    assert_eq!(store.since(most - 1, 10).unwrap(), Log::Forgotten);
    assert_eq!(changes(store.since(most, 10).unwrap()).len(), 5);
    assert!(!store.tidy(later(1_000), 1).unwrap());
    assert_eq!(all(&mut *store).len(), 0);
    assert_eq!(store.since(most, 10).unwrap(), Log::Forgotten);
}

fn an_audit_says_who(world: &TestStore) {
    let mut store = world.open();
    store.commit(&numbered(3), at()).unwrap();
    let log = changes(store.since(0, 10).unwrap());
    let newest = store.audit(2).unwrap();
    assert_eq!(newest, [(7, log[2].clone()), (7, log[1].clone())]);
}
