//! What was acknowledged is there, whenever the process is killed.
//!
//! This test binary starts itself once more as the publisher ([`publisher`]), reads what it says was acknowledged, kills
//! it at a moment drawn by chance, and looks into the store. `POSTHASTE_KILLS` says how often, 20 times without it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use posthaste_units::Seed;
use posthaste_wsqos::qos::{Custom, Number, Offer};
use rand::RngExt as _;
use tokio::task::JoinSet;

use super::{Kept, wait};
use crate::change::Key;
use crate::store::tests::{World, offer, over_all_stores};
use crate::store::{Condition, Outcome, Write};

over_all_stores! {
    what_was_acknowledged_outlives_a_kill,
}

/// Tells the publisher where the store is.
const STORE: &str = "POSTHASTE_PUBLISH_TO";
/// Writes that are on their way at once.
const AT_ONCE: u64 = 16;
/// Offers of one write: all of them are there, or none.
const TOGETHER: u64 = 3;
/// Kills after which a store has grown enough.
const PER_STORE: usize = 20;

/// The offers of one write: large enough that one lies on several pages.
fn offers(number: u64) -> BTreeMap<Key, Offer> {
    let made = |part: u64| {
        let name = format!("{number} {part}");
        let mut offer = offer(&name, number + part, 1 << 30);
        let custom = (0..number % 32).map(|metric| Custom {
            name: format!("metric {metric}"),
            ontology: "x".repeat(metric as usize * 16),
            value: Number::new((number * metric) as f64).unwrap(),
        });
        offer.qos.default.server.custom = custom.collect();
        let key = Key {
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

/// Publishes without an end and prints the number of each write when it is acknowledged, where it is told to.
#[test]
fn publisher() {
    let Ok(store) = std::env::var(STORE) else {
        return;
    };
    let kept = Kept::over(
        store
            .parse::<crate::store::Place>()
            .unwrap()
            .open()
            .unwrap(),
    );
    let first = kept.registry.seen().number;
    wait(async {
        let mut writers = JoinSet::new();
        for writer in 0..AT_ONCE {
            let keeper = kept.keeper.clone();
            writers.spawn(async move {
                for turn in 0.. {
                    let number = first + turn * AT_ONCE + writer;
                    // What a publisher before has left unacknowledged may be there.
                    if let Ok(Outcome::Made(_)) = keeper.write(write(number)).await {
                        println!("acknowledged {number}.");
                    }
                }
            });
        }
        writers.join_all().await;
    });
}

/// What a publisher says was acknowledged, killed some time after so many acknowledgements.
fn published(world: &World, acknowledged: usize, then: Duration) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "keeper::tests::durable::publisher",
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
        // The last line may be half a line.
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

fn what_was_acknowledged_outlives_a_kill(world: &World) {
    let kills = std::env::var("POSTHASTE_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let mut moments = Seed(1).stream("kills");
    let mut worlds: Vec<World> = Vec::new();
    let mut total = 0;
    let mut acknowledged = BTreeSet::new();
    for kill in 0..kills {
        if kill % PER_STORE == 0 {
            acknowledged.clear();
            worlds.clear();
            worlds.extend(world.another());
        }
        let world = &worlds[0];
        // Also while it opens the store.
        let before = match moments.random_range(0..4) {
            0 => 0,
            _ => moments.random_range(1..100),
        };
        let then = Duration::from_micros(moments.random_range(0..30_000));
        let numbers = published(world, before, then);
        assert!(numbers.len() >= before);
        total += numbers.len();
        acknowledged.extend(numbers);

        let mut there: BTreeMap<Key, Offer> = BTreeMap::new();
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
