//! Random histories: after each write a store agrees with the simplest model of a store.

use std::collections::BTreeMap;

use posthaste_qos::Offer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::commits::all;
use super::logs::changes;
use super::{TestStore, later, offer};
use crate::change::{OfferGroup, OfferKey, Tag};
use crate::store::{Condition, Write, WriteEffect, WriteOutcome};

super::over_all_stores! {
    a_store_does_what_is_said_of_it,
}

/// One write: changes (key, cents, expiry; no cents withdraws), and the number of its condition or complete list.
type Drawn = (Vec<(u8, Option<u64>, i64)>, u8);

fn key(number: u8) -> OfferKey {
    OfferKey {
        kind: format!("kind {}", number & 1),
        provider: format!("provider {}", number >> 1 & 1),
        name: format!("name {}", number >> 2),
    }
}

fn write(drawn: &Drawn) -> Write {
    let (changes, only_if) = drawn;
    let change = |(number, cents, end): &(u8, Option<u64>, i64)| {
        let key = key(*number);
        let offer = cents.map(|cents| offer(&key.name, cents, *end));
        (key, offer)
    };
    Write {
        by: 1,
        changes: changes.iter().map(change).collect(),
        only_if: match only_if {
            0..=3 => Condition::Any,
            4 => Condition::There,
            5 => Condition::Absent,
            6..=8 => {
                let cents = u64::from(only_if % 3);
                Condition::Says(Tag::from_offer(&offer(&key(0).name, cents, 5)))
            }
            _ => Condition::Any,
        },
        alone: (*only_if > 8).then(|| {
            let OfferKey { kind, provider, .. } = key(*only_if);
            OfferGroup { kind, provider }
        }),
    }
}

/// Model of a store, one write at a time.
#[derive(Default)]
struct Model {
    offers: BTreeMap<OfferKey, Offer>,
    log: Vec<(OfferKey, Option<Offer>)>,
}

impl Model {
    fn write(&mut self, write: &Write, second: i64) -> WriteOutcome {
        let there: Vec<Option<&Offer>> = write
            .changes
            .iter()
            .map(|(key, _)| {
                self.offers
                    .get(key)
                    .filter(|offer| offer.expires > later(second))
            })
            .collect();
        let holds = there.iter().all(|offer| match (write.only_if, offer) {
            (Condition::Any, _) | (Condition::There, Some(_)) | (Condition::Absent, None) => true,
            (Condition::Says(tag), Some(offer)) => tag == Tag::from_offer(offer),
            _ => false,
        });
        if !holds {
            return WriteOutcome::Refused;
        }
        let replaced = there.iter().flatten().count();
        for (key, offer) in &write.changes {
            let before = match offer {
                Some(offer) => self.offers.insert(key.clone(), offer.clone()),
                None => self.offers.remove(key),
            };
            let same = write.alone.is_some() && before == *offer;
            if (before.is_some() || offer.is_some()) && !same {
                self.log.push((key.clone(), offer.clone()));
            }
        }
        let others: Vec<OfferKey> = self
            .offers
            .keys()
            .filter(|key| {
                let group = write.alone.as_ref();
                group.is_some_and(|group| {
                    (&group.kind, &group.provider) == (&key.kind, &key.provider)
                }) && write.changes.iter().all(|(own, _)| own != *key)
            })
            .cloned()
            .collect();
        let mut withdrawn = 0;
        for key in others {
            let before = self.offers.remove(&key);
            withdrawn += usize::from(before.is_some_and(|offer| offer.expires > later(second)));
            self.log.push((key, None));
        }
        WriteOutcome::Made(WriteEffect {
            replaced,
            withdrawn,
        })
    }
}

fn a_store_does_what_is_said_of_it(world: &TestStore) {
    let change = (0u8..8, proptest::option::weighted(0.7, 0u64..3), 3i64..9);
    let drawn = (vec(change, 0..4), 0u8..13);
    let histories = vec(vec(drawn, 0..5), 1..8);
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let done = runner.run(&histories, |history| {
        let mut store = world.open();
        let everything: Vec<Write> = (0..8)
            .map(|number| write(&(vec![(number, None, 0)], 0)))
            .collect();
        store.commit(&everything, later(0)).unwrap();
        let from = store.load(&mut |_, _| ()).unwrap();
        let mut model = Model::default();
        for (second, batch) in (0..).zip(&history) {
            let batch: Vec<Write> = batch.iter().map(write).collect();
            let outcomes = store.commit(&batch, later(second)).unwrap();
            let wanted: Vec<WriteOutcome> = batch
                .iter()
                .map(|write| model.write(write, second))
                .collect();
            prop_assert_eq!(outcomes, wanted);
        }
        let wanted: Vec<(OfferKey, Offer)> = model.offers.into_iter().collect();
        prop_assert_eq!(all(&mut *store), wanted);
        let log = changes(store.since(from, usize::MAX >> 1).unwrap());
        prop_assert!(
            log.iter()
                .zip(from + 1..)
                .all(|(change, number)| change.number == number)
        );
        let log: Vec<_> = log
            .into_iter()
            .map(|change| (change.key, change.offer))
            .collect();
        prop_assert_eq!(log, model.log);
        Ok(())
    });
    done.unwrap();
}
