//! The model compared with the kernel. Replays each emulated transaction in the simulator with the matching TCP
//! profile, the same link delays, the same phase of the kernel's timer wheel (`ticks`) and the same program times.
//!
//! Chance is then equal on both sides. A remaining difference comes from the model, or from a machine that was not
//! ready when a packet arrived.

use std::collections::BTreeMap;

use posthaste_emulator::trace;
use posthaste_study::{Failure, RecordTable, RecordValue, Records, estimate};
use posthaste_units::Span;

use super::campaign::Results;
use super::cores::all_cores;
use super::divergence;
use super::job::Job;
use super::kernel::KernelSetup;
use super::line::PlannedDrops;
use super::observed::Traced;
use super::service::SEGMENT;
use super::simulated_run::{self, SimulatedRun, SimulationJob};
use super::stack::{SimulatedEnds, SimulatedStack};
use super::testbed::EmulatedRun;
use super::ticks;

/// Tolerated difference of a cell's medians without an expired timer.
const TOLERANCE_MS: f64 = 5.0;

/// Upper bounds and steps of this kernel's timer wheels at 250 ticks a second, in ms.
const WHEELS_MS: [(f64, f64); 3] = [(252.0, 4.0), (2016.0, 32.0), (f64::INFINITY, 256.0)];

/// Names of the counters of first timeouts, in the records.
pub(super) const TIMERS: [&str; 3] = [
    "timers at the tick",
    "timers a tick later",
    "timers elsewhere",
];

/// Both sides of all transactions with one kernel.
pub(super) struct Paired<'a> {
    kernel: &'a KernelSetup,
    ends: SimulatedEnds,
    /// Emulated transactions, with start times of CLOCK_MONOTONIC.
    emulated: Vec<(SimulationJob, EmulatedRun)>,
}

/// An emulated transaction and its simulated run.
struct PairedRun<'a> {
    part: SimulationJob,
    measured: &'a EmulatedRun,
    simulated: SimulatedRun,
}

/// Records: the cells, and the ladders of differing ones.
pub(super) struct Tables {
    cells: RecordTable,
    ladders: RecordTable,
    /// First timeouts of an end: at the model's tick, at the next one, and elsewhere.
    timers: [u64; 3],
}

impl<'a> Paired<'a> {
    /// Creates an empty comparison.
    pub(super) fn new(kernel: &'a KernelSetup, stack: &SimulatedStack) -> Result<Self, Failure> {
        Ok(Self {
            kernel,
            ends: stack.ends(&[])?,
            emulated: Vec::new(),
        })
    }

    /// Adds the emulated transactions that belong to a cell.
    pub(super) fn take(&mut self, jobs: &[Job], results: Results) {
        let counts = |(job, measured): &(&Job, EmulatedRun)| {
            let traced = &measured.traced;
            job.varies && !traced.is_displaced(job, SEGMENT)
        };
        let part = |(job, measured): (&Job, EmulatedRun)| {
            let response = measured.traced.response?;
            let part = SimulationJob {
                began: Some(measured.traced.began + results.origin),
                programs: [response.t_client, response.t_proc],
                ..SimulationJob::new(results.seed, measured.traced.number, *job)
            };
            Some((part, measured))
        };
        let all = jobs.iter().zip(results.measured).filter(counts);
        self.emulated.extend(all.filter_map(part));
    }

    /// Simulates all transactions and adds a row for every cell. A differing cell also gets both ladders of its most
    /// different transaction, and a description of the divergence.
    pub(super) fn write(self, tables: &mut Tables) -> Result<(), Failure> {
        let mut cells: BTreeMap<_, Vec<&PairedRun<'_>>> = BTreeMap::new();
        let pairs = self.pairs()?;
        for pair in &pairs {
            for later in pair.timers_later() {
                let elsewhere = TIMERS.len() - 1;
                let slot = usize::try_from(later).unwrap_or(elsewhere);
                tables.timers[slot.min(elsewhere)] += 1;
            }
            let job = &pair.part.job;
            let PlannedDrops::At([position, _]) = job.drops else {
                continue;
            };
            let key = (job.service.key, job.line.kbit, job.line.ms, position);
            cells.entry(key).or_default().push(pair);
        }
        for ((service, kbit, ms, position), pairs) in cells {
            let mut row = vec![self.kernel.key.into(), service.into()];
            row.extend([kbit, ms, position].map(|n| RecordValue::from(u64::from(n))));
            let cell = PairedCell::from_runs(&pairs);
            let farthest = |one: &&&PairedRun<'_>, other: &&&PairedRun<'_>| {
                one.apart().total_cmp(&other.apart())
            };
            let divergence = match pairs.iter().max_by(farthest) {
                Some(worst) if !cell.agrees() => self.ladders(&row, worst, &mut tables.ladders)?,
                _ => String::new(),
            };
            row.extend(cell.values());
            row.push(divergence.into());
            tables.cells.push(row);
        }
        Ok(())
    }

    /// All transactions with both sides.
    fn pairs(&self) -> Result<Vec<PairedRun<'_>>, Failure> {
        let timeouts = self.emulated.iter().flat_map(|(part, measured)| {
            let began = measured.traced.began;
            let apart = part
                .began
                .map_or(Span::ZERO, |part| part.saturating_since(began));
            let ends = measured.traced.timeouts.iter().flatten();
            ends.map(move |time| *time + apart)
        });
        let phase = ticks::phase(timeouts);
        let parts: Vec<SimulationJob> = self
            .emulated
            .iter()
            .map(|(part, _)| SimulationJob {
                began: part.began.map(|began| began - phase),
                ..*part
            })
            .collect();
        let simulated = simulated_run::all(all_cores(), &self.ends, &parts)?;
        let measured = self.emulated.iter().map(|(_, measured)| measured);
        let both = parts.into_iter().zip(measured).zip(simulated);
        Ok(both
            .map(|((part, measured), simulated)| PairedRun {
                part,
                measured,
                simulated,
            })
            .collect())
    }

    /// Adds both ladders of a transaction. Returns a description of their divergence.
    fn ladders(
        &self,
        group: &[RecordValue],
        pair: &PairedRun<'_>,
        table: &mut RecordTable,
    ) -> Result<String, Failure> {
        let kept = pair.measured.traced.kept.iter().map(AsRef::as_ref);
        let kernel = divergence::emulated(&trace::ladder(kept));
        let (simulated, trace) = simulated_run::traced(&self.ends, &pair.part)?;
        let model = divergence::simulated(&trace, simulated.traced.began);
        for (whose, ladder) in [("kernel", &kernel), ("model", &model)] {
            for rung in ladder {
                let row = group.iter().cloned().chain([whose.into()]);
                table.push(row.chain(rung.values()));
            }
        }
        Ok(divergence::divergence(&kernel, &model).unwrap_or_default())
    }
}

impl Tables {
    pub(super) fn new() -> Self {
        Self {
            cells: RecordTable::new([
                "kernel",
                "service",
                "kbit",
                "ms",
                "position",
                "transactions",
                "kernel_ms",
                "model_ms",
                "paired_ms",
                "kernel_timeouts",
                "model_timeouts",
                "allowed_ms",
                "agrees",
                "parting",
            ]),
            ladders: RecordTable::new([
                "kernel", "service", "kbit", "ms", "position", "whose", "sent_ms", "left_ms",
                "way", "packet", "fate",
            ]),
            timers: [0; 3],
        }
    }

    pub(super) fn keep(self, records: &mut Records) {
        for (name, count) in TIMERS.into_iter().zip(self.timers) {
            records.set_number(name, count as f64);
        }
        records.set_table("model", self.cells);
        records.set_table("ladders", self.ladders);
    }
}

impl PairedRun<'_> {
    /// Response times of the kernel and of the model, in ms.
    fn times(&self) -> [f64; 2] {
        [&self.measured.traced, &self.simulated.traced].map(|traced| {
            let time = traced.response_time();
            time.map_or(f64::NAN, Span::as_millis_f64)
        })
    }

    fn apart(&self) -> f64 {
        let [kernel, model] = self.times();
        (model - kernel).abs()
    }

    /// Difference of the first timeout of each end, kernel minus model, in ticks.
    fn timers_later(&self) -> impl Iterator<Item = i64> {
        let first = |traced: &Traced, end: usize| {
            let time = traced.timeouts[end].first();
            time.map(|time| time.saturating_since(traced.began).as_millis_f64())
        };
        [0, 1].into_iter().filter_map(move |end| {
            let later = first(&self.measured.traced, end)? - first(&self.simulated.traced, end)?;
            Some((later / ticks::TICK.as_millis_f64()).round() as i64)
        })
    }

    /// Tolerated difference from the steps of the expired timers, in ms.
    fn steps_ms(&self) -> f64 {
        let step = |timer: &Span| {
            let wheel = WHEELS_MS
                .iter()
                .find(|(most, _)| timer.as_millis_f64() < *most);
            wheel.map_or(0.0, |(_, step)| *step)
        };
        self.simulated.timers.iter().map(step).sum()
    }
}

/// A cell on both sides.
struct PairedCell {
    transactions: usize,
    medians: [f64; 2],
    paired: f64,
    timeouts: [u32; 2],
    allowed: f64,
}

impl PairedCell {
    fn from_runs(pairs: &[&PairedRun<'_>]) -> Self {
        let times: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.times()).collect();
        let median = |value: &dyn Fn(&[f64; 2]) -> f64| {
            let values: Vec<f64> = times.iter().map(value).collect();
            estimate(&values).median
        };
        let timeouts = |count: &dyn Fn(&PairedRun<'_>) -> u32| {
            pairs.iter().map(|pair| count(pair)).sum::<u32>()
        };
        let steps = pairs.iter().map(|pair| pair.steps_ms());
        Self {
            transactions: pairs.len(),
            medians: [median(&|pair| pair[0]), median(&|pair| pair[1])],
            paired: median(&|pair| pair[1] - pair[0]),
            timeouts: [
                timeouts(&|pair| pair.measured.traced.timeouts().iter().sum()),
                timeouts(&|pair| pair.simulated.traced.timeouts().iter().sum()),
            ],
            allowed: TOLERANCE_MS + steps.fold(0.0, f64::max),
        }
    }

    fn agrees(&self) -> bool {
        (self.medians[1] - self.medians[0]).abs() <= self.allowed
    }

    fn values(&self) -> Vec<RecordValue> {
        let mut values = vec![RecordValue::from(self.transactions as u64)];
        values.extend([self.medians[0], self.medians[1], self.paired].map(RecordValue::from));
        values.extend(
            self.timeouts
                .map(|count| RecordValue::from(u64::from(count))),
        );
        values.push(self.allowed.into());
        values.push(u64::from(self.agrees()).into());
        values
    }
}
