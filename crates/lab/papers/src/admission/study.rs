//! All runs: each competitor in each scenario, several times.
//!
//! A run has a shop and a proxy of its own, so that no backlog of an earlier run is left. A run in which a generator was
//! the limit is void. It is repeated, and recorded as void if that does not help.

use posthaste_bookshop::BookshopConfig;
use posthaste_broker_client::accounts::AccountKey;
use posthaste_load::Backoff;
use posthaste_study::lab::{Cores, starting};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_units::{Seed, Span};

use super::competitors::{COMPETITORS, Competitor};
use super::measuring::{AdmissionRun, jain, measure};
use super::scenarios::{
    CAPACITY, CLIENTS, DEADLINE, PhaseLengths, SERVICE, Scenario, ScenarioKind, TIMEOUT, keys,
};
use crate::testbed::program::Folder;
use crate::testbed::shop::fetch;

pub(super) static STUDY: Study = Study {
    name: "wsqos-admission",
    needs: Needs::Time,
    core: false,
    run: |conditions| study(conditions, &AdmissionExtent::new(conditions.full)),
};

/// Attempts at a run that is not void.
const TRIES: u64 = 3;

/// Extent of the measurements.
pub(super) struct AdmissionExtent {
    constant: &'static [f64],
    sines: &'static [f64],
    /// Overload of storms, and the back-offs of their clients.
    storms: &'static [(f64, Backoff)],
    lengths: PhaseLengths,
    repetitions: u64,
}

impl AdmissionExtent {
    const fn new(full: bool) -> Self {
        const EXPONENTIAL: Backoff = Backoff::Exponential {
            base: Span::from_millis(100),
        };
        if full {
            Self {
                constant: &[2.0, 5.0, 10.0],
                sines: &[5.0],
                storms: &[(2.0, Backoff::None), (2.0, EXPONENTIAL)],
                lengths: PhaseLengths {
                    warm_up: Span::from_secs(2),
                    length: Span::from_secs(6),
                    after: Span::from_secs(12),
                    period: Span::from_secs(3),
                },
                repetitions: 3,
            }
        } else {
            Self {
                constant: &[2.0, 5.0],
                sines: &[],
                storms: &[(2.0, Backoff::None)],
                lengths: PhaseLengths {
                    warm_up: Span::from_millis(500),
                    length: Span::from_millis(1500),
                    after: Span::from_secs(3),
                    period: Span::from_millis(1500),
                },
                repetitions: 1,
            }
        }
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let scenario = |kind| move |load: &f64| Scenario { kind, load: *load };
        let constant = self.constant.iter().map(scenario(ScenarioKind::Constant));
        let sines = self.sines.iter().map(scenario(ScenarioKind::Sine));
        let storms = self.storms.iter().map(|(load, backoff)| Scenario {
            kind: ScenarioKind::Storm(*backoff),
            load: *load,
        });
        let hostile = std::iter::once(Scenario::hostile());
        constant.chain(sines).chain(storms).chain(hostile).collect()
    }
}

pub(super) fn study(
    conditions: &Conditions<'_>,
    extent: &AdmissionExtent,
) -> Result<Records, Failure> {
    let cores = Cores::here();
    let folder = Folder::new();
    let keys = keys()?;
    let mut records = Records::new();
    describe(&mut records, extent, cores);
    let mut runs = RecordTable::new([
        "who",
        "scenario",
        "load",
        "repetition",
        "void",
        "goodput",
        "important",
        "others",
        "fairness",
        "p99_ms",
        "recovery_s",
        "rejected",
        "attempts",
        "cpu_s",
        "intended",
        "outcomes",
    ]);
    let mut absent: Vec<&str> = Vec::new();
    let all = all(extent);
    for (done, (repetition, scenario, competitor)) in all.iter().enumerate() {
        let message = format!("{}, {}", competitor.name, scenario.name());
        conditions
            .progress
            .step(done as u64, all.len() as u64, &message);
        if absent.contains(&competitor.name) {
            continue;
        }
        let seed = conditions.seed.numbered("repetition", *repetition);
        let folder = folder.0.join(done.to_string());
        let environment = RunEnvironment {
            folder: &folder,
            cores,
            keys: &keys,
        };
        match one(
            conditions,
            competitor,
            *scenario,
            &extent.lengths,
            seed,
            &environment,
        )? {
            Ended::Absent => absent.push(competitor.name),
            Ended::Stopped => break,
            Ended::Run(run) => {
                let possible = scenario.possible(&extent.lengths);
                runs.push(row(competitor, scenario, *repetition, possible, &run));
            }
        }
    }
    records.set_table("runs", runs);
    records.set_parameter(
        "not installed",
        if absent.is_empty() {
            "none".to_owned()
        } else {
            absent.join("; ")
        },
    );
    Ok(records)
}

/// All runs, repetition by repetition, so that a change of the machine affects all competitors alike.
fn all(extent: &AdmissionExtent) -> Vec<(u64, Scenario, &'static Competitor)> {
    let mut all = Vec::new();
    for repetition in 0..extent.repetitions {
        for scenario in extent.scenarios() {
            for competitor in &COMPETITORS {
                all.push((repetition, scenario, competitor));
            }
        }
    }
    all
}

/// Folder, cores and keys of a run.
struct RunEnvironment<'p> {
    folder: &'p std::path::Path,
    cores: Cores,
    /// The API key of each client.
    keys: &'p [AccountKey],
}

/// End of a run.
enum Ended {
    Run(Box<AdmissionRun>),
    /// The competitor is not installed.
    Absent,
    Stopped,
}

/// Runs one competitor in one scenario. Repeats a void run.
fn one(
    conditions: &Conditions<'_>,
    competitor: &Competitor,
    scenario: Scenario,
    lengths: &PhaseLengths,
    seed: Seed,
    environment: &RunEnvironment<'_>,
) -> Result<Ended, Failure> {
    let &RunEnvironment {
        folder,
        cores,
        keys,
    } = environment;
    let mut tries = 0;
    loop {
        tries += 1;
        let shop = {
            let _turn = starting();
            posthaste_bookshop::start(BookshopConfig {
                listen: ([127, 0, 0, 1], 0).into(),
                cpus: cores.generator.into_iter().collect(),
                service: Some(format!("md1:{SERVICE}").parse()?),
                seed: conditions.seed,
                ..BookshopConfig::default()
            })?
        };
        let isbns = fetch(shop.addr, "/isbns.csv")?;
        let isbn = isbns.lines().nth(1).ok_or("the shop has no book")?;
        let Some(running) = competitor.start(shop.addr, folder, cores, keys)? else {
            return Ok(Ended::Absent);
        };
        let page = format!("/json/{isbn}");
        let address = running.proxy.address;
        let plans = scenario.plans(address, &page, lengths, seed, cores, keys)?;
        let after = scenario.parts_after(lengths);
        let Some(run) = measure(&running.proxy, &plans, after, conditions.stop)? else {
            return Ok(Ended::Stopped);
        };
        drop(running);
        shop.stop();
        if run.void.is_none() || tries == TRIES {
            return Ok(Ended::Run(Box::new(run)));
        }
    }
}

fn describe(records: &mut Records, extent: &AdmissionExtent, cores: Cores) {
    records.set_parameter("service", format!("md1:{SERVICE}"));
    records.set_parameter("capacity", format!("{CAPACITY} requests per second"));
    records.set_parameter("clients", CLIENTS);
    records.set_parameter("arrivals", "Poisson");
    records.set_parameter("deadline", DEADLINE);
    records.set_parameter("timeout", TIMEOUT);
    records.set_parameter("judged for", extent.lengths.length);
    records.set_parameter("repetitions", extent.repetitions);
    records.set_parameter(
        "cores",
        format!("{}; the shop next to the generator", cores.describe()),
    );
    for competitor in &COMPETITORS {
        records.set_parameter(competitor.name, competitor.settings());
    }
}

fn row(
    competitor: &Competitor,
    scenario: &Scenario,
    repetition: u64,
    possible: f64,
    run: &AdmissionRun,
) -> Vec<RecordValue> {
    let [important, other] = run.halves;
    let good = (important.good + other.good) as f64;
    let shares: Vec<f64> = run
        .clients
        .iter()
        .map(|client| client.good as f64)
        .collect();
    let modest = &run.clients[1..];
    let others =
        |count: fn(&super::measuring::Counts) -> u64| modest.iter().map(count).sum::<u64>() as f64;
    let others = others(|client| client.good) / others(|client| client.requests);
    let [intended, outcomes] = run.accounted;
    vec![
        competitor.name.into(),
        scenario.name().into(),
        scenario.load.into(),
        repetition.into(),
        u64::from(run.void.is_some()).into(),
        (good / possible).into(),
        important.share().into(),
        others.into(),
        jain(&shares).into(),
        run.p99_ms.into(),
        run.recovery_s.into(),
        run.rejected.into(),
        run.attempts.into(),
        run.cpu_s.into(),
        intended.into(),
        outcomes.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;

    #[test]
    fn a_short_study_accounts_for_requests_of_every_competitor() {
        let extent = AdmissionExtent {
            constant: &[],
            sines: &[3.0],
            storms: &[(3.0, Backoff::None)],
            lengths: PhaseLengths {
                warm_up: Span::from_millis(100),
                length: Span::from_millis(200),
                after: Span::from_secs(1),
                period: Span::from_millis(200),
            },
            repetitions: 1,
        };
        let records = test_study::run(None, |conditions| study(conditions, &extent));
        let absent = &records.parameters()["not installed"];
        let rows: Vec<_> = records.table("runs").rows().collect();
        for competitor in &COMPETITORS {
            let is_absent = absent.split("; ").any(|name| name == competitor.name);
            let count = rows
                .iter()
                .filter(|row| row.text("who") == competitor.name)
                .count();
            assert_eq!(count, if is_absent { 0 } else { 3 }, "{}", competitor.name);
            assert!(!(is_absent && competitor.is_ours()), "{}", competitor.name);
        }
        for row in rows {
            assert!(row.number("intended") > 0.0);
            assert_eq!(
                row.number("intended"),
                row.number("outcomes"),
                "{}",
                row.text("who")
            );
            assert!(row.number("attempts") >= row.number("intended"));
            let is_storm = row.text("scenario").starts_with("storm");
            assert_eq!(row.number("recovery_s").is_nan(), !is_storm);
        }
    }
}
