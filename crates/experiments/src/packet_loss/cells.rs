//! Cells: transactions that differ by chance alone, their middle and range.
//!
//! A cell is one way of setting the ends, one service, one line, and what is lost. Written once from
//! the transactions, and read by every picture and claim. Transactions in which other data was lost than
//! the cell says, since something had been sent again before, are in none. Emulated and simulated
//! transactions are written alike, and become cells alike.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::account::PARTS;
use super::line::{Drops, Line, all};
use super::service::{LATE, SEGMENT, Service};
use crate::estimate::estimate;
use crate::records::{Records, Row, Table, Value};

/// Adds the table of cells, from the transactions in the records and from others that are not kept.
pub(super) fn summarise(records: &mut Records, others: &Table) {
    let mut cells = Table::new([
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
    let mut groups: BTreeMap<_, Vec<Row<'_>>> = BTreeMap::new();
    let rows = records.table("transactions").rows().chain(others.rows());
    let counts = |row: &Row<'_>| row.number("varies") == 1.0 && row.number("displaced") == 0.0;
    for row in rows.filter(counts) {
        let place = ["kbit", "ms", "position", "second"].map(|column| row.number(column) as u64);
        let key = (row.text("kernel"), row.text("service"), place);
        groups.entry(key).or_default().push(row);
    }
    for ((kernel, service, place), rows) in groups {
        let of = |column: &str| {
            let values: Vec<f64> = rows.iter().map(|row| row.number(column)).collect();
            estimate(&values)
        };
        let timed_out = rows
            .iter()
            .filter(|row| row.number("server_timeouts") > 0.0);
        let mut row = vec![kernel.into(), service.into()];
        row.extend(place.map(Value::from));
        row.extend([rows.len(), timed_out.count()].map(|count| Value::from(count as u64)));
        let time = of("response_ms");
        row.extend([time.median, time.low, time.high].map(Value::from));
        row.extend(PARTS.map(|part| Value::from(of(part).median)));
        cells.push(row);
    }
    records.set_table("cells", cells);
}

/// The cells of one service with its ends set in one way.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) records: &'a Records,
    /// The key in records, and the name, of how the ends are set.
    pub(super) ends: (&'static str, &'static str),
    pub(super) service: &'static Service,
    /// Bytes of data in a full segment of the server.
    pub(super) segment: u32,
    /// How many of the last positions are late for this sender, by the paper.
    pub(super) late: u32,
}

impl<'a> Cells<'a> {
    /// Segments of the usual size.
    pub(super) const fn of(
        records: &'a Records,
        ends: (&'static str, &'static str),
        service: &'static Service,
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

    /// The position that they are compared with.
    pub(super) fn reference(&self) -> u32 {
        self.service.before(self.segment, self.late)
    }

    /// The name of how the ends are set.
    pub(super) const fn name(&self) -> &'static str {
        self.ends.1
    }

    pub(super) fn row(&self, line: Line, drops: Drops) -> Option<Row<'a>> {
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

    /// The median response time where the packet at `position` is lost; none at 0.
    pub(super) fn ms(&self, line: Line, position: u32) -> f64 {
        self.row(line, Drops::one(position))
            .map_or(f64::NAN, |row| row.number("median_ms"))
    }

    /// Positions whose loss made the server wait for a timeout on this line, more often than not.
    pub(super) fn sensitive(&self, line: Line) -> Vec<u32> {
        let waits = |position: &u32| {
            let row = self.row(line, Drops::one(*position));
            row.is_some_and(|row| 2.0 * row.number("timed_out") > row.number("transactions"))
        };
        (2..=self.service.packets()).filter(waits).collect()
    }

    /// The median response time where one of the late positions is lost, on average over them.
    pub(super) fn late_ms(&self, line: Line) -> f64 {
        let late = self.late();
        let count = f64::from(late.end() - late.start() + 1);
        late.map(|position| self.ms(line, position)).sum::<f64>() / count
    }

    /// What a late loss takes over one at `position`, minus one, in percent.
    pub(super) fn increase_over(&self, line: Line, position: u32) -> f64 {
        100.0 * (self.late_ms(line) / self.ms(line, position) - 1.0)
    }

    /// The same over a loss at the paper's reference.
    pub(super) fn increase(&self, line: Line) -> f64 {
        self.increase_over(line, self.reference())
    }

    /// `value` on all lines where it was measured, in order.
    pub(super) fn on_all_lines(&self, value: impl Fn(&Self, Line) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = all().map(|line| value(self, line)).collect();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        values
    }
}

/// The value that a share of these, which are in order, does not exceed; not a number without any.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len().saturating_sub(1) as f64).round();
    sorted.get(place as usize).copied().unwrap_or(f64::NAN)
}
