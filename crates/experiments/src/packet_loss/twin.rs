//! The model beside the kernel: every emulated transaction played once more by the kernel's twin among
//! the profiles, on links that draw the same delays.
//!
//! So chance is the same on both sides, and what is left of a difference is the model's, or the
//! kernel's timers': they run out at multiples of a step (Linux since 4.8, kernel/time/timer.c), and
//! where in that step they are set is chance that the two do not share.

use std::collections::BTreeMap;

use posthaste_draw::{Ladder, Side};
use posthaste_emulator::trace;
use posthaste_link::Direction;
use posthaste_sim::Trace;
use posthaste_units::{Instant, Span};

use super::campaign::Results;
use super::kernel::Kernel;
use super::line::Drops;
use super::played::{self, Part, Played};
use super::rig::{Job, Measured, PROCESSING};
use super::service::SEGMENT;
use super::stack::{Cast, Stack};
use crate::estimate::estimate;
use crate::figure::Failure;
use crate::records::{Records, Table, Value};

/// How far apart the medians of a cell may be, where no timer ran out.
const TOLERANCE_MS: f64 = 5.0;

/// The largest span of the wheels of this kernel's timers, at 250 ticks a second, and their steps.
const WHEELS_MS: [(f64, f64); 3] = [(252.0, 4.0), (2016.0, 32.0), (f64::INFINITY, 256.0)];

/// Both sides of all transactions with one kernel.
pub(super) struct Twin<'a> {
    kernel: &'a Kernel,
    cast: Cast,
    pairs: Vec<Pair>,
}

/// A transaction twice.
struct Pair {
    part: Part,
    measured: Measured,
    played: Played,
}

/// What is written down: the cells, and the ladders of those that are apart.
pub(super) struct Tables {
    cells: Table,
    ladders: Table,
}

impl<'a> Twin<'a> {
    /// Nothing has been compared.
    pub(super) fn new(kernel: &'a Kernel, stack: &Stack) -> Result<Self, Failure> {
        Ok(Self {
            kernel,
            cast: stack.cast(&[])?,
            pairs: Vec::new(),
        })
    }

    /// Plays what was emulated, so far as it belongs to a cell.
    pub(super) fn play(&mut self, jobs: &[Job], results: Results) -> Result<(), Failure> {
        let seed = results.seed;
        let counts = |(job, measured): &(&Job, Measured)| {
            let traced = &measured.traced;
            job.varies && traced.response.is_some() && !traced.is_displaced(job, SEGMENT)
        };
        let (parts, measured): (Vec<Part>, Vec<Measured>) = jobs
            .iter()
            .zip(results.measured)
            .filter(counts)
            .map(|(job, measured)| ((seed, measured.traced.number, *job), measured))
            .unzip();
        let played = played::all(&self.cast, &parts)?;
        let both = parts.into_iter().zip(measured).zip(played);
        self.pairs
            .extend(both.map(|((part, measured), played)| Pair {
                part,
                measured,
                played,
            }));
        Ok(())
    }

    /// Adds a row for every cell, and for those that are apart the ladders of the transaction that is
    /// farthest apart.
    pub(super) fn write(&self, tables: &mut Tables) -> Result<(), Failure> {
        let mut cells: BTreeMap<_, Vec<&Pair>> = BTreeMap::new();
        for pair in &self.pairs {
            let job = &pair.part.2;
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
            if !cell.agrees()
                && let Some(worst) = pairs
                    .iter()
                    .max_by(|one, other| one.apart().total_cmp(&other.apart()))
            {
                self.ladders(&row, worst, &mut tables.ladders)?;
            }
            row.extend(cell.values());
            tables.cells.push(row);
        }
        Ok(())
    }

    fn ladders(&self, place: &[Value], pair: &Pair, table: &mut Table) -> Result<(), Failure> {
        let mut add = |whose: &str, arrow: [Value; 5]| {
            table.push(place.iter().cloned().chain([whose.into()]).chain(arrow));
        };
        let kept = pair.measured.traced.kept.iter().map(AsRef::as_ref);
        for arrow in arrows(&trace::ladder(kept)) {
            add("kernel", arrow);
        }
        let (played, trace) = played::traced(&self.cast, &pair.part)?;
        for arrow in simulated(&trace, played.traced.began) {
            add("model", arrow);
        }
        Ok(())
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
            ]),
            ladders: Table::new([
                "kernel", "service", "kbit", "ms", "position", "whose", "sent_ms", "left_ms",
                "way", "packet", "fate",
            ]),
        }
    }

    pub(super) fn keep(self, records: &mut Records) {
        records.set_table("model", self.cells);
        records.set_table("ladders", self.ladders);
    }
}

impl Pair {
    /// The response times of the kernel and of the model, each with the processing that was asked for:
    /// what the server's program took beyond it is the machine's, and not its TCP's.
    fn times(&self) -> [f64; 2] {
        [&self.measured.traced, &self.played.traced].map(|traced| {
            let time = traced
                .response
                .map(|of| of.t_conn + of.t_req + PROCESSING + of.t_resp);
            time.map_or(f64::NAN, Span::as_millis_f64)
        })
    }

    fn apart(&self) -> f64 {
        let [kernel, model] = self.times();
        (model - kernel).abs()
    }

    /// What the timers that ran out may differ by.
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
    fn of(pairs: &[&Pair]) -> Self {
        let times: Vec<[f64; 2]> = pairs.iter().map(|pair| pair.times()).collect();
        let median = |value: &dyn Fn(&[f64; 2]) -> f64| {
            let values: Vec<f64> = times.iter().map(value).collect();
            estimate(&values).median
        };
        let timeouts = |of: &dyn Fn(&Pair) -> u32| pairs.iter().map(|pair| of(pair)).sum::<u32>();
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

/// The rows of an emulated ladder.
fn arrows(ladder: &Ladder) -> impl Iterator<Item = [Value; 5]> + '_ {
    ladder.arrows.iter().map(|arrow| {
        let way = if arrow.from == Side::Left {
            "up"
        } else {
            "down"
        };
        [
            arrow.departed.into(),
            arrow.ended.into(),
            way.into(),
            arrow.label.clone().into(),
            arrow.lost.clone().unwrap_or_default().into(),
        ]
    })
}

/// The rows of a simulated one.
fn simulated(trace: &Trace, began: Instant) -> impl Iterator<Item = [Value; 5]> + '_ {
    trace.packets().iter().map(move |packet| {
        let at = |time: Instant| Value::from(time.since(began).as_millis_f64());
        let way = if packet.direction == Direction::Up {
            "up"
        } else {
            "down"
        };
        [
            at(packet.sent),
            at(packet.left),
            way.into(),
            packet.label().into(),
            packet.loss().unwrap_or_default().into(),
        ]
    })
}
