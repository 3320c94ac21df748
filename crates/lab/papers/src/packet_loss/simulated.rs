//! The same sweep in virtual time: every line, every position, both services, every stack.
//!
//! Simulation needs no waiting, so every cell is repeated often. The records keep the cells and the inputs of the
//! checks.

use std::num::NonZero;

use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Seed, Span};

use super::cells::summarise;
use super::columns;
use super::instrument;
use super::job::{Job, PROCESSING};
use super::line::{self, PlannedDrops};
use super::service::{self, AUTHOR, PaperService, SEGMENT};
use super::simulated_run::{self, SimulatedRun, SimulationJob};
use super::stack::{self, SimulatedStack};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-simulated",
    needs: Needs::Nothing,
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

/// Transactions of a cell whose times the paper gives in numbers. A median of 15 scatters by 8 ms, as much as the
/// differences to be judged. At most 1,074, where [`estimate`](posthaste_study::estimate) would underflow.
const PUBLISHED: usize = 1000;

/// Transactions that are simulated twice to check that results repeat.
const AGAIN: usize = 400;

/// Results of the simulation.
pub(super) struct Simulated {
    /// All transactions.
    pub(super) transactions: RecordTable,
    repetitions: usize,
    /// The same on lines for which the paper gives times in numbers.
    published: usize,
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
        transactions: columns::table(),
        repetitions,
        published: PUBLISHED,
        again: 0,
        same: 0,
        planned: 0,
        steady: steady()?,
    };
    for (done, stack) in stack::ALL.into_iter().enumerate() {
        if conditions.stopped() {
            break;
        }
        let message = format!("{}, {} cells", stack.name, cells.len());
        let progress = conditions.progress;
        progress.step(done as u64, stack::ALL.len() as u64, &message);
        simulated.play(
            conditions.threads,
            stack,
            cells,
            conditions.seed.child(stack.key),
        )?;
    }
    Ok(simulated)
}

/// All lines with all positions of both services.
pub(super) fn cells() -> Vec<Job> {
    let jobs = |service: &'static PaperService| {
        line::all().flat_map(move |line| {
            (0..=service.packets()).map(move |position| Job {
                service,
                line,
                drops: PlannedDrops::one(position),
                varies: true,
            })
        })
    };
    service::BOTH.into_iter().flat_map(jobs).collect()
}

/// Simulates a transaction with a computable time.
fn steady() -> Result<Option<Span>, Failure> {
    let ends = stack::matching("today", "", "linux-6").ends(&[])?;
    let job = instrument::steady()[0];
    let simulated = simulated_run::one(&ends, &SimulationJob::new(Seed(1), 1, job))?;
    Ok(simulated.traced.response_time())
}

impl Simulated {
    fn play(
        &mut self,
        threads: NonZero<usize>,
        stack: &SimulatedStack,
        cells: &[Job],
        seed: Seed,
    ) -> Result<(), Failure> {
        let ends = stack.ends(&[])?;
        let jobs = cells
            .iter()
            .flat_map(|job| std::iter::repeat_n(*job, self.repetitions_of(job)));
        let parts: Vec<SimulationJob> = (1..)
            .zip(jobs)
            .map(|(number, job)| SimulationJob::new(seed, number, job))
            .collect();
        let simulated = simulated_run::all(threads, &ends, &parts)?;
        // A sample of the transactions is repeated alone and in another order.
        for index in (0..parts.len()).rev().step_by(parts.len().div_ceil(AGAIN)) {
            let again = simulated_run::one(&ends, &parts[index])?;
            let columns = |simulated: &SimulatedRun| columns_of(stack, &parts[index], simulated);
            self.again += 1;
            self.same += usize::from(columns(&again) == columns(&simulated[index]));
        }
        self.planned += simulated
            .iter()
            .filter(|simulated| simulated.planned)
            .count();
        for (part, simulated) in parts.iter().zip(&simulated) {
            self.transactions.push(columns_of(stack, part, simulated));
        }
        Ok(())
    }

    fn repetitions_of(&self, job: &Job) -> usize {
        if job.service == &AUTHOR && line::PUBLISHED.contains(&job.line) {
            self.published
        } else {
            self.repetitions
        }
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
        let repetitions = format!(
            "{}, and {} of Author on lines with published times",
            self.repetitions, self.published
        );
        records.set_parameter("simulated repetitions", repetitions);
    }
}

fn columns_of(
    stack: &SimulatedStack,
    part: &SimulationJob,
    simulated: &SimulatedRun,
) -> Vec<posthaste_study::RecordValue> {
    columns::row(
        stack.key,
        SEGMENT,
        &part.job,
        simulated.well,
        &simulated.traced,
    )
}

#[cfg(test)]
mod tests {
    use super::super::line::NetworkLine;
    use super::super::stack::FREEBSD;
    use super::*;

    const LINE: NetworkLine = NetworkLine { kbit: 300, ms: 10 };

    #[test]
    fn the_cells_of_freebsd_are_sensitive_where_the_paper_says() {
        let here = |job: &Job| job.line == LINE && job.service == &AUTHOR;
        let cells: Vec<Job> = cells().into_iter().filter(here).collect();
        assert_eq!(cells.len(), 13);
        let mut simulated = Simulated {
            transactions: columns::table(),
            repetitions: 3,
            published: 3,
            again: 0,
            same: 0,
            planned: 0,
            steady: steady().unwrap(),
        };
        simulated
            .play(NonZero::<usize>::MIN, &FREEBSD, &cells, Seed(1))
            .unwrap();
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
