//! Speed of lookups of the best offer, by design and number of offers: in this process, on one core, without a network.

use std::time::Instant;

use jiff::Timestamp;
use posthaste_broker::StoreUrl;
use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Offer, Ontologies, Rates};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Rate, Ratio, Span};
use rand::RngExt as _;

use super::designs::{DESIGNS, LookupMethod, POSTGRES, postgres};
use super::qws;
use super::timing::Timing;

pub(super) static STUDY: Study = Study {
    name: "wsqos-lookups",
    needs: Needs::Processor,
    core: false,
    run: |conditions| {
        let quick: &[usize] = &[27, 1_000, 10_000, 100_000];
        let full: &[usize] = &[27, 1_000, 10_000, 100_000, 1_000_000];
        if conditions.full {
            study(conditions, full, 1.0)
        } else {
            study(conditions, quick, 0.25)
        }
    },
};

/// Offers per type of interface, and the maximum number of types. With more offers, each type has more.
const OF_A_TYPE: usize = 500;
const TYPES: usize = 200;

/// Parameter value in the records if there is no PostgreSQL.
pub(super) const NONE: &str = "not measured: no PostgreSQL";

/// Number of turns of each design. Designs alternate, so that a disturbance of the machine affects all of them.
const TURNS: u32 = 5;

/// Name of a question, and the function that sets its requirements.
pub(super) type Question = (&'static str, fn(&mut Definition));

/// The questions.
pub(super) const QUESTIONS: [Question; 4] = [
    ("typical", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(400));
        wanted.default.server.availability = Ratio::new(0.8);
    }),
    ("selective", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(60));
        wanted.default.server.availability = Ratio::new(0.95);
        wanted.default.server.reliability = Ratio::new(0.8);
    }),
    ("cheap is inadequate", |wanted| {
        wanted.default.server.reliability = Ratio::new(0.87);
    }),
    ("none", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(400));
        wanted.default.server.requests_per_second = Rate::per_second(1e4);
    }),
];

fn study(conditions: &Conditions<'_>, counts: &[usize], seconds: f64) -> Result<Records, Failure> {
    let mut records = Records::new();
    let types = format!("one for {OF_A_TYPE} offers, at most {TYPES}");
    records.set_parameter("types", types);
    let times = format!("{seconds} s in {TURNS} turns");
    records.set_parameter("time for each question", times);
    let postgres = postgres()?;
    let named = postgres.as_ref().map(ToString::to_string);
    records.set_parameter(POSTGRES, named.unwrap_or_else(|| NONE.to_owned()));
    let mut table = RecordTable::new([
        "offers",
        "design",
        "question",
        "lookups",
        "found",
        "rate_per_s",
        "p50_us",
        "p99_us",
        "max_us",
    ]);
    let mut built = RecordTable::new(["offers", "seconds", "megabytes"]);
    let mut answers = RecordTable::new(["offers", "design", "question", "asked", "as the index"]);
    for (done, &count) in counts.iter().enumerate() {
        if conditions.stopped() {
            break;
        }
        let message = format!("{count} offers");
        let all = counts.len() as u64;
        conditions.progress.step(done as u64, all, &message);
        let filled = filled(conditions, count)?;
        let (took, memory) = (filled.seconds, filled.megabytes);
        built.push([(count as u64).into(), took.into(), memory.into()]);
        let designs = filled.designs(postgres.as_ref())?;
        for question in QUESTIONS.iter().take_while(|_| !conditions.stopped()) {
            filled.compare(&designs, question, &mut answers)?;
            filled.time(&designs, question, conditions, seconds, &mut table)?;
        }
    }
    records.set_table("answers", answers);
    records.set_table("lookups", table);
    records.set_table("built", built);
    Ok(records)
}

/// An index, with the cost of filling it.
struct Filled {
    index: Index,
    /// Types with offers.
    kinds: Vec<String>,
    seconds: f64,
    /// Megabytes of memory.
    megabytes: f64,
}

impl Filled {
    /// The available designs with their names.
    fn designs(
        &self,
        postgres: Option<&StoreUrl>,
    ) -> Result<Vec<(&'static str, LookupMethod<'_>)>, Failure> {
        let designs = DESIGNS.map(|name| {
            let method = LookupMethod::by_name(name, &self.index, postgres)?;
            Ok(method.map(|method| (name, method)))
        });
        designs.into_iter().filter_map(Result::transpose).collect()
    }

    /// Adds a row for each other design: the number of types for which it finds an offer at the price of the first
    /// design, the index.
    fn compare(
        &self,
        designs: &[(&str, LookupMethod<'_>)],
        question: &Question,
        answers: &mut RecordTable,
    ) -> Result<(), Failure> {
        let (question, ask) = question;
        let (now, wanted) = (Timestamp::now(), wanted(*ask));
        let prices = |method: &LookupMethod<'_>| {
            let price = |kind: &String| method.price(kind, &wanted, now);
            self.kinds.iter().map(price).collect::<Result<Vec<_>, _>>()
        };
        let [(_, index), others @ ..] = designs else {
            return Ok(());
        };
        let ours = prices(index)?;
        for (design, other) in others {
            let theirs = prices(other)?;
            let same = ours
                .iter()
                .zip(&theirs)
                .filter(|(ours, theirs)| ours == theirs);
            answers.push([
                (self.index.len() as u64).into(),
                (*design).into(),
                (*question).into(),
                (ours.len() as u64).into(),
                (same.count() as u64).into(),
            ]);
        }
        Ok(())
    }

    /// Adds a row for each design, with repeated lookups of one question, each for a random type.
    fn time(
        &self,
        designs: &[(&str, LookupMethod<'_>)],
        question: &Question,
        conditions: &Conditions<'_>,
        seconds: f64,
        table: &mut RecordTable,
    ) -> Result<(), Failure> {
        let (question, ask) = question;
        let wanted = wanted(*ask);
        let mut timings: Vec<_> = designs
            .iter()
            .map(|(design, method)| {
                let order = conditions.seed.stream("which type is asked for");
                (design, method, order, Timing::new())
            })
            .collect();
        for _ in 0..TURNS {
            for (_, method, order, timing) in &mut timings {
                let kind = || self.kinds[order.random_range(0..self.kinds.len())].as_str();
                timing.run(method, &wanted, kind, seconds / f64::from(TURNS))?;
            }
        }
        for (design, _, _, timing) in timings {
            let [p50, p99, max] = timing.quantiles([0.5, 0.99, 1.0]);
            table.push([
                (self.index.len() as u64).into(),
                (*design).into(),
                (*question).into(),
                (timing.lookups()).into(),
                timing.found().into(),
                timing.rate().into(),
                p50.into(),
                p99.into(),
                max.into(),
            ]);
        }
        Ok(())
    }
}

fn wanted(ask: fn(&mut Definition)) -> Definition {
    let mut wanted = Definition::default();
    ask(&mut wanted);
    wanted
}

/// Creates an index of `count` offers.
fn filled(conditions: &Conditions<'_>, count: usize) -> Result<Filled, Failure> {
    let offers = qws::offers(count, conditions.seed)?;
    let kinds = count.div_ceil(OF_A_TYPE).min(TYPES);
    let kinds: Vec<String> = (0..kinds).map(|kind| format!("uddi:kind:{kind}")).collect();
    let mut index = Index::new(Rates::new(qws::euro()?), Ontologies::new());
    let (start, before) = (Instant::now(), resident()?);
    let mut refused = 0;
    for (number, kind) in kinds.iter().enumerate() {
        let of_kind = offers.iter().skip(number).step_by(kinds.len());
        index.fill(
            kind,
            of_kind.map(|offer: &Offer| ("provider", offer)),
            |_, _, _| refused += 1,
        );
    }
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = (resident()? - before) / 1e6;
    match refused {
        0 => Ok(Filled {
            index,
            kinds,
            seconds,
            megabytes,
        }),
        _ => Err(format!("{refused} offers were refused").into()),
    }
}

/// Resident memory of this process, in bytes (proc(5), statm).
fn resident() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).ok_or("statm is short")?;
    Ok(pages.parse::<f64>()? * rustix::param::page_size() as f64)
}

/// Points of a design's lookups with a question: (offers, value of `column`).
pub(super) fn curve(
    records: &Records,
    design: &str,
    question: &str,
    column: &str,
) -> Vec<(f64, f64)> {
    let rows = records.table("lookups").rows();
    rows.filter(|row| row.text("design") == design && row.text("question") == question)
        .map(|row| (row.number("offers"), row.number(column)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;

    #[test]
    fn every_design_answers_every_question_alike() {
        let records = test_study::run(None, |conditions| study(conditions, &[600], 0.02));
        let answers = records.table("answers");
        assert!(answers.len() >= 2 * QUESTIONS.len());
        for row in answers.rows() {
            assert_eq!(row.number("asked"), 2.0);
            assert_eq!(row.number("as the index"), 2.0, "{}", row.text("design"));
        }
        assert!(curve(&records, "index", "typical", "found")[0].1 > 0.0);
        assert_eq!(curve(&records, "SQLite", "none", "found")[0].1, 0.0);
    }
}
