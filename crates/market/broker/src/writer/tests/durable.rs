//! Acknowledged writes survive a kill of the process at any time.
//!
//! This test binary runs itself again as the publisher ([`publisher`]), reads the acknowledged writes from its output,
//! kills it at a random moment, and checks the store. `POSTHASTE_KILLS` sets the number of kills; default 20.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use posthaste_qos::{Custom, Number, Offer};
use posthaste_units::Seed;
use rand::RngExt as _;
use tokio::task::JoinSet;

use super::{TestWriter, wait};
use crate::change::OfferKey;
use crate::store::tests::{TestStore, offer, over_all_stores};
use crate::store::{Condition, Write, WriteOutcome};

over_all_stores! {
    acknowledged_writes_survive_a_kill,
}

/// Environment variable with the publisher's store.
const STORE: &str = "POSTHASTE_PUBLISH_TO";
/// Maximum number of pending writes.
const AT_ONCE: u64 = 16;
/// Offers per write. All of them are stored, or none.
const TOGETHER: u64 = 3;
/// Number of kills after which the test starts with a new store.
const PER_STORE: usize = 20;

/// Offers of one write, large enough for several pages of the database.
fn offers(number: u64) -> BTreeMap<OfferKey, Offer> {
    let made = |part: u64| {
        let name = format!("{number} {part}");
        let mut offer = offer(&name, number + part, 1 << 30);
        let custom = (0..number % 32).map(|metric| Custom {
            name: format!("metric {metric}"),
            ontology: "x".repeat(metric as usize * 16),
            value: Number::new((number * metric) as f64).unwrap(),
        });
        offer.qos.default.server.custom = custom.collect();
        let key = OfferKey {
            kind: format!("kind {part}"),
            provider: "a".to_owned(),
            name,
        };
        (key, offer)
    };
    (0..TOGETHER).map(made).collect()
}

fn write(number: u64) -> Write {
    let offers = offers(number).into_iter();
    Write {
        by: 0,
        changes: offers.map(|(key, offer)| (key, Some(offer))).collect(),
        only_if: Condition::Absent,
        alone: None,
    }
}

/// Publishes forever to the store in [`STORE`], and prints the number of each acknowledged write.
#[test]
fn publisher() {
    let Ok(store) = std::env::var(STORE) else {
        return;
    };
    let kept = TestWriter::over(
        store
            .parse::<crate::store::StoreUrl>()
            .unwrap()
            .open()
            .unwrap(),
    );
    let first = kept.registry.read().number;
    wait(async {
        let mut writers = JoinSet::new();
        for task in 0..AT_ONCE {
            let writer = kept.writer.clone();
            writers.spawn(async move {
                for round in 0.. {
                    let number = first + round * AT_ONCE + task;
                    // Unacknowledged writes of the previous publisher may exist.
                    if let Ok(WriteOutcome::Made(_)) = writer.write(write(number)).await {
                        println!("acknowledged {number}.");
                    }
                }
            });
        }
        writers.join_all().await;
    });
}

/// Acknowledged writes of a publisher that is killed `then` after `acknowledged` acknowledgements.
fn published(world: &TestStore, acknowledged: usize, then: Duration) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "writer::tests::durable::publisher",
            "--exact",
            "--nocapture",
        ])
        .env(STORE, world.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, heard) = channel();
    let hear = move || {
        let lines = output.lines().map(Result::unwrap);
        // The last line may be incomplete.
        let numbers = lines.filter_map(|line| {
            let number = line.strip_prefix("acknowledged ")?.strip_suffix('.')?;
            number.parse::<u64>().ok()
        });
        numbers.for_each(|number| sender.send(number).unwrap());
    };
    let hear = std::thread::spawn(hear);
    let mut numbers: Vec<u64> = heard.iter().take(acknowledged).collect();
    std::thread::sleep(then);
    child.kill().unwrap();
    child.wait().unwrap();
    numbers.extend(heard);
    hear.join().unwrap();
    numbers
}

fn acknowledged_writes_survive_a_kill(world: &TestStore) {
    let kills = std::env::var("POSTHASTE_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let mut moments = Seed(1).stream("kills");
    let mut stores: Vec<TestStore> = Vec::new();
    let mut total = 0;
    let mut acknowledged = BTreeSet::new();
    for kill in 0..kills {
        if kill % PER_STORE == 0 {
            acknowledged.clear();
            stores.clear();
            stores.push(world.another());
        }
        let world = &stores[0];
        // Sometimes also while it opens the store.
        let before = match moments.random_range(0..4) {
            0 => 0,
            _ => moments.random_range(1..100),
        };
        let then = Duration::from_micros(moments.random_range(0..30_000));
        let numbers = published(world, before, then);
        assert!(numbers.len() >= before);
        total += numbers.len();
        acknowledged.extend(numbers);

        let mut there: BTreeMap<OfferKey, Offer> = BTreeMap::new();
        let mut store = world.open();
        let last = store
            .load(&mut |key, offer| drop(there.insert(key, offer)))
            .unwrap();
        let lost: Vec<&u64> = acknowledged
            .iter()
            .filter(|number| {
                offers(**number)
                    .iter()
                    .any(|(key, offer)| there.get(key) != Some(offer))
            })
            .collect();
        assert!(
            lost.is_empty(),
            "after kill {kill}: {lost:?} of {} are lost",
            acknowledged.len()
        );
        assert_eq!(there.len() as u64 % TOGETHER, 0, "a write is there in part");
        assert_eq!(last, there.len() as u64, "an offer for each change");
    }
    let url = world.url();
    let store = url.split(':').next().unwrap();
    println!("{store}: {total} writes acknowledged in {kills} lives, none lost");
}
