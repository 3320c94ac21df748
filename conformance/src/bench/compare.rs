//! Verdicts of `posthaste compare`: false alarms and detected slowdowns, in virtual time and on the wire.
//!
//! On the wire two bookshops are loaded in turns (A B A B A B: three runs per side) on a machine with four busy
//! processes. Several pairs run at the same time, so that all end within a quarter of an hour. A verdict "worse" for a
//! pair of equal bookshops is a false alarm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bench::{Bench, Figure, Measure};
use crate::checkout::cargo;
use crate::error::{Outcome, TaskError, check};
use crate::load::Loading;
use crate::peers::generators::first_isbn;
use crate::process::{self, Running};
use crate::site::Server;

/// Pairs of each kind on the wire, and the number run at once: 24 runs of 300 requests need little of a core.
const PAIRS: (usize, usize) = (40, 3);
const AT_ONCE: usize = 10;
const RUNS: usize = 3;
/// Time limit in seconds for one run of 5 s, on a busy machine.
const PATIENCE: u64 = 60;
/// Time limit for the study in virtual time. It takes some minutes on an idle core.
const STUDY: Duration = Duration::from_secs(3600);
const SERVICE: &str = "md1:5ms";
const SLOWER: &str = "md1:6ms";

/// The study of the crate `stats`. It prints a line for each service, scatter and change.
pub(crate) fn in_virtual_time(bench: &Bench) -> Outcome<Vec<Figure>> {
    let mut cargo = cargo(&bench.site.checkout);
    cargo
        .args(["test", "--release", "--package", "posthaste-stats"])
        .args(["--test", "compare", "--", "--nocapture", "study"])
        .env("COMPARE_PAIRS", bench.or_quick("1000", "50"));
    let output = process::run("study", &mut cargo, STUDY, &bench.site.logs)?;
    let lines = output.stdout.lines().filter_map(CompareLine::parse);
    let figures: Vec<Figure> = lines.flat_map(|line| line.figures()).collect();
    check(!figures.is_empty(), || {
        format!("the study printed nothing:\n{}", output.stdout)
    })?;
    Ok(figures)
}

/// One line of the study.
#[derive(Debug, PartialEq, Eq)]
struct CompareLine<'a> {
    service: &'a str,
    change: &'a str,
    worse: u64,
    unknown: u64,
    pairs: u64,
}

impl<'a> CompareLine<'a> {
    /// Reads `SERVICE, CHANGE: worse N unknown N of N; ...`.
    fn parse(text: &'a str) -> Option<Self> {
        let (subject, counts) = text.split_once(": worse ")?;
        let (service, change) = subject.rsplit_once(", ")?;
        let (counts, _) = counts.split_once(';')?;
        let (worse, rest) = counts.split_once(" unknown ")?;
        let (unknown, pairs) = rest.split_once(" of ")?;
        Some(Self {
            service,
            change,
            worse: worse.parse().ok()?,
            unknown: unknown.parse().ok()?,
            pairs: pairs.parse().ok()?,
        })
    }

    /// The figures of this line. Targets apply to runs that are long enough for p99, with a scatter of 5 %.
    fn figures(&self) -> Vec<Figure> {
        let percent = |count: u64| 100.0 * count as f64 / self.pairs as f64;
        let judged = self.service.contains("scatter 5 %") && !self.service.contains(" 300 ");
        let figure = |name: &str, count: u64, target: &str, holds: fn(f64) -> bool| {
            let name = format!("{}, {}: {name}", self.service, self.change);
            let figure = Figure::new(name, Measure::new(percent(count), "%").n(self.pairs));
            if judged {
                figure.target(target, holds(percent(count)))
            } else {
                figure.detail()
            }
        };
        match self.change {
            "None" => vec![
                figure("false alarms", self.worse, "at most 6.5 %", |share| {
                    share <= 6.5
                }),
                figure("unknown", self.unknown, "at most 10 %", |share| {
                    share <= 10.0
                }),
            ],
            _ => vec![figure("found", self.worse, "at least 90 %", |share| {
                share >= 90.0
            })],
        }
    }
}

/// Equal and slower services on a machine with busy programs.
pub(crate) fn wire(bench: &Bench) -> Outcome<Vec<Figure>> {
    let pairs = bench.or_quick(PAIRS.0, PAIRS.1);
    let runs = bench.site.checkout.peer_folder("compare")?;
    // A run keeps its records in a folder of its own.
    std::fs::remove_dir_all(&runs).map_err(|error| TaskError::at(&runs, error))?;
    let _busy = bench.busy_programs()?;
    let mut worse = [0, 0];
    let mut unknowns = [0, 0];
    let all: Vec<usize> = (0..pairs).collect();
    for some in all.chunks(AT_ONCE / 2) {
        for (kind, code) in some_pairs(bench, &runs, some)? {
            worse[kind] += usize::from(code == 1);
            unknowns[kind] += usize::from(code == 3);
        }
    }
    let [alarms, found] = worse;
    let bar = |share: f64| (pairs as f64 * share).ceil() as usize;
    let part = |count: usize| Measure::part(count as u64, pairs as u64, "pairs");
    let unknown = |name: &str, count| Figure::new(format!("{name}: unknown"), part(count)).detail();
    let (equal, slower) = ("wire, equal services", "wire, 20 % slower");
    Ok(vec![
        Figure::new(format!("{equal}: false alarms"), part(alarms))
            .target(format!("at most {}", bar(0.125)), alarms <= bar(0.125)),
        unknown(equal, unknowns[0]),
        Figure::new(format!("{slower}: found"), part(found))
            .target(format!("at least {}", bar(0.85)), found >= bar(0.85)),
        unknown(slower, unknowns[1]),
    ])
}

/// A pair of services and the folder of its runs.
struct Pair<'b> {
    bench: &'b Bench,
    runs: &'b Path,
    number: usize,
    /// 0 equal, 1 slower.
    kind: usize,
    shops: [Server; 2],
}

impl<'b> Pair<'b> {
    fn open(bench: &'b Bench, runs: &'b Path, number: usize, kind: usize) -> Outcome<Self> {
        let open = |service: &str| {
            let options = ["--threads", "1", "--service", service];
            bench.site.bookshop(&options)
        };
        Ok(Self {
            bench,
            runs,
            number,
            kind,
            shops: [open(SERVICE)?, open([SERVICE, SLOWER][kind])?],
        })
    }

    fn folder(&self, side: usize, run: usize) -> PathBuf {
        let Self { number, kind, .. } = self;
        self.runs.join(format!("{number}-{kind}-{side}-{run}"))
    }

    /// Starts a run against one of the services.
    fn load(&self, side: usize, run: usize) -> Outcome<Loading> {
        let site = &self.bench.site;
        let shop = &self.shops[side];
        let url = shop.url(&format!("/page/{}", first_isbn(site, shop)?));
        let out = self.folder(side, run).display().to_string();
        let seed = ((self.number * 2 + self.kind) * 2 + side) * RUNS + run + 1;
        let seed = seed.to_string();
        let pace = "--rate 60/s --arrivals poisson --duration 5s";
        let options = [&*url, "--seed", &*seed, "--out", &*out];
        let options: Vec<&str> = options.into_iter().chain(pace.split(' ')).collect();
        site.start_load(&[], &options)
    }

    /// The exit code of the comparison.
    fn compared(&self) -> Outcome<i32> {
        let folders = |side| (0..RUNS).map(move |run| self.folder(side, run));
        let mut command = Command::new(&self.bench.site.binary);
        command
            .arg("compare")
            .args(folders(0))
            .arg("--")
            .args(folders(1));
        let compared = Running::start("compare", &mut command, &self.bench.site.logs)?
            .finish(Duration::from_secs(PATIENCE))?;
        match compared.code {
            Some(code @ (0 | 1 | 3)) => Ok(code),
            code => Err(TaskError::Failed(format!(
                "posthaste compare ended with {code:?}: {}",
                compared.stderr
            ))),
        }
    }
}

/// Runs pairs of both kinds in parallel. Returns the kind and the exit code of each comparison.
fn some_pairs(bench: &Bench, runs: &Path, numbers: &[usize]) -> Outcome<Vec<(usize, i32)>> {
    let both = numbers
        .iter()
        .flat_map(|number| [(*number, 0), (*number, 1)]);
    let pairs: Vec<Pair<'_>> = both
        .map(|(number, kind)| Pair::open(bench, runs, number, kind))
        .collect::<Outcome<_>>()?;
    for run in 0..RUNS {
        for side in 0..2 {
            let loading = pairs.iter().map(|pair| pair.load(side, run));
            for run in loading.collect::<Outcome<Vec<_>>>()? {
                run.finish(PATIENCE)?;
            }
        }
    }
    let verdicts = pairs.iter();
    verdicts
        .map(|pair| Ok((pair.kind, pair.compared()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::CompareLine;

    #[test]
    fn a_line_of_the_study_is_read() {
        let text = "Exponential 300 requests, scatter 5 %, None: worse 31 unknown 86 of 1000; by statistic worse [1]";
        let line = CompareLine::parse(text).expect("it is one");
        assert_eq!((line.worse, line.unknown, line.pairs), (31, 86, 1000));
        assert_eq!(
            (line.service, line.change),
            ("Exponential 300 requests, scatter 5 %", "None")
        );
        assert_eq!(line.figures().len(), 2);
        assert_eq!(CompareLine::parse("running 1 test"), None);
    }
}
