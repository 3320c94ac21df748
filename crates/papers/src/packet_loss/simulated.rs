//! The same sweep in virtual time: every line, every position, both services, every stack.
//!
//! Simulation needs no waiting, so every cell is repeated often. The records keep the cells and the inputs of the
//! checks.

use posthaste_study::{Conditions, Failure, Needs, Records, Study, Table};
use posthaste_units::{Seed, Span};

use super::account;
use super::cells::summarise;
use super::instrument;
use super::line::{self, Drops};
use super::played::{self, Part, Played};
use super::rig::{Job, PROCESSING};
use super::service::{self, SEGMENT, Service};
use super::stack::{self, Stack};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-simulated",
    needs: Needs::Processor,
    core: true,
    run: |conditions| {
        let mut records = Records::new();
        records.set_parameter("processing", PROCESSING);
        let simulated = run(conditions, &cells())?;
        simulated.note(&mut records);
        summarise(&mut records, &simulated.transactions);
        Ok(records)
    },
};

/// Transactions that are simulated twice to check that results repeat.
const AGAIN: usize = 400;

/// Results of the simulation.
pub(super) struct Simulated {
    /// All transactions.
    pub(super) transactions: Table,
    repetitions: usize,
    /// Transactions simulated twice, and those with equal results.
    again: usize,
    same: usize,
    /// Transactions in which the links dropped only the intended packets.
    planned: usize,
    /// Response time without loss and with steady delays.
    steady: Option<Span>,
}

/// Simulates `cells` with every stack, each cell several times.
pub(super) fn run(conditions: &Conditions<'_>, cells: &[Job]) -> Result<Simulated, Failure> {
    let repetitions = if conditions.full { 99 } else { 15 };
    let mut simulated = Simulated {
        transactions: account::table(),
        repetitions,
        again: 0,
        same: 0,
        planned: 0,
        steady: steady()?,
    };
    for (done, stack) in stack::ALL.into_iter().enumerate() {
        if conditions.stopped() {
            break;
        }
        let words = format!("{}, {} cells", stack.name, cells.len());
        let progress = conditions.progress;
        progress.step(done as u64, stack::ALL.len() as u64, &words);
        simulated.play(stack, cells, conditions.seed.child(stack.key))?;
    }
    Ok(simulated)
}

/// All lines with all positions of both services.
pub(super) fn cells() -> Vec<Job> {
    let of = |service: &'static Service| {
        line::all().flat_map(move |line| {
            (0..=service.packets()).map(move |position| Job {
                service,
                line,
                drops: Drops::one(position),
                varies: true,
            })
        })
    };
    service::BOTH.into_iter().flat_map(of).collect()
}

/// Simulates a transaction with a computable time.
fn steady() -> Result<Option<Span>, Failure> {
    let cast = stack::twin("today", "", "linux-6").cast(&[])?;
    let job = instrument::steady()[0];
    let played = played::one(&cast, &Part::new(Seed(1), 1, job))?;
    Ok(played.traced.response_time())
}

impl Simulated {
    fn play(&mut self, stack: &Stack, cells: &[Job], seed: Seed) -> Result<(), Failure> {
        let cast = stack.cast(&[])?;
        let jobs = cells
            .iter()
            .flat_map(|job| std::iter::repeat_n(*job, self.repetitions));
        let parts: Vec<Part> = (1..)
            .zip(jobs)
            .map(|(number, job)| Part::new(seed, number, job))
            .collect();
        let played = played::all(&cast, &parts)?;
        // A sample of the transactions is repeated alone and in another order.
        for place in (0..parts.len()).rev().step_by(parts.len().div_ceil(AGAIN)) {
            let again = played::one(&cast, &parts[place])?;
            let told = |played: &Played| account_of(stack, &parts[place], played);
            self.again += 1;
            self.same += usize::from(told(&again) == told(&played[place]));
        }
        self.planned += played.iter().filter(|played| played.planned).count();
        for (part, played) in parts.iter().zip(&played) {
            self.transactions.push(account_of(stack, part, played));
        }
        Ok(())
    }

    /// Records the inputs of the checks.
    pub(super) fn note(&self, records: &mut Records) {
        let rows = || self.transactions.rows();
        let count = |column: &str| rows().filter(|row| row.number(column) == 1.0).count();
        let mut set = |name: &str, number: usize| records.set_number(name, number as f64);
        set("simulated", self.transactions.len());
        set("simulated planned", self.planned);
        set("simulated again", self.again);
        set("simulated alike", self.same);
        for column in ["exact", "well", "displaced"] {
            set(&format!("simulated {column}"), count(column));
        }
        let steady = self.steady.map_or(f64::NAN, Span::as_millis_f64);
        records.set_number("simulated steady ms", steady);
        records.set_parameter("simulated repetitions", self.repetitions);
    }
}

fn account_of(stack: &Stack, part: &Part, played: &Played) -> Vec<posthaste_study::Value> {
    account::row((stack.key, SEGMENT), &part.job, played.well, &played.traced)
}

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::super::service::AUTHOR;
    use super::super::stack::FREEBSD;
    use super::*;

    const LINE: Line = Line { kbit: 300, ms: 10 };

    #[test]
    fn the_cells_of_freebsd_are_sensitive_where_the_paper_says() {
        let here = |job: &Job| job.line == LINE && job.service == &AUTHOR;
        let cells: Vec<Job> = cells().into_iter().filter(here).collect();
        assert_eq!(cells.len(), 13);
        let mut simulated = Simulated {
            transactions: account::table(),
            repetitions: 3,
            again: 0,
            same: 0,
            planned: 0,
            steady: steady().unwrap(),
        };
        simulated.play(&FREEBSD, &cells, Seed(1)).unwrap();
        let mut records = Records::new();
        simulated.note(&mut records);
        for check in instrument::simulation(&records) {
            assert!(check.holds, "{}", check.sentence);
        }
        summarise(&mut records, &simulated.transactions);
        let cells = FREEBSD.cells(&records, &AUTHOR);
        assert_eq!(cells.sensitive(LINE), [8, 9, 10, 11]);
        assert!(cells.late().eq(8..=11) && cells.reference() == 6);
    }
}
