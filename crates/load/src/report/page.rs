//! The report as a page: one file, no request to anywhere.

use posthaste_draw::{
    Axis, Block, Card, Cell, Chart, Page, Point, Section, Series, Shape, State, Table, Unit,
};
use posthaste_stats::{Histogram, Recorder, Statistic, Summary};

use super::{PortionReport, Report, client_in_words, occurred, thousands};
use crate::outcome::Outcome;
use crate::run::Run;
use crate::tally::Phases;

/// The report of a run with its distributions and its course in time.
pub fn page(report: &Report, run: &Run) -> String {
    let mut page = Page {
        title: format!("Load of {}", report.plan.target),
        lead: format!(
            "{}, {} connections{}.",
            report.plan.pace,
            report.plan.connection,
            client_in_words(&report.plan)
        ),
        opening: vec![Block::Cards(cards(report))],
        sections: vec![outcomes(report), times(report, run), course(run)],
        footer: format!(
            "posthaste {}, seed {}",
            report.plan.version, report.plan.seed
        ),
    };
    for (title, kind, portions) in [
        ("Steps", "step", &report.steps),
        ("Requests of the mix", "request", &report.requests),
    ] {
        if !portions.is_empty() {
            page.sections.push(portion_section(title, kind, portions));
        }
    }
    page.html()
}

fn cards(report: &Report) -> Vec<Card> {
    let card = |label: &str, value: String, remark: String| Card {
        label: label.to_owned(),
        value,
        remark,
    };
    let times = &report.response_time_ms;
    vec![
        card(
            "achieved",
            format!("{:.1}/s", report.achieved_rate),
            format!("of {:.1}/s offered", report.offered_rate),
        ),
        card(
            "ok",
            format!("{:.3} %", (1.0 - report.error_share()) * 100.0),
            format!("of {} intended", thousands(report.intended)),
        ),
        card(
            "response time p50",
            format!("{:.3} ms", times.p50),
            interval(times, Statistic::P50),
        ),
        card(
            "response time p99",
            format!("{:.3} ms", times.p99),
            interval(times, Statistic::P99),
        ),
        card(
            "sent late, p99",
            format!("{:.3} ms", report.send_lateness_ms.p99),
            "the generator's own".to_owned(),
        ),
    ]
}

fn interval(times: &Summary, statistic: Statistic) -> String {
    times.interval(statistic).map_or_else(
        || "too little data for an interval".to_owned(),
        |[low, high]| format!("95 % sure: {low:.3} to {high:.3} ms"),
    )
}

fn outcomes(report: &Report) -> Section {
    let mut table = Table::new(["outcome", "requests", "share", "what it means"]);
    for (outcome, count) in occurred(&report.outcomes) {
        let share = count as f64 / report.intended as f64 * 100.0;
        let meaning = match report.reasons.get(outcome.name()) {
            Some(reason) => format!("{}; first: {reason}", outcome.meaning()),
            None => outcome.meaning().to_owned(),
        };
        table.rows.push(vec![
            Cell::text(outcome.name()),
            Cell::number(thousands(count)),
            Cell::number(format!("{share:.3} %")),
            Cell::text(meaning),
        ]);
    }
    table.rows.push(vec![
        Cell::text("intended"),
        Cell::number(thousands(report.intended)),
        Cell::number("100 %"),
        Cell::text("the sum of the above"),
    ]);
    let all_ok = report.outcomes[Outcome::Ok] == report.intended;
    Section {
        state: Some(if all_ok {
            State::Pass("all ok")
        } else {
            State::Note("not all ok")
        }),
        blocks: vec![Block::Table(table)],
        ..Section::new("What became of the requests")
    }
}

fn times(report: &Report, run: &Run) -> Section {
    let y = Axis::log("time", Unit::Millis);
    let mut chart = Chart::percentiles("Response time, service time and send lateness", y);
    chart.series = vec![
        curve("response time (due to last byte)", run.response.histogram()),
        curve("service time (sent to last byte)", run.service.histogram()),
        curve("send lateness (due to sent)", &run.lateness),
    ];
    let mut table = Table::new([
        "ms", "count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max",
    ]);
    let fixed = [
        ("response time", &report.response_time_ms),
        ("service time", &report.service_time_ms),
        ("send lateness", &report.send_lateness_ms),
    ];
    let phases = Phases::NAMES
        .into_iter()
        .filter_map(|name| Some((name, report.phases_ms.get(name)?)));
    for (name, times) in fixed
        .into_iter()
        .chain(phases)
        .filter(|(_, times)| times.count > 0)
    {
        let numbers = Statistic::ALL.map(|statistic| times.value(statistic));
        let cells = numbers.map(|ms| Cell::number(format!("{ms:.3}")));
        let mut row = vec![Cell::text(name), Cell::number(thousands(times.count))];
        row.extend(cells);
        table.rows.push(row);
    }
    Section {
        blocks: vec![
            Block::Chart(Box::new(chart)),
            Block::Table(table),
            Block::Text(
                "Only complete replies are in these distributions; every other end is in the \
                 table above."
                    .to_owned(),
            ),
        ],
        ..Section::new("Where the time went")
    }
}

fn curve(name: &str, times: &Histogram) -> Series {
    const QUANTILES: [f64; 14] = [
        0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999,
    ];
    let enough = |quantile: f64| times.count() as f64 * (1.0 - quantile) >= 1.0;
    let points = QUANTILES
        .into_iter()
        .filter(|quantile| enough(*quantile))
        .map(|quantile| Point::new(quantile, times.quantile(quantile).as_millis_f64()));
    Series::line(name, points)
}

fn course(run: &Run) -> Section {
    let x = Axis::linear("time since the start", Unit::Seconds);
    let y = Axis::log("response time", Unit::Millis);
    let mut chart = Chart::new("Response time in the course of the run", x, y);
    chart.series = vec![
        in_time("p99", &run.response, 0.99),
        in_time("p50", &run.response, 0.5),
    ];
    Section {
        blocks: vec![Block::Chart(Box::new(chart))],
        ..Section::new("In the course of the run")
    }
}

fn in_time(name: &str, times: &Recorder, quantile: f64) -> Series {
    let points = times.batches().filter_map(|batch| {
        let value = batch.quantile(quantile)?;
        Some(Point::new(batch.start.as_secs_f64(), value.as_millis_f64()))
    });
    Series::line(name, points).shape(Shape::Steps)
}

fn portion_section(title: &str, kind: &str, portions: &[PortionReport]) -> Section {
    let head = [
        kind, "offered", "achieved", "ok", "failed", "p50 ms", "p99 ms",
    ];
    let mut table = Table::new(head);
    for portion in portions {
        let times = &portion.response_time_ms;
        table.rows.push(vec![
            Cell::text(&portion.name),
            Cell::number(
                portion
                    .offered_rate
                    .map_or(String::new(), |rate| format!("{rate:.1}/s")),
            ),
            Cell::number(format!("{:.1}/s", portion.achieved_rate)),
            Cell::number(thousands(portion.outcomes[Outcome::Ok])),
            Cell::number(thousands(portion.outcomes.failed())),
            Cell::number(format!("{:.3}", times.p50)),
            Cell::number(format!("{:.3}", times.p99)),
        ]);
    }
    let mut blocks = vec![Block::Table(table)];
    if portions
        .iter()
        .all(|portion| portion.offered_rate.is_some())
    {
        blocks.insert(0, Block::Chart(Box::new(response_against_rate(portions))));
    }
    Section {
        blocks,
        ..Section::new(title)
    }
}

fn response_against_rate(portions: &[PortionReport]) -> Chart {
    let x = Axis::linear("offered rate", Unit::PerSecond);
    let y = Axis::log("response time", Unit::Millis);
    let mut chart = Chart::new("Response time against offered rate", x, y);
    let series = |name: &str, statistic: Statistic| {
        let points = portions.iter().filter_map(|portion| {
            let value = portion.response_time_ms.value(statistic);
            Some(Point::new(portion.offered_rate?, value))
        });
        Series::line(name, points)
    };
    chart.series = vec![series("p99", Statistic::P99), series("p50", Statistic::P50)];
    chart
}
