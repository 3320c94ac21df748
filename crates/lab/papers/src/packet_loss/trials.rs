//! Trials of every remedy in virtual time: on each stack and line, with a loss at every position, with packets that
//! only arrive late, and with random losses.
//!
//! Positions count the packets that are really sent. A remedy that splits a reply into more packets therefore has more
//! positions, and a loss is late by the data that it concerns. All remedies meet the same delays, to exclude luck.

use std::num::NonZero;

use posthaste_study::{Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study};
use posthaste_tcp::remedy::Remedy;
use posthaste_units::{Seed, Span};

use super::cells::quantile;
use super::job::{Job, PROCESSING};
use super::line::{self, NetworkLine, PlannedDrops};
use super::service::{AUTHOR, LATE, SEGMENT};
use super::simulated_run::{self, SimulatedRun, SimulationJob};
use super::stack::{FREEBSD, LINUX, LINUX_6, SimulatedEnds, SimulatedStack};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-trials",
    needs: Needs::Nothing,
    core: true,
    run: |conditions| {
        let lines: Vec<NetworkLine> = line::all().collect();
        study(conditions, &lines, if conditions.full { 5 } else { 1 })
    },
};

/// The stacks of the trials: the paper's two, and today's Linux.
pub(super) static ON: [&SimulatedStack; 3] = [&FREEBSD, &LINUX, &LINUX_6];

/// The line of the picture with all positions.
pub(super) const SHOWN: NetworkLine = NetworkLine { kbit: 300, ms: 10 };

/// Numbers of later packets that overtake a late one: up to enough for the duplicate ACKs, and one more.
const BEHIND: [u32; 4] = [1, 2, 3, 4];

/// Random loss, in percent.
pub(super) const PERCENT: u32 = 2;

/// Numbers of transactions without loss or with one loss, and with random loss, in a quick run. Longer runs multiply
/// both.
const EACH: u32 = 5;
const BY_CHANCE: u32 = 60;

/// Name of the trial without a remedy.
pub(super) const NOTHING: &str = "nothing";

/// Name of a remedy in records.
pub(super) const fn name(remedy: Option<Remedy>) -> &'static str {
    match remedy {
        Some(remedy) => remedy.name(),
        None => NOTHING,
    }
}

/// No remedy, and then each of them.
pub(super) fn remedies() -> impl Iterator<Item = Option<Remedy>> {
    [None].into_iter().chain(Remedy::ALL.map(Some))
}

fn study(
    conditions: &Conditions<'_>,
    lines: &[NetworkLine],
    times: u32,
) -> Result<Records, Failure> {
    let mut tables = [trials(), positions()];
    let mut done = 0..;
    for stack in ON {
        let plain = stack.ends(&[])?;
        for (remedy, done) in remedies().zip(done.by_ref()) {
            let ends = stack.ends(remedy.as_slice())?;
            // A feature that a stack already has is no remedy.
            if remedy.is_some() && ends.profile == plain.profile {
                continue;
            }
            let message = format!("{}, {}", stack.name, name(remedy));
            let progress = conditions.progress;
            progress.step(done, (ON.len() * remedies().count()) as u64, &message);
            for line in lines {
                if conditions.stopped() {
                    break;
                }
                let trial = RemedyTrial {
                    threads: conditions.threads,
                    ends: &ends,
                    line: *line,
                    seed: conditions.seed.child(&format!("{} {}", line.kbit, line.ms)),
                    times,
                };
                trial.run(stack.key, name(remedy), &mut tables)?;
            }
        }
    }
    let [trials, positions] = tables;
    let mut records = Records::new();
    records.set_parameter("processing", PROCESSING);
    records.set_parameter("loss by chance", format!("{PERCENT} %"));
    records.set_parameter("lines", lines.len());
    records.set_table("trials", trials);
    records.set_table("positions", positions);
    Ok(records)
}

/// One row for each stack, remedy and line. Times are means in ms. `waits` and `for_nothing` (needless segments) are
/// per transaction. `bytes` are of a transaction without loss.
fn trials() -> RecordTable {
    RecordTable::new([
        "stack",
        "remedy",
        "kbit",
        "ms",
        "none_ms",
        "bytes",
        "early_ms",
        "late_ms",
        "late_waits",
        "lost_for_nothing",
        "held_ms",
        "held_for_nothing",
        "chance_ms",
        "transactions",
        "well",
        "planned",
    ])
}

/// One row for each stack, remedy and position, on one line.
fn positions() -> RecordTable {
    RecordTable::new(["stack", "remedy", "position", "median_ms", "waits", "late"])
}

/// One remedy on one line.
struct RemedyTrial<'a> {
    threads: NonZero<usize>,
    ends: &'a SimulatedEnds,
    line: NetworkLine,
    seed: Seed,
    times: u32,
}

impl RemedyTrial<'_> {
    fn run(&self, stack: &str, remedy: &str, tables: &mut [RecordTable; 2]) -> Result<(), Failure> {
        let none = self.play([PlannedDrops::NONE], EACH)?;
        let packets = none.iter().map(|simulated| simulated.traced.packets).max();
        let last = packets.expect("every job is simulated at least once");
        let lost = self.play((2..=last).map(PlannedDrops::one), EACH)?;
        let held = (3..=last)
            .flat_map(|position| BEHIND.map(|later| PlannedDrops::Held { position, later }));
        let held = self.play(held, 1)?;
        let chance = self.play([PlannedDrops::Percent(PERCENT)], BY_CHANCE)?;
        let (late, early): (Vec<&SimulatedRun>, Vec<&SimulatedRun>) = lost
            .iter()
            .filter(data)
            .partition(|simulated| is_late(simulated));
        let all = || [&none, &lost, &held, &chance].into_iter().flatten();
        let for_nothing =
            |simulated: &[SimulatedRun]| mean(simulated.iter().map(|p| p.for_nothing as f64));
        let numbers = [
            f64::from(self.line.kbit),
            f64::from(self.line.ms),
            mean(none.iter().map(ms)),
            mean(none.iter().map(|simulated| simulated.bytes as f64)),
            mean(early.into_iter().map(ms)),
            mean(late.iter().copied().map(ms)),
            mean(late.iter().map(|simulated| f64::from(waited(simulated)))),
            for_nothing(&lost),
            mean(held.iter().map(ms)),
            for_nothing(&held),
            mean(chance.iter().map(ms)),
            all().count() as f64,
            all().filter(|simulated| simulated.well).count() as f64,
            all().filter(|simulated| simulated.planned).count() as f64,
        ];
        let [trials, positions] = tables;
        let row = [RecordValue::from(stack), remedy.into()];
        trials.push(row.into_iter().chain(numbers.map(RecordValue::from)));
        if self.line == SHOWN {
            let each = (EACH * self.times) as usize;
            for (position, simulated) in (2..).zip(lost.chunks(each)) {
                let mut times: Vec<f64> = simulated.iter().map(ms).collect();
                times.sort_by(f64::total_cmp);
                let waits = mean(
                    simulated
                        .iter()
                        .map(|simulated| f64::from(waited(simulated))),
                );
                let late = simulated.iter().all(is_late);
                let numbers = [
                    f64::from(position),
                    quantile(&times, 0.5),
                    waits,
                    f64::from(late),
                ];
                let row = [RecordValue::from(stack), remedy.into()];
                positions.push(row.into_iter().chain(numbers.map(RecordValue::from)));
            }
        }
        Ok(())
    }

    /// Simulates each of `drops` several times.
    fn play(
        &self,
        drops: impl IntoIterator<Item = PlannedDrops>,
        each: u32,
    ) -> Result<Vec<SimulatedRun>, Failure> {
        let parts: Vec<SimulationJob> = drops
            .into_iter()
            .flat_map(|drops| {
                let job = Job {
                    service: &AUTHOR,
                    line: self.line,
                    drops,
                    varies: true,
                };
                let numbers = 1..=u64::from(each * self.times);
                numbers.map(move |number| SimulationJob::new(self.seed, number, job))
            })
            .collect();
        simulated_run::all(self.threads, self.ends, &parts)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn ms(simulated: &SimulatedRun) -> f64 {
    let time = simulated.traced.response_time();
    time.map_or(f64::NAN, Span::as_millis_f64)
}

/// True if the loss concerns data in its first transmission.
fn data(simulated: &&SimulatedRun) -> bool {
    simulated
        .traced
        .dropped
        .iter()
        .any(|lost| lost.offset.is_some())
}

/// True if the loss concerns data of the last four full segments: FreeBSD's late positions.
fn is_late(simulated: &SimulatedRun) -> bool {
    let first = u64::from(AUTHOR.segments() - LATE - 1) * u64::from(SEGMENT);
    let lost = simulated.traced.dropped.iter();
    lost.filter_map(|lost| lost.offset)
        .any(|offset| offset >= first)
}

/// True if the server waited for a timeout.
fn waited(simulated: &SimulatedRun) -> bool {
    simulated.traced.timeouts()[1] > 0
}
