//! Trials of every remedy in virtual time: on each stack and line, with a loss at every position, with packets that
//! only arrive late, and with random losses.
//!
//! Positions count the packets that are really sent. A remedy that splits a reply into more packets therefore has more
//! positions, and a loss is late by the data that it concerns. All remedies meet the same delays, to exclude luck.

use posthaste_study::{Conditions, Failure, Needs, Records, Study, Table, Value};
use posthaste_tcp::remedy::Remedy;
use posthaste_units::{Seed, Span};

use super::cells::quantile;
use super::line::{self, Drops, Line};
use super::played::{self, Part, Played};
use super::rig::{Job, PROCESSING};
use super::service::{AUTHOR, LATE, SEGMENT};
use super::stack::{Cast, FREEBSD, LINUX, LINUX_6, Stack};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-trials",
    needs: Needs::Processor,
    core: true,
    run: |conditions| {
        let lines: Vec<Line> = line::all().collect();
        study(conditions, &lines, if conditions.full { 5 } else { 1 })
    },
};

/// The stacks of the trials: the paper's two, and today's Linux.
pub(super) static ON: [&Stack; 3] = [&FREEBSD, &LINUX, &LINUX_6];

/// The line of the picture with all positions.
pub(super) const SHOWN: Line = Line { kbit: 300, ms: 10 };

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

fn study(conditions: &Conditions<'_>, lines: &[Line], times: u32) -> Result<Records, Failure> {
    let mut tables = [trials(), positions()];
    let mut done = 0..;
    for stack in ON {
        let plain = stack.cast(&[])?;
        for (remedy, done) in remedies().zip(done.by_ref()) {
            let cast = stack.cast(remedy.as_slice())?;
            // A feature that a stack already has is no remedy.
            if remedy.is_some() && cast.profile == plain.profile {
                continue;
            }
            let words = format!("{}, {}", stack.name, name(remedy));
            let progress = conditions.progress;
            progress.step(done, (ON.len() * remedies().count()) as u64, &words);
            for line in lines {
                if conditions.stopped() {
                    break;
                }
                let trial = Trial {
                    cast: &cast,
                    line: *line,
                    seed: conditions.seed.child(&format!("{} {}", line.kbit, line.ms)),
                    times,
                };
                let key = (stack.key, name(remedy));
                trial.run(key, &mut tables)?;
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
fn trials() -> Table {
    Table::new([
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
fn positions() -> Table {
    Table::new(["stack", "remedy", "position", "median_ms", "waits", "late"])
}

/// One remedy on one line.
struct Trial<'a> {
    cast: &'a Cast,
    line: Line,
    seed: Seed,
    times: u32,
}

impl Trial<'_> {
    fn run(&self, (stack, remedy): (&str, &str), tables: &mut [Table; 2]) -> Result<(), Failure> {
        let none = self.play([Drops::NONE], EACH)?;
        let packets = none.iter().map(|played| played.traced.packets).max();
        let last = packets.unwrap_or_default();
        let lost = self.play((2..=last).map(Drops::one), EACH)?;
        let held =
            (3..=last).flat_map(|position| BEHIND.map(|later| Drops::Held { position, later }));
        let held = self.play(held, 1)?;
        let chance = self.play([Drops::Percent(PERCENT)], BY_CHANCE)?;
        let (late, early): (Vec<&Played>, Vec<&Played>) =
            lost.iter().filter(data).partition(|played| is_late(played));
        let all = || [&none, &lost, &held, &chance].into_iter().flatten();
        let for_nothing = |played: &[Played]| mean(played.iter().map(|p| p.for_nothing as f64));
        let numbers = [
            f64::from(self.line.kbit),
            f64::from(self.line.ms),
            mean(none.iter().map(ms)),
            mean(none.iter().map(|played| played.bytes as f64)),
            mean(early.into_iter().map(ms)),
            mean(late.iter().copied().map(ms)),
            mean(late.iter().map(|played| f64::from(waited(played)))),
            for_nothing(&lost),
            mean(held.iter().map(ms)),
            for_nothing(&held),
            mean(chance.iter().map(ms)),
            all().count() as f64,
            all().filter(|played| played.well).count() as f64,
            all().filter(|played| played.planned).count() as f64,
        ];
        let [trials, positions] = tables;
        let row = [Value::from(stack), remedy.into()];
        trials.push(row.into_iter().chain(numbers.map(Value::from)));
        if self.line == SHOWN {
            let each = (EACH * self.times) as usize;
            for (position, played) in (2..).zip(lost.chunks(each)) {
                let mut times: Vec<f64> = played.iter().map(ms).collect();
                times.sort_by(f64::total_cmp);
                let waits = mean(played.iter().map(|played| f64::from(waited(played))));
                let late = played.iter().all(is_late);
                let numbers = [
                    f64::from(position),
                    quantile(&times, 0.5),
                    waits,
                    f64::from(late),
                ];
                let row = [Value::from(stack), remedy.into()];
                positions.push(row.into_iter().chain(numbers.map(Value::from)));
            }
        }
        Ok(())
    }

    /// Simulates each of `drops` several times.
    fn play(
        &self,
        drops: impl IntoIterator<Item = Drops>,
        each: u32,
    ) -> Result<Vec<Played>, Failure> {
        let parts: Vec<Part> = drops
            .into_iter()
            .flat_map(|drops| {
                let job = Job {
                    service: &AUTHOR,
                    line: self.line,
                    drops,
                    varies: true,
                };
                let numbers = 1..=u64::from(each * self.times);
                numbers.map(move |number| Part::new(self.seed, number, job))
            })
            .collect();
        played::all(self.cast, &parts)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn ms(played: &Played) -> f64 {
    let time = played.traced.response_time();
    time.map_or(f64::NAN, Span::as_millis_f64)
}

/// True if the loss concerns data in its first transmission.
fn data(played: &&Played) -> bool {
    played
        .traced
        .dropped
        .iter()
        .any(|lost| lost.place.is_some())
}

/// True if the loss concerns data of the last four full segments: FreeBSD's late positions.
fn is_late(played: &Played) -> bool {
    let first = u64::from(AUTHOR.segments() - LATE - 1) * u64::from(SEGMENT);
    let lost = played.traced.dropped.iter();
    lost.filter_map(|lost| lost.place)
        .any(|place| place >= first)
}

/// True if the server waited for a timeout.
fn waited(played: &Played) -> bool {
    played.traced.timeouts()[1] > 0
}
