//! What the pictures and claims of this paper share: reading cells, axes and series.

use posthaste_draw::{Along, Axis, Bar, Bars, Chart, Group, Mark, Point, Role, Series, Unit};

use super::kernel::{self, Kernel};
use super::line::{BANDWIDTHS, DELAYS, Line, all};
use super::service::{REFERENCE, Service};
use super::sweep::timeout_ms;
use crate::records::{Records, Row};

/// The bandwidth at which the paper shows all delays.
pub(super) const SHOWN_KBIT: u32 = 1000;

/// Said beneath pictures of single cells.
const MEDIANS: &str = "Medians of at least three transactions, five where one waited for a timeout; whiskers reach from the shortest to the longest.";

/// A cell: what is lost where, with which kernel.
pub(super) struct Cells<'a> {
    pub(super) records: &'a Records,
    pub(super) kernel: &'static Kernel,
    pub(super) service: &'static Service,
}

impl Cells<'_> {
    fn row(&self, line: Line, position: u32) -> Option<Row<'_>> {
        self.records.table("cells").rows().find(|row| {
            row.text("kernel") == self.kernel.key
                && row.text("service") == self.service.key
                && row.number("kbit") == f64::from(line.kbit)
                && row.number("ms") == f64::from(line.ms)
                && row.number("position") == f64::from(position)
        })
    }

    /// The median response time.
    pub(super) fn ms(&self, line: Line, position: u32) -> f64 {
        self.row(line, position)
            .map_or(f64::NAN, |row| row.number("median_ms"))
    }

    /// Positions of data whose loss costs as much as a timeout on this line.
    pub(super) fn sensitive(&self, line: Line) -> Vec<u32> {
        let limit = self.ms(line, 0) + timeout_ms(line);
        let waits = |position: &u32| self.ms(line, *position) > limit;
        (2..=self.service.packets()).filter(waits).collect()
    }

    /// The mean of the late positions over the reference position, minus one, in percent.
    pub(super) fn increase(&self, line: Line) -> f64 {
        let late = self.service.late();
        let count = f64::from(late.end() - late.start() + 1);
        let mean = late.map(|position| self.ms(line, position)).sum::<f64>() / count;
        100.0 * (mean / self.ms(line, self.reference()) - 1.0)
    }

    /// The position that the late ones are compared with: the paper's for Author, the last one before the
    /// late ones where the reply is shorter.
    pub(super) fn reference(&self) -> u32 {
        REFERENCE.min(self.service.late().start() - 1)
    }

    /// Increases on all lines, in order.
    pub(super) fn increases(&self) -> Vec<f64> {
        let mut increases: Vec<f64> = all().map(|line| self.increase(line)).collect();
        increases.retain(|increase| increase.is_finite());
        increases.sort_by(f64::total_cmp);
        increases
    }

    /// The curve over positions on a line.
    fn curve(&self, name: impl Into<String>, line: Line) -> Series {
        let points = (0..=self.service.packets()).filter_map(|position| {
            let row = self.row(line, position)?;
            let mut point = Point::new(f64::from(position), row.number("median_ms"))
                .with_interval(row.number("low_ms"), row.number("high_ms"));
            point.hint = format!(
                "{}, {} transactions",
                self.service.packet(position),
                row.number("transactions")
            );
            Some(point)
        });
        Series::line(name, points)
    }
}

/// The cells of each kernel, the paper's first.
pub(super) fn of_both<'a>(records: &'a Records, service: &'static Service) -> [Cells<'a>; 2] {
    kernel::BOTH.map(|kernel| Cells {
        records,
        kernel,
        service,
    })
}

/// Response time by position on one line, both kernels; the paper's time without loss where it is known.
pub(super) fn by_position(
    records: &Records,
    service: &'static Service,
    line: Line,
    paper_ms: Option<f64>,
) -> Chart {
    let title = format!("{}: {} kbit/s, {} ms", service.name, line.kbit, line.ms);
    let mut chart = Chart::new(
        title,
        positions(),
        Axis::linear("response time", Unit::Millis),
    );
    chart.series = of_both(records, service)
        .iter()
        .map(|cells| cells.curve(cells.kernel.name, line))
        .collect();
    chart.marks = paper_ms
        .map(|at| Mark {
            along: Along::Y,
            at,
            label: format!("paper, no loss: {at} ms"),
            role: Role::Paper,
        })
        .into_iter()
        .collect();
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// The four parts of the same response times, with the paper's kernel.
pub(super) fn parts(records: &Records, service: &'static Service, line: Line) -> Bars {
    let cells = Cells {
        records,
        kernel: &kernel::OF_2005,
        service,
    };
    let group = |position| {
        let row = cells.row(line, position)?;
        let part = |(name, column): (&str, &str)| (name.to_owned(), row.number(column));
        let parts = [
            ("connection", "t_conn_ms"),
            ("request", "t_req_ms"),
            ("processing", "t_proc_ms"),
            ("reply", "t_resp_ms"),
        ];
        let bar = Bar {
            label: String::new(),
            parts: parts.map(part).into(),
            ..Bar::default()
        };
        Some(Group {
            label: position.to_string(),
            bars: vec![bar],
        })
    };
    Bars {
        title: format!("{}: where the time goes, {}", service.name, cells.kernel.name),
        value: Axis::linear("response time", Unit::Millis),
        groups: (0..=service.packets()).filter_map(group).collect(),
        notes: vec!["By position of the loss; each part is the median of its own, so that they need not add up.".to_owned()],
    }
}

/// Response time by position at 1000 kbit/s, a curve for each delay.
pub(super) fn over_delays(cells: &Cells<'_>) -> Chart {
    let title = format!(
        "{}: {SHOWN_KBIT} kbit/s, {}",
        cells.service.name, cells.kernel.name
    );
    let mut chart = Chart::new(
        title,
        positions(),
        Axis::linear("response time", Unit::Millis),
    );
    chart.series = DELAYS
        .iter()
        .rev()
        .map(|ms| {
            cells.curve(
                format!("{ms} ms"),
                Line {
                    kbit: SHOWN_KBIT,
                    ms: *ms,
                },
            )
        })
        .collect();
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// The relative increase over the delay, a curve for each bandwidth.
pub(super) fn over_lines(cells: &Cells<'_>) -> Chart {
    let late = cells.service.late();
    let title = format!(
        "{}: relative increase, {}",
        cells.service.name, cells.kernel.name
    );
    let x = Axis::linear("end-to-end delay", Unit::Millis);
    let mut chart = Chart::new(title, x, Axis::linear("increase", Unit::Share));
    chart.series = BANDWIDTHS
        .iter()
        .map(|kbit| {
            let points = DELAYS.map(|ms| {
                Point::new(
                    f64::from(ms),
                    cells.increase(Line { kbit: *kbit, ms }) / 100.0,
                )
            });
            Series::line(format!("{kbit} kbit/s"), points)
        })
        .collect();
    chart.notes.push(format!(
        "The mean of a loss at positions {} to {} over one at position {}.",
        late.start(),
        late.end(),
        cells.reference()
    ));
    chart
}

fn positions() -> Axis {
    Axis::linear(
        "position of the lost packet from the server; 0 is no loss",
        Unit::Count,
    )
}
