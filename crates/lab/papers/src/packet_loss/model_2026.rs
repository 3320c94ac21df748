//! packet-loss/model-2026: the simulator's model compared with this machine's kernel, cell by cell.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Series, Shape, Unit};
use posthaste_study::{Check, Figure, Plot, RecordRow, Records};

use super::kernel::{self, KernelSetup};
use super::{BUDGET, PAPER, instrument, paired, sweep};

/// Shares of agreeing cells for a useful model and for a good one.
const USEFUL: f64 = 0.95;
const GOOD: f64 = 0.99;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/model-2026",
    title: "beyond the paper: the model against this machine's kernel",
    claim: "Every emulated transaction is also simulated, with the profile that matches the kernel, the same delays packet by packet, the same phase of the kernel's timer wheel and the same program times. A cell is a line, a service and a position of the loss. In 95 of a hundred cells the medians lie within 5 ms of each other, plus one step of the timer wheel for each expired timer.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot,
    checks,
    differs: include_str!("model_2026.md").trim_ascii(),
};

fn rows<'a>(
    records: &'a Records,
    kernel: &'static KernelSetup,
) -> impl Iterator<Item = RecordRow<'a>> {
    let rows = records.table("model").rows();
    rows.filter(|row| row.text("kernel") == kernel.key)
}

fn apart(row: &RecordRow<'_>) -> f64 {
    row.number("model_ms") - row.number("kernel_ms")
}

fn share(rows: impl Iterator<Item = bool>) -> (usize, usize) {
    rows.fold((0, 0), |(agree, all), agrees| {
        (agree + usize::from(agrees), all + 1)
    })
}

fn plot(records: &Records) -> Vec<Plot> {
    vec![
        Plot::Bars(by_position(records)),
        Plot::Chart(differences(records)),
    ]
}

/// Share of the lines on which they agree, by position.
fn by_position(records: &Records) -> Bars {
    let group = |position: u32| {
        let bar = |kernel: &'static KernelSetup| {
            let here =
                rows(records, kernel).filter(|row| row.number("position") == f64::from(position));
            let (agree, all) = share(here.map(|row| row.number("agrees") == 1.0));
            Bar {
                parts: vec![(kernel.name.to_owned(), agree as f64 / all.max(1) as f64)],
                ..Bar::default()
            }
        };
        Group {
            label: position.to_string(),
            bars: kernel::BOTH.map(bar).into(),
        }
    };
    Bars {
        title: "Cells in which the model agrees with the kernel, by position of the loss"
            .to_owned(),
        value: Axis::linear("share of the cells", Unit::Share),
        groups: (0..=12).map(group).collect(),
        notes: vec!["Both services together; Sellerprofile has positions 0 to 9.".to_owned()],
    }
}

/// Differences of the medians.
fn differences(records: &Records) -> Chart {
    let x = Axis::linear("the kernel's response time", Unit::Millis);
    let y = Axis::linear("the model's, less the kernel's", Unit::Millis);
    let mut chart = Chart::new("Every cell", x, y);
    let series = |kernel: &'static KernelSetup| {
        let points = rows(records, kernel).map(|row| {
            let mut point = Point::new(row.number("kernel_ms"), apart(&row));
            point.hint = hint(&row);
            point
        });
        let mut series = Series::line(kernel.name, points);
        series.shape = Shape::Points;
        series
    };
    chart.series = kernel::BOTH.map(series).into();
    chart
}

/// Describes a cell in words.
fn hint(row: &RecordRow<'_>) -> String {
    let [kbit, ms, position] = ["kbit", "ms", "position"].map(|column| row.number(column));
    format!(
        "{}, {kbit} kbit/s, {ms} ms, position {position}: {:.0} ms, model {:+.0}",
        row.text("service"),
        row.number("kernel_ms"),
        apart(row)
    )
}

/// Checks the ticks at which the kernel's timers expired.
fn ticks(records: &Records) -> Check {
    let [at, later, elsewhere] = paired::TIMERS.map(|name| records.number(name));
    let all = at + later + elsewhere;
    Check::goal(
        at + later >= USEFUL * all && all > 0.0,
        format!(
            "Of {all} first timeouts in the kernel {:.0} % ran out at the model's tick, {:.0} % at the next, {:.0} % at others.",
            100.0 * at / all,
            100.0 * later / all,
            100.0 * elsewhere / all
        ),
    ).because("possibly noise: on a busy machine the kernel runs a timer at a later tick.")
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::all(records);
    checks.push(ticks(records));
    for kernel in kernel::BOTH {
        let agrees = |row: &RecordRow<'_>| row.number("agrees") == 1.0;
        let (agree, all) = share(rows(records, kernel).map(|row| agrees(&row)));
        let of_all = agree as f64 / all as f64;
        checks.push(Check::goal(
            of_all >= USEFUL,
            format!(
                "{}: the model agrees in {agree} of {all} cells, {:.1} % (the bar is {:.0} %, good are {:.0} %).",
                kernel.name,
                100.0 * of_all,
                100.0 * USEFUL,
                100.0 * GOOD
            ),
        ).because("on a busy machine the kernel runs timers at later ticks and packets wait for a processor; each cell that differs is listed above with the first difference of its ladders."));
        let mut others: Vec<RecordRow<'_>> =
            rows(records, kernel).filter(|row| !agrees(row)).collect();
        others.sort_by(|one, other| apart(other).abs().total_cmp(&apart(one).abs()));
        let explained = others.iter().all(|row| !row.text("parting").is_empty());
        let others: Vec<String> = others
            .iter()
            .map(|row| format!("{} ({})", hint(row), row.text("parting")))
            .collect();
        if !others.is_empty() {
            checks.push(Check::goal(
                explained,
                format!(
                    "{}: apart are, with where the ladders of their worst transactions part: {}.",
                    kernel.name,
                    others.join("; ")
                ),
            ));
        }
    }
    checks
}
