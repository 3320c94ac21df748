//! Cost model: CPU time and output size of each step by size of the reply, assumed at first, then learned.
//!
//! The initial table was measured on SOAP replies of four sizes. The gateway then reports compressed replies
//! ([`CostModel::observe`]), which replace the assumed values in their size class. All reports together also determine the
//! speed of this machine relative to that of the table, which applies to classes without a report. One report changes a
//! cost by a bounded amount, so that a preempted thread does not make a coding look unaffordable.

use posthaste_units::{Size, Span};

use crate::step::{STEPS, Step};

/// Assumed length of a reply with an unknown length.
pub const UNKNOWN_LENGTH: Size = Size::from_bytes(16 << 10);

/// Size classes: each twice the one before, the first up to 1 KiB, the last from 512 KiB.
const CLASSES: usize = 11;

/// Maximum number of reports in an average: a later report has a weight of 1/32.
const MEMORY: f32 = 32.0;

/// One reply in seven of a converged class is measured, because reading the thread's CPU clock is a system call of
/// 0.4 µs, twice per reply. A prime, so that alternating kinds of replies are all measured.
const MEASURE_EVERY: u8 = 7;

/// Maximum factor between a report and the current cost, in both directions.
const LEAP: f32 = 4.0;

/// Minimum in nanoseconds per byte. A coarse clock could report 0.
const LEAST: f32 = 0.05;

/// Sizes at which the table was measured: the bookshop's replies, and the beginning of one.
const MEASURED: [f32; 4] = [1024.0, 3489.0, 16_169.0, 50_327.0];

/// Microseconds and output bytes at those sizes, for each step. Measured with libdeflate, zstd and brotli with reused
/// state; the minimum of 600 runs.
const TABLE: [[(f32, f32); 4]; STEPS.len()] = [
    [
        (6.5, 659.0),
        (10.5, 1451.0),
        (34.8, 6258.0),
        (99.8, 17_409.0),
    ],
    [
        (9.9, 659.0),
        (17.7, 1435.0),
        (74.2, 6018.0),
        (452.5, 15_853.0),
    ],
    [
        (4.3, 670.0),
        (8.4, 1500.0),
        (37.7, 6179.0),
        (95.2, 17_026.0),
    ],
    [
        (5.7, 667.0),
        (11.0, 1485.0),
        (46.8, 6141.0),
        (127.7, 16_163.0),
    ],
    [
        (11.4, 680.0),
        (24.0, 1539.0),
        (87.8, 6744.0),
        (229.7, 17_583.0),
    ],
    [
        (46.9, 589.0),
        (79.3, 1299.0),
        (278.3, 5688.0),
        (1152.9, 15_326.0),
    ],
];

/// Expected cost of a step for one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// CPU time.
    pub cpu: Span,
    /// Output bytes.
    pub out: Size,
}

/// Cost model of all steps. One per thread needs no lock and takes about 1 kB.
#[derive(Clone, Debug)]
pub struct CostModel {
    cells: [[CostCell; CLASSES]; STEPS.len()],
    /// This machine's CPU time divided by that of the table.
    slowness: f32,
}

#[derive(Clone, Copy, Debug)]
struct CostCell {
    /// Nanoseconds per input byte.
    per_byte: f32,
    /// Output bytes per input byte.
    ratio: f32,
    /// Reports so far, up to [`MEMORY`]. 0 means that the table applies.
    seen: f32,
    /// Replies since the last measured one, once the class has converged.
    booked: u8,
}

impl CostModel {
    /// Expected CPU time and output size of `step` for a reply of this length.
    pub fn estimate(&self, step: Step, length: Size) -> Estimate {
        let bytes = length.as_bytes() as f32;
        let cell = &self.cells[step.index()][class(length)];
        let slowness = if cell.seen > 0.0 { 1.0 } else { self.slowness };
        Estimate {
            cpu: Span::from_nanos((bytes * cell.per_byte * slowness) as u64),
            out: Size::from_bytes((bytes * cell.ratio).ceil() as u64),
        }
    }

    /// Returns the CPU time to charge without a measurement, or `None` if the reply must be measured and reported.
    ///
    /// Reading the thread's CPU clock takes 0.4 µs before and after, a tenth of the compression of a short reply. A
    /// class with enough reports is therefore measured only occasionally, often enough to follow a machine that gets
    /// slower.
    pub fn converged_cost(&mut self, step: Step, length: Size) -> Option<Span> {
        let price = self.estimate(step, length).cpu;
        let cell = &mut self.cells[step.index()][class(length)];
        if cell.seen < MEMORY {
            return None;
        }
        cell.booked = (cell.booked + 1) % MEASURE_EVERY;
        (cell.booked > 0).then_some(price)
    }

    /// Reports that `step` compressed `length` to `out` in `cpu` of CPU time.
    pub fn observe(&mut self, step: Step, length: Size, out: Size, cpu: Span) {
        if length.as_bytes() == 0 {
            return;
        }
        let bytes = length.as_bytes() as f32;
        let cell = &mut self.cells[step.index()][class(length)];
        let assumed = start(step, class(length)).per_byte;
        let expected = if cell.seen > 0.0 {
            cell.per_byte
        } else {
            assumed * self.slowness
        };
        let observed = cpu.as_nanos() as f32 / bytes;
        let observed = observed.clamp(expected / LEAP, expected * LEAP).max(LEAST);
        cell.seen = (cell.seen + 1.0).min(MEMORY);
        cell.per_byte = expected + (observed - expected) / cell.seen;
        let ratio = (out.as_bytes() as f32 / bytes).clamp(1e-4, 2.0);
        cell.ratio += (ratio - cell.ratio) / cell.seen;
        // The ratio of speeds is the same for every step.
        self.slowness += (observed / assumed - self.slowness) / MEMORY;
    }
}

impl Default for CostModel {
    /// The costs of the table.
    fn default() -> Self {
        let row = |step: Step| std::array::from_fn(|class| start(step, class));
        Self {
            cells: STEPS.map(row),
            slowness: 1.0,
        }
    }
}

fn class(length: Size) -> usize {
    let doublings = (length.as_bytes() >> 9).max(1).ilog2() as usize;
    doublings.min(CLASSES - 1)
}

/// The table's cost in the middle of a class: linear interpolation between the measured sizes, and proportional
/// extrapolation from the nearest one outside them.
fn start(step: Step, class: usize) -> CostCell {
    let bytes = 768.0 * (1u32 << class) as f32;
    let row = &TABLE[step.index()];
    let last = MEASURED.len() - 1;
    let (time, out) = match MEASURED.iter().position(|size| bytes <= *size) {
        Some(above @ 1..) => {
            let below = above - 1;
            let part = (bytes - MEASURED[below]) / (MEASURED[above] - MEASURED[below]);
            let between = |from: f32, to: f32| from + (to - from) * part;
            (
                between(row[below].0, row[above].0),
                between(row[below].1, row[above].1),
            )
        }
        outside => {
            let nearest = if outside.is_some() { 0 } else { last };
            let times = bytes / MEASURED[nearest];
            (row[nearest].0 * times, row[nearest].1 * times)
        }
    };
    CostCell {
        per_byte: time * 1e3 / bytes,
        ratio: out / bytes,
        seen: 0.0,
        booked: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: u64) -> Size {
        Size::from_bytes(bytes)
    }

    #[test]
    fn the_table_is_met_where_it_was_measured() {
        let costs = CostModel::default();
        let book = costs.estimate(Step::Gzip1, size(3489));
        assert!((9.0..13.0).contains(&book.cpu.as_micros_f64()), "{book:?}");
        assert!((1350..1650).contains(&book.out.as_bytes()), "{book:?}");
        let short = costs.estimate(Step::Gzip1, size(900)).cpu.as_micros_f64();
        assert!((5.0..7.0).contains(&short), "{short}");
        let dear = costs.estimate(Step::Brotli5, size(16_169));
        assert!(
            (240.0..320.0).contains(&dear.cpu.as_micros_f64()),
            "{dear:?}"
        );
        let huge = costs.estimate(Step::Zstd1, size(1 << 30));
        assert!((1.0..4.0).contains(&huge.cpu.as_secs_f64()), "{huge:?}");
        assert_eq!(costs.estimate(Step::Gzip1, size(0)).cpu, Span::ZERO);
    }

    #[test]
    fn observed_costs_replace_the_assumed_ones() {
        let mut costs = CostModel::default();
        for _ in 0..100 {
            costs.observe(
                Step::Zstd1,
                size(16_000),
                size(4000),
                Span::from_micros(100),
            );
        }
        let learned = costs.estimate(Step::Zstd1, size(16_000));
        assert!(
            (95.0..105.0).contains(&learned.cpu.as_micros_f64()),
            "{learned:?}"
        );
        assert!(
            (3900..=4001).contains(&learned.out.as_bytes()),
            "{learned:?}"
        );
        // A machine nearly three times slower is that for replies that it has not compressed yet.
        let other = costs.estimate(Step::Gzip1, size(3366));
        assert!(
            (22.0..40.0).contains(&other.cpu.as_micros_f64()),
            "{other:?}"
        );
    }

    #[test]
    fn a_clock_that_sees_nothing_makes_nothing_free() {
        let mut costs = CostModel::default();
        for _ in 0..1000 {
            costs.observe(Step::Gzip1, size(16_000), size(0), Span::ZERO);
        }
        assert!(costs.estimate(Step::Gzip1, size(16_000)).cpu > Span::ZERO);
        costs.observe(Step::Gzip1, size(0), size(0), Span::from_secs(1));
        for _ in 0..100 {
            costs.observe(Step::Gzip1, size(16_000), size(5000), Span::from_micros(35));
        }
        let back = costs
            .estimate(Step::Gzip1, size(16_000))
            .cpu
            .as_micros_f64();
        assert!((25.0..40.0).contains(&back), "{back}");
    }

    #[test]
    fn one_outlier_moves_a_price_a_little() {
        let mut costs = CostModel::default();
        for _ in 0..100 {
            costs.observe(Step::Gzip1, size(16_000), size(5000), Span::from_micros(35));
        }
        costs.observe(Step::Gzip1, size(16_000), size(5000), Span::from_secs(3));
        let after = costs
            .estimate(Step::Gzip1, size(16_000))
            .cpu
            .as_micros_f64();
        assert!((35.0..39.0).contains(&after), "{after}");
    }

    #[test]
    fn of_a_converged_class_one_reply_in_seven_is_measured() {
        let mut costs = CostModel::default();
        for _ in 0..32 {
            assert_eq!(costs.converged_cost(Step::Gzip1, size(16_000)), None);
            costs.observe(Step::Gzip1, size(16_000), size(5000), Span::from_micros(35));
        }
        let price = costs.estimate(Step::Gzip1, size(16_000)).cpu;
        let charged: Vec<_> = (0..70)
            .map(|_| costs.converged_cost(Step::Gzip1, size(16_000)))
            .collect();
        assert_eq!(charged.iter().filter(|booked| booked.is_none()).count(), 10);
        assert!(charged.iter().flatten().all(|booked| *booked == price));
        assert_eq!(costs.converged_cost(Step::Gzip1, size(32_000)), None);
        assert_eq!(costs.converged_cost(Step::Gzip6, size(16_000)), None);
    }

    #[test]
    fn replies_that_take_turns_are_all_measured() {
        // The first two are in one class.
        let kinds = [16_000, 12_000, 3000];
        let mut costs = CostModel::default();
        let mut measured = [0; 3];
        for _ in 0..3000 {
            for (kind, length) in kinds.into_iter().enumerate() {
                if costs.converged_cost(Step::Gzip1, size(length)).is_none() {
                    measured[kind] += 1;
                    let cpu = Span::from_nanos(length * 2);
                    costs.observe(Step::Gzip1, size(length), size(length / 3), cpu);
                }
            }
        }
        assert!(measured.iter().all(|times| *times > 400), "{measured:?}");
    }
}
