//! The ends of `load --find`, compared with the truth of services: on the wire and in virtual time.
//!
//! Virtual time tests the method, with a thousand searches per service. The wire tests the real generator and server,
//! beside four busy programs.

use std::process::Command;
use std::time::Duration;

use posthaste_services::ServicePreset;
use posthaste_services::truth::{ArrivalProcess, Truth, steady};
use serde_json::Value;

use crate::bench::{Bench, Figure, Measure};
use crate::builds::example;
use crate::error::{Outcome, TaskError};
use crate::load::LoadReport;
use crate::peers::generators::first_isbn;
use crate::process::Running;

/// Services on the wire.
const WIRE: [&str; 8] = [
    "md1",
    "mm1",
    "mm4",
    "collapse",
    "limiter",
    "cold-start",
    "doubling",
    "hang-two",
];
/// Number of seeds for each.
const SEEDS: u64 = 3;
/// Searches at the same time.
const AT_ONCE: usize = 4;
/// Time limit of a search of 50 s on a busy machine, in seconds.
const SEARCH: u64 = 180;
/// Distance from the truth, as a share, beyond which an end is wrong.
const WRONG: f64 = 0.03;
/// Shares of a thousand searches: with a wrong end, and without a lower end.
const FEW_WRONG: f64 = 0.04;
const FEW_ABSENT: f64 = 0.2;
/// Time limit for 28,000 simulated searches.
const STUDY: Duration = Duration::from_secs(7200);

/// Searches against bookshops that misbehave in a known way, beside four busy programs.
pub(crate) fn wire(bench: &Bench) -> Outcome<Vec<Figure>> {
    let _busy = bench.busy_programs()?;
    let seeds = 0..bench.or_quick(SEEDS, 1);
    let all: Vec<(&str, u64)> = seeds
        .flat_map(|seed| WIRE.map(|service| (service, seed)))
        .collect();
    let mut found = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let searches: Vec<Outcome<Found>> = std::thread::scope(|scope| {
            let searches: Vec<_> = some
                .iter()
                .map(|(service, seed)| scope.spawn(|| search(bench, service, *seed)))
                .collect();
            let joined = searches
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|search| search.expect("a search does not panic"))
                .collect()
        });
        for search in searches {
            found.push(search?);
        }
    }
    let count = found.len() as u64;
    let part = |name: &str, is_so: fn(&Found) -> bool| {
        let number = found.iter().filter(|search| is_so(search)).count() as u64;
        let measure = Measure::part(number, count, "searches");
        Figure::new(name, measure).target("none", number == 0)
    };
    let mut figures: Vec<Figure> = found.iter().map(Found::figure).collect();
    figures.extend([
        part(
            "lower ends more than 3 % above the truth",
            Found::is_too_high,
        ),
        part(
            "answers with the wrong exit status",
            Found::has_wrong_status,
        ),
    ]);
    Ok(figures)
}

struct Found {
    subject: String,
    report: LoadReport,
    /// `None` if no rate holds.
    truth: Option<f64>,
}

impl Found {
    fn low(&self) -> Option<f64> {
        self.report.number("held_at_per_s").ok()
    }

    fn is_too_high(&self) -> bool {
        let limit = (1.0 + WRONG) * self.truth.unwrap_or(0.0);
        self.low().is_some_and(|low| low > limit)
    }

    /// Status 0 needs a lower end, 1 and 3 exclude one.
    fn has_wrong_status(&self) -> bool {
        (self.report.finished.code == Some(0)) != self.low().is_some()
    }

    fn figure(&self) -> Figure {
        let rate = |value| Measure::new(value, "requests/s");
        let truth = rate(self.truth.unwrap_or(0.0));
        let Some(low) = self.low() else {
            return Figure::sentence(self.subject.clone())
                .remark("no rate is shown to hold")
                .detail();
        };
        let figure = Figure::new(self.subject.clone(), rate(low)).peer("truth", truth);
        let high = self.report.number("failed_at_per_s");
        let remark = high.map_or("no upper end".to_owned(), |high| {
            format!("fails at {high:.1}/s")
        });
        figure.remark(remark).detail()
    }
}

fn search(bench: &Bench, name: &str, seed: u64) -> Outcome<Found> {
    let preset = ServicePreset::named(name)
        .ok_or_else(|| TaskError::Failed(format!("{name} is no preset")))?;
    let number = seed.to_string();
    let shop = bench.undisturbed_bookshop(&["--service", preset.text, "--seed", &number])?;
    let url = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
    let objective = format!("p99<{}", preset.p99);
    let options = ["--find", &objective, "--seed", &number];
    let report = bench.search(&url, &options, SEARCH)?;
    let truth = steady(&preset.spec(), preset.bound(), ArrivalProcess::Constant);
    Ok(Found {
        subject: format!("{name}, seed {seed}"),
        report,
        truth: match truth {
            Truth::None => None,
            Truth::Any => Some(f64::INFINITY),
            Truth::UpTo { rate, .. } => Some(rate.as_per_second()),
        },
    })
}

/// The study of the crate `evaluation`, at its full size of 1,000 searches per case.
pub(crate) fn in_virtual_time(bench: &Bench) -> Outcome<Vec<Figure>> {
    let program = example(&bench.site.checkout, "posthaste-evaluation", "find_study")?;
    let mut command = Command::new(program);
    command.args(["--seeds", "1", bench.or_quick("1000", "100")]);
    let running = Running::start("find-virtual", &mut command, &bench.site.logs)?;
    let finished = running.finish(STUDY)?;
    let finished = finished.succeeded("the study of --find")?;
    let mut figures = Vec::new();
    for line in finished.stdout.lines() {
        let case: Value = serde_json::from_str(line).map_err(|error| {
            TaskError::Failed(format!("the study of --find: {error} in {line}"))
        })?;
        figures.extend(of_case(&case));
    }
    Ok(figures)
}

/// The figures of a case of the study.
fn of_case(case: &Value) -> Vec<Figure> {
    let name = case["case"].as_str().unwrap_or_default();
    let searches = case["searches"].as_u64().unwrap_or(0);
    let share = |statement: &str, key: &str, most: f64| {
        // A missing key is a failure.
        let found = case[key].as_f64().unwrap_or(f64::NAN) / searches as f64;
        let measure = Measure::new(100.0 * found, "%").n(searches);
        Figure::new(format!("{name}: {statement}"), measure)
            .target(format!("at most {:.0} %", 100.0 * most), found <= most)
    };
    let mut figures = vec![
        share(
            "lower ends more than 3 % above the truth",
            "low_above",
            FEW_WRONG,
        ),
        share(
            "upper ends more than 3 % below the truth",
            "high_below",
            FEW_WRONG,
        ),
        share("no lower end where a rate holds", "no_low", FEW_ABSENT),
    ];
    if let Some(width) = case["median_width"].as_f64() {
        let measure = Measure::new(100.0 * width, "%").n(searches);
        figures.push(Figure::new(format!("{name}: median width"), measure).detail());
    }
    figures
}
