//! Cells: transactions that differ by chance alone, with their median and range.
//!
//! A cell is one configuration of the ends, one service, one line and one set of lost packets. Cells are computed once
//! from the transactions and read by every picture and claim. Cells omit transactions that lost other data than
//! intended, because of an earlier retransmission. Emulated and simulated transactions become cells in the same way.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use posthaste_study::{RecordRow, RecordTable, RecordValue, Records, estimate};

use super::columns::PARTS;
use super::line::{NetworkLine, PlannedDrops, all};
use super::service::{LATE, PaperService, SEGMENT};

/// Adds the table of cells, from the transactions in the records and from `others`, which are not kept.
pub(super) fn summarise(records: &mut Records, others: &RecordTable) {
    let mut cells = RecordTable::new([
        "kernel",
        "service",
        "kbit",
        "ms",
        "position",
        "second",
        "transactions",
        "timed_out",
        "median_ms",
        "low_ms",
        "high_ms",
        "t_conn_ms",
        "t_req_ms",
        "t_proc_ms",
        "t_resp_ms",
    ]);
    let mut groups: BTreeMap<_, Vec<RecordRow<'_>>> = BTreeMap::new();
    let rows = records.table("transactions").rows().chain(others.rows());
    let counts =
        |row: &RecordRow<'_>| row.number("varies") == 1.0 && row.number("displaced") == 0.0;
    for row in rows.filter(counts) {
        let parameters =
            ["kbit", "ms", "position", "second"].map(|column| row.number(column) as u64);
        let key = (row.text("kernel"), row.text("service"), parameters);
        groups.entry(key).or_default().push(row);
    }
    for ((kernel, service, parameters), rows) in groups {
        let estimate_of = |column: &str| {
            let values: Vec<f64> = rows.iter().map(|row| row.number(column)).collect();
            estimate(&values)
        };
        let timed_out = rows
            .iter()
            .filter(|row| row.number("server_timeouts") > 0.0);
        let mut row = vec![kernel.into(), service.into()];
        row.extend(parameters.map(RecordValue::from));
        row.extend([rows.len(), timed_out.count()].map(|count| RecordValue::from(count as u64)));
        let time = estimate_of("response_ms");
        row.extend([time.median, time.low, time.high].map(RecordValue::from));
        row.extend(PARTS.map(|part| RecordValue::from(estimate_of(part).median)));
        cells.push(row);
    }
    records.set_table("cells", cells);
}

/// Cells of one service with one configuration of the ends.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) records: &'a Records,
    /// The configuration of the ends: its key in records, and its name.
    pub(super) ends: (&'static str, &'static str),
    pub(super) service: &'static PaperService,
    /// Bytes of data in a full segment of the server.
    pub(super) segment: u32,
    /// Number of last positions that the paper calls late for this sender.
    pub(super) late: u32,
}

impl<'a> Cells<'a> {
    /// Cells with segments of the usual size.
    pub(super) const fn new(
        records: &'a Records,
        ends: (&'static str, &'static str),
        service: &'static PaperService,
    ) -> Self {
        Self {
            records,
            ends,
            service,
            segment: SEGMENT,
            late: LATE,
        }
    }

    /// The late positions.
    pub(super) const fn late(&self) -> RangeInclusive<u32> {
        self.service.last(self.segment, self.late)
    }

    /// The position that the late ones are compared with.
    pub(super) fn reference(&self) -> u32 {
        self.service.before(self.segment, self.late)
    }

    /// Name of the configuration of the ends.
    pub(super) const fn name(&self) -> &'static str {
        self.ends.1
    }

    pub(super) fn row(&self, line: NetworkLine, drops: PlannedDrops) -> Option<RecordRow<'a>> {
        let mut positions = drops.positions();
        let lost = [positions.next(), positions.next()].map(|at| f64::from(at.unwrap_or(0)));
        self.records.table("cells").rows().find(|row| {
            row.text("kernel") == self.ends.0
                && row.text("service") == self.service.key
                && row.number("kbit") == f64::from(line.kbit)
                && row.number("ms") == f64::from(line.ms)
                && ["position", "second"].map(|column| row.number(column)) == lost
        })
    }

    /// Median response time with a loss at `position`, in ms. 0 stands for no loss.
    pub(super) fn ms(&self, line: NetworkLine, position: u32) -> f64 {
        self.row(line, PlannedDrops::one(position))
            .map_or(f64::NAN, |row| row.number("median_ms"))
    }

    /// True if a loss at each position of data was measured on this line.
    pub(super) fn is_measured(&self, line: NetworkLine) -> bool {
        let mut positions = 2..=self.service.packets();
        positions.all(|position| self.row(line, PlannedDrops::one(position)).is_some())
    }

    /// Positions on this line for which the server waited for a timeout in most transactions.
    pub(super) fn sensitive(&self, line: NetworkLine) -> Vec<u32> {
        let waits = |position: &u32| {
            let row = self.row(line, PlannedDrops::one(*position));
            row.is_some_and(|row| 2.0 * row.number("timed_out") > row.number("transactions"))
        };
        (2..=self.service.packets()).filter(waits).collect()
    }

    /// Median response time with a loss at a late position, averaged over the late positions, in ms.
    pub(super) fn late_ms(&self, line: NetworkLine) -> f64 {
        let late = self.late();
        let count = f64::from(late.end() - late.start() + 1);
        late.map(|position| self.ms(line, position)).sum::<f64>() / count
    }

    /// Ratio of the response times of a late loss and of a loss at `position`, minus one, in percent.
    pub(super) fn increase_over(&self, line: NetworkLine, position: u32) -> f64 {
        100.0 * (self.late_ms(line) / self.ms(line, position) - 1.0)
    }

    /// The same ratio to a loss at the paper's reference position.
    pub(super) fn increase(&self, line: NetworkLine) -> f64 {
        self.increase_over(line, self.reference())
    }

    /// `value` on all lines with a measurement, in ascending order.
    pub(super) fn on_all_lines(&self, value: impl Fn(&Self, NetworkLine) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = all().map(|line| value(self, line)).collect();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        values
    }
}

/// Returns the quantile `share` of `sorted` values, or NaN if there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len().saturating_sub(1) as f64).round();
    sorted.get(rank as usize).copied().unwrap_or(f64::NAN)
}
