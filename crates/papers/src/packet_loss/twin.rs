//! The model compared with the kernel. Replays each emulated transaction in the simulator with the matching TCP
//! profile, the same link delays, the same phase of the kernel's timer wheel (`ticks`) and the same program times.
//!
//! Chance is then equal on both sides. A remaining difference comes from the model, or from a machine that was not
//! ready when a packet arrived.

use std::collections::BTreeMap;

use posthaste_emulator::trace;
use posthaste_study::{Failure, Records, Table, Value, estimate};
use posthaste_units::Span;

use super::campaign::Results;
use super::kernel::Kernel;
use super::line::Drops;
use super::parting;
use super::played::{self, Part, Played};
use super::rig::{Job, Measured};
use super::seen::Traced;
use super::service::SEGMENT;
use super::stack::{Cast, Stack};
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
pub(super) struct Twin<'a> {
    kernel: &'a Kernel,
    cast: Cast,
    /// Emulated transactions, with start times of CLOCK_MONOTONIC.
    emulated: Vec<(Part, Measured)>,
}

/// An emulated transaction and its simulated run.
struct Pair<'a> {
    part: Part,
    measured: &'a Measured,
    played: Played,
}

/// Records: the cells, and the ladders of differing ones.
pub(super) struct Tables {
    cells: Table,
    ladders: Table,
    /// First timeouts of an end: at the model's tick, at the next one, and elsewhere.
    timers: [u64; 3],
}

impl<'a> Twin<'a> {
    /// Creates an empty comparison.
    pub(super) fn new(kernel: &'a Kernel, stack: &Stack) -> Result<Self, Failure> {
        Ok(Self {
            kernel,
            cast: stack.cast(&[])?,
            emulated: Vec::new(),
        })
    }

    /// Adds the emulated transactions that belong to a cell.
    pub(super) fn take(&mut self, jobs: &[Job], results: Results) {
        let counts = |(job, measured): &(&Job, Measured)| {
            let traced = &measured.traced;
            job.varies && !traced.is_displaced(job, SEGMENT)
        };
        let part = |(job, measured): (&Job, Measured)| {
            let response = measured.traced.response?;
            let part = Part {
                began: Some(measured.traced.began + results.origin),
                programs: [response.t_client, response.t_proc],
                ..Part::new(results.seed, measured.traced.number, *job)
            };
            Some((part, measured))
        };
        let all = jobs.iter().zip(results.measured).filter(counts);
        self.emulated.extend(all.filter_map(part));
    }

    /// Simulates all transactions and adds a row for every cell. A differing cell also gets both ladders of its most
    /// different transaction, and a description of the divergence.
    pub(super) fn write(self, tables: &mut Tables) -> Result<(), Failure> {
        let mut cells: BTreeMap<_, Vec<&Pair<'_>>> = BTreeMap::new();
        let pairs = self.pairs()?;
        for pair in &pairs {
            for later in pair.timers_later() {
                let elsewhere = TIMERS.len() - 1;
                let place = usize::try_from(later).unwrap_or(elsewhere);
                tables.timers[place.min(elsewhere)] += 1;
            }
            let job = &pair.part.job;
            let Drops::At([position, _]) = job.drops else {
                continue;
            };
            let key = (job.service.key, job.line.kbit, job.line.ms, position);
            cells.entry(key).or_default().push(pair);
        }
        for ((service, kbit, ms, position), pairs) in cells {
            let mut row = vec![self.kernel.key.into(), service.into()];
            row.extend([kbit, ms, position].map(|n| Value::from(u64::from(n))));
            let cell = Cell::of(&pairs);
            let farthest =
                |one: &&&Pair<'_>, other: &&&Pair<'_>| one.apart().total_cmp(&other.apart());
            let parting = match pairs.iter().max_by(farthest) {
                Some(worst) if !cell.agrees() => self.ladders(&row, worst, &mut tables.ladders)?,
                _ => String::new(),
            };
            row.extend(cell.values());
            row.push(parting.into());
            tables.cells.push(row);
        }
        Ok(())
    }

    /// All transactions with both sides.
    fn pairs(&self) -> Result<Vec<Pair<'_>>, Failure> {
        let timeouts = self.emulated.iter().flat_map(|(part, measured)| {
            let began = measured.traced.began;
            let apart = part
                .began
                .map_or(Span::ZERO, |part| part.saturating_since(began));
            let ends = measured.traced.timeouts.iter().flatten();
            ends.map(move |time| *time + apart)
        });
        let phase = ticks::phase(timeouts);
        let parts: Vec<Part> = self
            .emulated
            .iter()
            .map(|(part, _)| Part {
                began: part.began.map(|began| began - phase),
                ..*part
            })
            .collect();
        let played = played::all(&self.cast, &parts)?;
        let measured = self.emulated.iter().map(|(_, measured)| measured);
        let both = parts.into_iter().zip(measured).zip(played);
        Ok(both
            .map(|((part, measured), played)| Pair {
                part,
                measured,
                played,
            })
            .collect())
    }

    /// Adds both ladders of a transaction. Returns a description of their divergence.
    fn ladders(
        &self,
        place: &[Value],
        pair: &Pair<'_>,
        table: &mut Table,
    ) -> Result<String, Failure> {
        let kept = pair.measured.traced.kept.iter().map(AsRef::as_ref);
        let kernel = parting::emulated(&trace::ladder(kept));
        let (played, trace) = played::traced(&self.cast, &pair.part)?;
        let model = parting::simulated(&trace, played.traced.began);
        for (whose, ladder) in [("kernel", &kernel), ("model", &model)] {
            for rung in ladder {
                let row = place.iter().cloned().chain([whose.into()]);
                table.push(row.chain(rung.values()));
            }
        }
        Ok(parting::parting(&kernel, &model).unwrap_or_default())
    }
}

impl Tables {
    pub(super) fn new() -> Self {
        Self {
            cells: Table::new([
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
            ladders: Table::new([
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

impl Pair<'_> {
    /// Response times of the kernel and of the model, in ms.
    fn times(&self) -> [f64; 2] {
        [&self.measured.traced, &self.played.traced].map(|traced| {
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
            let later = first(&self.measured.traced, end)? - first(&self.played.traced, end)?;
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
        self.played.timers.iter().map(step).sum()
    }
}

/// A cell on both sides.
struct Cell {
    transactions: usize,
    medians: [f64; 2],
    paired: f64,
    timeouts: [u32; 2],
    allowed: f64,
}

impl Cell {
    fn of(pairs: &[&Pair<'_>]) -> Self {
        let times: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.times()).collect();
        let median = |value: &dyn Fn(&[f64; 2]) -> f64| {
            let values: Vec<f64> = times.iter().map(value).collect();
            estimate(&values).median
        };
        let timeouts =
            |of: &dyn Fn(&Pair<'_>) -> u32| pairs.iter().map(|pair| of(pair)).sum::<u32>();
        let steps = pairs.iter().map(|pair| pair.steps_ms());
        Self {
            transactions: pairs.len(),
            medians: [median(&|pair| pair[0]), median(&|pair| pair[1])],
            paired: median(&|pair| pair[1] - pair[0]),
            timeouts: [
                timeouts(&|pair| pair.measured.traced.timeouts().iter().sum()),
                timeouts(&|pair| pair.played.traced.timeouts().iter().sum()),
            ],
            allowed: TOLERANCE_MS + steps.fold(0.0, f64::max),
        }
    }

    fn agrees(&self) -> bool {
        (self.medians[1] - self.medians[0]).abs() <= self.allowed
    }

    fn values(&self) -> Vec<Value> {
        let mut values = vec![Value::from(self.transactions as u64)];
        values.extend([self.medians[0], self.medians[1], self.paired].map(Value::from));
        values.extend(self.timeouts.map(|count| Value::from(u64::from(count))));
        values.push(self.allowed.into());
        values.push(u64::from(self.agrees()).into());
        values
    }
}
