//! Accounts and charges in a store.

use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, ChargeQuery, ChargeReport, Hex, NewAccount, ReportedCharge,
};
use posthaste_qos::Money;
use posthaste_units::Span;

use super::{TestStore, at, later};
use crate::store::accounts::{AccountCounts, AccountOutcome, ReportOutcome, StoredAccount};
use crate::store::{Store, StoreError};

super::over_all_stores! {
    a_batch_is_booked_once,
    gateways_learn_what_others_have_charged,
    a_version_that_the_store_has_not_reached_is_none,
    an_unreadable_currency_is_an_error,
    a_batch_of_an_unknown_gateway_is_not_booked,
    a_batch_belongs_to_the_token_that_began_it,
    a_wrong_charge_books_nothing_of_its_batch,
    keys_and_certificates_have_one_account,
    a_period_begins_with_the_whole_budget,
    charges_are_listed_by_account_and_time,
    old_charges_and_gateways_are_deleted,
}

/// Number of the token of the gateways.
const TOKEN: u64 = 7;

fn eur(cents: u64) -> Money {
    Money::from_micros(cents * 10_000, "EUR".parse().unwrap()).unwrap()
}

fn new(name: &str, key: u8) -> NewAccount {
    NewAccount {
        name: name.to_owned(),
        key_sha256: Some(Hex([key; 32])),
        certificate: None,
        budget: eur(1_000),
        period: Span::from_secs(3_600),
        max_price: Some(eur(5)),
    }
}

/// Adds accounts of these names.
fn add(store: &mut dyn Store, names: &[&str]) {
    for (key, name) in (1..).zip(names) {
        let added = store.add_account(&new(name, key), at(), 100).unwrap();
        assert!(matches!(added, AccountOutcome::Made(_)), "{added:?}");
    }
}

fn report(gateway: u8, sequence: u64, charges: &[(&str, u64)]) -> ChargeReport {
    let charges = charges.iter().map(|(account, cents)| ReportedCharge {
        account: (*account).to_owned(),
        charge: eur(*cents),
        requests: 2,
    });
    ChargeReport {
        gateway: Hex([gateway; 16]),
        sequence,
        known: 0,
        charges: charges.collect(),
    }
}

/// Books a report. Returns true if it was booked before.
#[track_caller]
fn book(store: &mut dyn Store, report: &ChargeReport, now: Timestamp) -> bool {
    match store.report(report, TOKEN, now).unwrap() {
        ReportOutcome::Booked { is_repeated, .. } => is_repeated,
        other => panic!("{other:?}"),
    }
}

fn spent(store: &mut dyn Store, name: &str, now: Timestamp) -> Money {
    store.account(name).unwrap().unwrap().state(now).spent
}

fn a_batch_is_booked_once(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada", "bob"]);
    assert!(!book(&mut *store, &report(1, 0, &[]), at()));
    let first = report(1, 1, &[("ada", 10), ("bob", 20)]);
    assert!(!book(&mut *store, &first, later(1)));
    assert!(book(&mut *store, &first, later(2)));
    // After a restart of the broker, too.
    let mut store = world.open();
    assert!(book(&mut *store, &first, later(3)));
    assert!(!book(&mut *store, &report(1, 2, &[("ada", 1)]), later(4)));
    assert_eq!(spent(&mut *store, "ada", later(5)), eur(11));
    assert_eq!(spent(&mut *store, "bob", later(5)), eur(20));
    for sequence in [1, 4] {
        let other = report(1, sequence, &[("ada", 1)]);
        assert_eq!(
            store.report(&other, TOKEN, later(5)),
            Ok(ReportOutcome::Unknown)
        );
    }
    let query = ChargeQuery {
        limit: 10,
        ..ChargeQuery::default()
    };
    assert_eq!(store.charges(&query).unwrap().len(), 3);
}

fn a_batch_belongs_to_the_token_that_began_it(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    assert!(!book(&mut *store, &report(1, 0, &[]), at()));
    let batch = report(1, 1, &[("ada", 10)]);
    for report in [&report(1, 0, &[]), &batch] {
        let other = store.report(report, TOKEN + 1, later(1));
        assert_eq!(other, Ok(ReportOutcome::Unknown));
    }
    assert!(!book(&mut *store, &batch, later(2)), "booked by another");
    let other = store.report(&batch, TOKEN + 1, later(3));
    assert_eq!(other, Ok(ReportOutcome::Unknown), "a repetition");
    assert_eq!(spent(&mut *store, "ada", later(4)), eur(10));
}

fn gateways_learn_what_others_have_charged(world: &TestStore) {
    let (mut one, mut two) = (world.open(), world.open());
    add(&mut *one, &["ada", "bob"]);
    book(&mut *one, &report(1, 0, &[]), at());
    let begun = two.report(&report(2, 0, &[]), TOKEN, at()).unwrap();
    let ReportOutcome::Booked {
        known, accounts, ..
    } = begun
    else {
        panic!("{begun:?}");
    };
    assert_eq!(accounts.len(), 2);
    book(&mut *one, &report(1, 1, &[("bob", 30)]), later(1));
    let seen = ChargeReport {
        known,
        ..report(2, 0, &[])
    };
    let reply = two.report(&seen, TOKEN, later(2)).unwrap();
    let ReportOutcome::Booked {
        known: after,
        more,
        accounts,
        ..
    } = reply
    else {
        panic!("{reply:?}");
    };
    assert!(after > known && !more);
    let states: Vec<_> = accounts
        .iter()
        .map(|account| account.state(later(2)))
        .collect();
    assert_eq!(states.len(), 1);
    assert_eq!((&*states[0].name, states[0].spent), ("bob", eur(30)));
}

fn a_version_that_the_store_has_not_reached_is_none(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada", "bob"]);
    book(&mut *store, &report(1, 0, &[]), at());
    let mut known = |known| {
        let seen = ChargeReport {
            known,
            ..report(1, 0, &[])
        };
        match store.report(&seen, TOKEN, at()).unwrap() {
            ReportOutcome::Booked { accounts, .. } => accounts.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([1, 2, 3, u64::MAX].map(&mut known), [1, 0, 2, 2]);
}

fn an_unreadable_currency_is_an_error(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    book(&mut *store, &report(1, 0, &[]), at());
    world.execute("UPDATE accounts SET currency = 'euro'");
    let wrong = |error: StoreError| {
        let message = error.to_string();
        assert!(matches!(error, StoreError::Unusable(_)), "{message}");
        assert!(message.contains("\"euro\" is not a currency"), "{message}");
    };
    wrong(store.account("ada").unwrap_err());
    wrong(store.accounts("", 1).unwrap_err());
    let charge = report(1, 1, &[("ada", 1)]);
    wrong(store.report(&charge, TOKEN, at()).unwrap_err());
    world.execute("UPDATE accounts SET currency = 'EUR'");
    assert!(!book(&mut *store, &charge, at()));
    world.execute("UPDATE charges SET currency = 'euro'");
    let query = ChargeQuery {
        limit: 1,
        ..ChargeQuery::default()
    };
    wrong(store.charges(&query).unwrap_err());
}

fn a_batch_of_an_unknown_gateway_is_not_booked(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    let early = report(1, 1, &[("ada", 10)]);
    assert_eq!(
        store.report(&early, TOKEN, at()),
        Ok(ReportOutcome::Unknown)
    );
    assert_eq!(spent(&mut *store, "ada", at()), eur(0));
    book(&mut *store, &report(1, 0, &[]), at());
    book(&mut *store, &early, at());
    assert_eq!(spent(&mut *store, "ada", at()), eur(10));
}

fn a_wrong_charge_books_nothing_of_its_batch(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    book(&mut *store, &report(1, 0, &[]), at());
    let wrong = report(1, 1, &[("ada", 10), ("eve", 10)]);
    let refused = Ok(ReportOutcome::Wrong("eve".to_owned()));
    assert_eq!(store.report(&wrong, TOKEN, at()), refused);
    let mut dollars = report(1, 1, &[("ada", 10)]);
    dollars.charges[0].charge = Money::new("1", "USD".parse().unwrap()).unwrap();
    let refused = Ok(ReportOutcome::Wrong("ada".to_owned()));
    assert_eq!(store.report(&dollars, TOKEN, at()), refused);
    assert_eq!(spent(&mut *store, "ada", at()), eur(0));
    assert!(!book(&mut *store, &report(1, 1, &[("ada", 10)]), at()));
}

fn keys_and_certificates_have_one_account(world: &TestStore) {
    let mut store = world.open();
    let with = |name, key, subject: &str| NewAccount {
        certificate: Some(subject.to_owned()),
        ..new(name, key)
    };
    let mut add = |new: &NewAccount, most| store.add_account(new, at(), most).unwrap();
    let made = add(&with("ada", 1, "CN=ada"), 2);
    assert!(matches!(made, AccountOutcome::Made(_)), "{made:?}");
    assert_eq!(add(&with("ada", 2, "CN=b"), 2), AccountOutcome::Exists);
    assert_eq!(add(&with("bob", 1, "CN=b"), 2), AccountOutcome::KeyTaken);
    let taken = add(&with("bob", 2, "CN=ada"), 2);
    assert_eq!(taken, AccountOutcome::CertificateTaken);
    add(&with("bob", 2, "CN=b"), 2);
    assert_eq!(add(&with("eve", 3, "CN=e"), 2), AccountOutcome::Full);
    let theirs = AccountChange {
        key_sha256: Some(Some(Hex([1; 32]))),
        ..AccountChange::default()
    };
    let taken = store.change_account("bob", &theirs, at()).unwrap();
    assert_eq!(taken, AccountOutcome::KeyTaken);
    let absent = store.change_account("eve", &theirs, at()).unwrap();
    assert_eq!(absent, AccountOutcome::Absent);
    store.close_account("ada", later(1)).unwrap();
    let closed = store.close_account("ada", later(2)).unwrap();
    assert_eq!(closed, AccountOutcome::Closed);
    // A closed account frees its key.
    let changed = store.change_account("bob", &theirs, later(3)).unwrap();
    assert!(matches!(changed, AccountOutcome::Made(_)), "{changed:?}");
    let all: Vec<StoredAccount> = world.open().accounts("", 10).unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|account| (&*account.name, account.key))
        .collect();
    assert_eq!(names, [("ada", None), ("bob", Some([1; 32]))]);
    assert_eq!(store.accounts("ada", 10).unwrap().len(), 1);
}

fn a_period_begins_with_the_whole_budget(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    book(&mut *store, &report(1, 0, &[]), at());
    book(&mut *store, &report(1, 1, &[("ada", 1_001)]), at());
    let counts = |open, overdrawn| AccountCounts {
        open,
        closed: 0,
        overdrawn,
    };
    assert_eq!(store.count_accounts(later(1)), Ok(counts(1, 1)));
    assert_eq!(store.count_accounts(later(3_600)), Ok(counts(1, 0)));
    let state = store.account("ada").unwrap().unwrap().state(later(3_599));
    assert_eq!((state.spent, state.period_ends_in_ms), (eur(1_001), 1_000));
    assert_eq!(spent(&mut *store, "ada", later(3_600)), eur(0));
    book(&mut *store, &report(1, 2, &[("ada", 3)]), later(3_700));
    assert_eq!(spent(&mut *store, "ada", later(3_700)), eur(3));
}

fn charges_are_listed_by_account_and_time(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada", "bob"]);
    book(&mut *store, &report(1, 0, &[]), at());
    for sequence in 1..=3 {
        let charges = [("ada", sequence), ("bob", 10 * sequence)];
        let now = later(sequence as i64);
        book(&mut *store, &report(1, sequence, &charges), now);
    }
    let mut amounts = |query: ChargeQuery| {
        let query = ChargeQuery { limit: 10, ..query };
        let found = store.charges(&query).unwrap();
        found.iter().map(|record| record.charge).collect::<Vec<_>>()
    };
    let ada = ChargeQuery {
        account: Some("ada".to_owned()),
        ..ChargeQuery::default()
    };
    assert_eq!(amounts(ada.clone()), [eur(1), eur(2), eur(3)]);
    let between = ChargeQuery {
        from: Some(later(2)),
        until: Some(later(3)),
        ..ChargeQuery::default()
    };
    assert_eq!(amounts(between), [eur(2), eur(20)]);
    let after = ChargeQuery { after: 5, ..ada };
    assert_eq!(amounts(after), []);
    let whole = ChargeQuery {
        limit: 1,
        ..ChargeQuery::default()
    };
    let record = store.charges(&whole).unwrap().remove(0);
    assert_eq!(
        (record.number, record.at, record.period),
        (1, later(1), at())
    );
    assert_eq!((record.gateway, record.sequence), (Hex([1; 16]), 1));
    assert_eq!((&*record.account, record.requests), ("ada", 2));
}

fn old_charges_and_gateways_are_deleted(world: &TestStore) {
    let mut store = world.open();
    add(&mut *store, &["ada"]);
    book(&mut *store, &report(1, 0, &[]), at());
    for sequence in 1..=5 {
        book(&mut *store, &report(1, sequence, &[("ada", 1)]), at());
    }
    assert_eq!(store.tidy_accounts(later(1), 3), Ok(false));
    let query = ChargeQuery {
        limit: 10,
        ..ChargeQuery::default()
    };
    let left = store.charges(&query).unwrap();
    let numbers: Vec<u64> = left.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [3, 4, 5]);
    assert_eq!(spent(&mut *store, "ada", later(1)), eur(5));
    let days = 24 * 3_600;
    // An empty report keeps the gateway known.
    assert!(!book(&mut *store, &report(1, 5, &[]), later(20 * days)));
    store.tidy_accounts(later(40 * days), 3).unwrap();
    assert!(book(
        &mut *store,
        &report(1, 5, &[("ada", 1)]),
        later(40 * days)
    ));
    store.tidy_accounts(later(71 * days), 3).unwrap();
    let forgotten = store.report(&report(1, 6, &[("ada", 1)]), TOKEN, later(71 * days));
    assert_eq!(forgotten, Ok(ReportOutcome::Unknown));
}
