//! How fast the best offer is found, by design and number of offers: in this process, on one core, without a network.

use std::time::Instant;

use jiff::Timestamp;
use posthaste_broker::prototype::{Design, Prototype};
use posthaste_units::{Rate, Ratio, Span};
use posthaste_wsqos::index::Index;
use posthaste_wsqos::qos::{Definition, Offer, Ontologies, Rates};
use rand::RngExt as _;

use super::qws;
use crate::figure::{Conditions, Failure, Study};
use crate::records::{Records, Table, Value};

pub(super) static STUDY: Study = Study {
    name: "wsqos-lookups",
    run: |conditions| {
        let quick: &[usize] = &[27, 1_000, 10_000, 100_000];
        let full: &[usize] = &[27, 1_000, 10_000, 100_000, 1_000_000];
        match conditions.full {
            true => study(conditions, full, 1.0),
            false => study(conditions, quick, 0.25),
        }
    },
};

/// Offers of one type of interface, and how many types there are at most: beyond that each has more.
const OF_A_TYPE: usize = 500;
const TYPES: usize = 200;

/// A question's name, and how it is asked.
pub(super) type Question = (&'static str, fn(&mut Definition));

/// What is asked.
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

/// The designs, by the names in records: ours, and the thesis's two.
pub(super) const DESIGNS: [&str; 3] = ["index", "walk", "SQLite"];

/// Something that can be asked.
enum Asked<'i> {
    Index(&'i Index),
    Prototype(Prototype),
}

impl Asked<'_> {
    fn answers(
        &self,
        index: &Index,
        kind: &str,
        wanted: &Definition,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        Ok(match self {
            Self::Index(index) => index.best(kind, wanted, now).is_some(),
            Self::Prototype(prototype) => {
                prototype.best(kind, wanted, &index.world(now))?.is_some()
            }
        })
    }
}

fn study(conditions: &Conditions<'_>, counts: &[usize], seconds: f64) -> Result<Records, Failure> {
    let mut records = Records::new();
    let types = format!("one for {OF_A_TYPE} offers, at most {TYPES}");
    records.set_parameter("types", types);
    records.set_parameter("time for each question", format!("{seconds} s"));
    let mut table = Table::new([
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
    let mut built = Table::new(["offers", "seconds", "megabytes"]);
    for (done, &count) in counts.iter().enumerate() {
        let words = format!("{count} offers");
        let all = counts.len() as u64;
        conditions.progress.step(done as u64, all, &words);
        let filled = filled(conditions, count)?;
        let (took, memory) = (filled.seconds, filled.megabytes);
        built.push([(count as u64).into(), took.into(), memory.into()]);
        for design in DESIGNS {
            let asked = filled.design(design)?;
            for question in QUESTIONS.iter().take_while(|_| !conditions.stopped()) {
                table.push(filled.time(&asked, (design, question), conditions, seconds)?);
            }
        }
    }
    records.set_table("lookups", table);
    records.set_table("built", built);
    Ok(records)
}

/// An index, and what it took to fill it.
struct Filled {
    index: Index,
    /// The types that there are offers for.
    kinds: Vec<String>,
    seconds: f64,
    /// Of memory.
    megabytes: f64,
}

impl Filled {
    /// What is asked, by the name of its design.
    fn design(&self, name: &str) -> Result<Asked<'_>, Failure> {
        let now = Timestamp::now();
        let world = self.index.world(now);
        let prototype = |design| Prototype::of(design, &self.index, &world).map(Asked::Prototype);
        Ok(match name {
            "walk" => prototype(Design::Walk)?,
            "SQLite" => prototype(Design::Database)?,
            _ => Asked::Index(&self.index),
        })
    }

    /// A row: a question asked again and again, each time of a type drawn by chance.
    fn time(
        &self,
        asked: &Asked<'_>,
        (design, (question, ask)): (&str, &Question),
        conditions: &Conditions<'_>,
        seconds: f64,
    ) -> Result<[Value; 9], Failure> {
        let now = Timestamp::now();
        let mut wanted = Definition::default();
        ask(&mut wanted);
        let mut order = conditions.seed.stream("which type is asked for");
        let (mut nanos, mut found) = (Vec::with_capacity(1 << 20), 0u64);
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < seconds {
            let kind = &self.kinds[order.random_range(0..self.kinds.len())];
            let begin = Instant::now();
            found += u64::from(asked.answers(&self.index, kind, &wanted, now)?);
            nanos.push(begin.elapsed().as_nanos() as f64);
        }
        let rate = nanos.len() as f64 / start.elapsed().as_secs_f64();
        nanos.sort_by(f64::total_cmp);
        let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize] / 1e3;
        Ok([
            (self.index.len() as u64).into(),
            design.into(),
            (*question).into(),
            (nanos.len() as u64).into(),
            found.into(),
            rate.into(),
            at(0.5).into(),
            at(0.99).into(),
            at(1.0).into(),
        ])
    }
}

/// An index with so many offers.
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

/// Bytes of this process that are in memory (proc(5), statm).
fn resident() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).ok_or("statm is short")?;
    Ok(pages.parse::<f64>()? * rustix::param::page_size() as f64)
}

/// A column of the lookups of a design, with a question: (offers, value).
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
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::lab::Lab;

    #[test]
    fn every_design_answers_every_question_alike() {
        let lab = Lab::Shared("a test".to_owned());
        let stop = AtomicBool::new(false);
        let records = study(&Conditions::of_a_test(&lab, &stop), &[600], 0.02).unwrap();
        for (question, _) in QUESTIONS {
            let share = |design: &str| {
                let places = |column| curve(&records, design, question, column)[0].1;
                places("found") / places("lookups")
            };
            let [index, walk, sql] = DESIGNS.map(share);
            let all = |share: f64| share == 0.0 || share == 1.0;
            // Two types: each has such an offer, or neither.
            if all(index) {
                assert_eq!([walk, sql], [index, index], "{question}");
            }
        }
        assert!(curve(&records, "index", "typical", "found")[0].1 > 0.0);
        assert_eq!(curve(&records, "SQLite", "none", "found")[0].1, 0.0);
    }
}
