//! The report as a page: one self-contained file without external requests.

use posthaste_draw::{
    Axis, Block, Card, Cell, Chart, Page, Point, Section, Series, State, Table, Unit,
};
use posthaste_load::{AgentReport, Outcome, Phases, Run};
use posthaste_stats::{CensoredSummary, Histogram, Statistic, StatisticReading, Summary, median};
use posthaste_units::thousands;

use super::charts::{drawn, parameters, time_axis};
use super::course::course;
use super::numbers::millis;
use super::streams::StreamReport;
use super::{
    AttemptsReport, GrpcReport, PlanDescription, PortionReport, Report, agents, client_in_words,
    connections_in_words, occurred, reading, streams,
};

/// Renders the report of a run with its distributions and its course in time.
pub fn page(report: &Report, run: &Run) -> String {
    let mut page = Page {
        title: format!("Load of {}", report.plan.target),
        lead: format!(
            "{}, {}{}.",
            report.plan.pace,
            connections_in_words(&report.plan),
            client_in_words(&report.plan)
        ),
        opening: opening(report),
        sections: sections(report, run),
        footer: format!(
            "posthaste {}, seed {}",
            report.plan.version, report.plan.seed
        ),
        ..Page::default()
    };
    for (title, kind, portions) in [
        ("Steps", "step", &report.steps),
        ("Requests of the mix", "request", &report.requests),
    ] {
        if !portions.is_empty() {
            let section = portion_section(title, kind, portions, &report.plan);
            page.sections.push(section);
        }
    }
    page.html()
}

fn sections(report: &Report, run: &Run) -> Vec<Section> {
    let attempts = report.attempts.as_ref();
    let attempts = attempts.map(|attempts| attempt_section(report, attempts));
    let streams = report.streams.as_ref().and_then(stream_section);
    let calls = report.grpc.as_ref().and_then(call_section);
    let agents = agent_section(&report.agents);
    let addresses = address_section(report);
    let others = [times(report, run), course(report, run)];
    [outcomes(report)]
        .into_iter()
        .chain(calls)
        .chain(attempts)
        .chain(streams)
        .chain(addresses)
        .chain(agents)
        .chain(others)
        .collect()
}

/// Warnings that invalidate the rest, then the cards.
fn opening(report: &Report) -> Vec<Block> {
    let limit = report.generator.reason.iter().map(|reason| {
        format!("The generator was the limit: {reason}. Response times are the generator's own.")
    });
    let hint = report
        .hint
        .iter()
        .map(|hint| format!("No reply at all: {hint}"));
    let stopped = report.stopped.then(|| {
        format!(
            "Stopped after {:.1} s of {:.1} s.",
            report.duration_s, report.planned_duration_s
        )
    });
    let redirects = report.redirects_in_words();
    let others = [report.eventless_in_words(), redirects];
    let others = others.into_iter().flatten().map(|note| format!("{note}."));
    let notes = limit.chain(hint).chain(stopped).chain(others);
    notes
        .map(Block::Text)
        .chain([Block::Cards(cards(report))])
        .collect()
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
            format!("{:.1}/s", report.ok_rate),
            "good replies".to_owned(),
        ),
        card(
            "ok share",
            format!("{:.2}\u{a0}%", (1.0 - report.error_share()) * 100.0),
            format!("of {} intended", thousands(report.intended)),
        ),
        card(
            "response time p50, all due",
            milliseconds(times.reading(Statistic::P50)),
            interval(times, Statistic::P50),
        ),
        card(
            "response time p99, all due",
            milliseconds(times.reading(Statistic::P99)),
            interval(times, Statistic::P99),
        ),
        card(
            "sent late, p99",
            milliseconds(StatisticReading::Known(report.send_lateness_ms.p99)),
            "the generator's own".to_owned(),
        ),
    ]
}

fn interval(times: &CensoredSummary, statistic: Statistic) -> String {
    times.interval(statistic).map_or_else(
        || "too little data for an interval".to_owned(),
        |ends| {
            let [low, high] = ends.map(milliseconds);
            format!("95 % sure: {low} to {high}")
        },
    )
}

fn milliseconds(reading: StatisticReading) -> String {
    // Keeps a number and its unit on one line.
    reading.format(|ms| format!("{}\u{a0}ms", millis(ms)))
}

fn outcomes(report: &Report) -> Section {
    let mut table = Table::new(["outcome", "requests", "share", "what it means"]);
    for (outcome, count) in occurred(&report.outcomes) {
        let share = count as f64 / report.intended as f64 * 100.0;
        let meaning = match report.reason(outcome) {
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

/// Complete replies to gRPC calls by status, if there are any.
fn call_section(calls: &GrpcReport) -> Option<Section> {
    let mut table = Table::new(["status of gRPC", "calls"]);
    for (status, count) in &calls.statuses {
        let count = Cell::number(thousands(*count));
        table.rows.push(vec![Cell::text(status), count]);
    }
    (!calls.statuses.is_empty()).then(|| Section {
        blocks: vec![Block::Table(table)],
        ..Section::new(format!("Statuses of {}", calls.method))
    })
}

/// Streams of HTTP/2 and HTTP/3, if there is something to say about them.
fn stream_section(streams: &StreamReport) -> Option<Section> {
    let facts = streams::facts(streams);
    if facts.is_empty() {
        return None;
    }
    let mut table = Table::new(["streams", "warm-up included"]);
    for (name, fact) in facts {
        table.rows.push(vec![Cell::text(name), Cell::text(fact)]);
    }
    Some(Section {
        blocks: vec![Block::Table(table)],
        ..Section::new("Streams")
    })
}

/// The agents that carried the run out, if it had some.
fn agent_section(agents: &[AgentReport]) -> Option<Section> {
    let mut table = Table::new(["agent", "its part of the run", "servers"]);
    for (agent, (name, fact)) in agents.iter().zip(agents::facts(agents)) {
        let servers = agent.servers.join(", ");
        let cells = [Cell::text(name), Cell::text(fact), Cell::text(servers)];
        table.rows.push(cells.into());
    }
    (!agents.is_empty()).then(|| Section {
        blocks: vec![Block::Table(table)],
        ..Section::new("Agents")
    })
}

/// Connections by address, if there are several.
fn address_section(report: &Report) -> Option<Section> {
    let mut table = Table::new(["address", "connections", "not established"]);
    for (address, counts) in &report.addresses {
        table.rows.push(vec![
            Cell::text(address.to_string()),
            Cell::number(thousands(counts.connections)),
            Cell::number(thousands(counts.failed)),
        ]);
    }
    (table.rows.len() > 1).then(|| Section {
        blocks: vec![Block::Table(table)],
        ..Section::new("Addresses")
    })
}

/// Attempts by outcome, and requests by number of attempts.
fn attempt_section(report: &Report, attempts: &AttemptsReport) -> Section {
    let mut by_outcome = Table::new(["outcome of an attempt", "attempts", "share"]);
    for (outcome, count) in occurred(&attempts.outcomes) {
        let share = count as f64 / attempts.total as f64 * 100.0;
        by_outcome.rows.push(vec![
            Cell::text(outcome.name()),
            Cell::number(thousands(count)),
            Cell::number(format!("{share:.3} %")),
        ]);
    }
    let mut by_number = Table::new(["attempts of a request", "requests", "share"]);
    for (number, count) in attempts.by_number() {
        let share = count as f64 / report.intended as f64 * 100.0;
        by_number.rows.push(vec![
            Cell::number(number.to_string()),
            Cell::number(thousands(count)),
            Cell::number(format!("{share:.3} %")),
        ]);
    }
    let lead = format!(
        "{} attempts for {} requests: {:.2} per request. {:.1} attempts were sent per second of the measured time, \
         and {:.1} requests were due.",
        thousands(attempts.total),
        thousands(report.intended),
        attempts.per_request,
        attempts.rate,
        report.offered_rate
    );
    Section {
        blocks: vec![
            Block::Text(lead),
            Block::Table(by_outcome),
            Block::Table(by_number),
        ],
        ..Section::new("Attempts")
    }
}

fn times(report: &Report, run: &Run) -> Section {
    let all = run.response.distribution();
    let all = |quantile| Some(all.quantile(quantile).known()?.as_millis_f64());
    let series = vec![
        curve(
            "response time (due to last byte), all due",
            run.intended,
            all,
        ),
        known_curve("response time, ok only", run.ok.histogram()),
        known_curve(
            "service time (sent to last byte), replies",
            run.service.histogram(),
        ),
        known_curve("send lateness (due to sent)", &run.lateness),
    ];
    let replies = run.response.histogram();
    let middle = (replies.count() > 0).then(|| replies.quantile(0.5).as_millis_f64());
    let y = time_axis("time", middle, &series);
    let mut chart = Chart::percentiles("Response time, service time and send lateness", y);
    chart.series = series;
    chart.notes = parameters(&report.plan);
    Section {
        blocks: vec![
            Block::Chart(Box::new(chart)),
            Block::Table(table_of_times(report)),
            Block::Text(
                "A request without a complete reply is longer than any bound: the curve of all \
                 that were due ends where they begin. Phases are of complete replies."
                    .to_owned(),
            ),
        ],
        ..Section::new("Where the time went")
    }
}

fn table_of_times(report: &Report) -> Table {
    let mut table = Table::new([
        "ms", "count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max",
    ]);
    let mut row = |name: &str, count: u64, reading_of: &dyn Fn(Statistic) -> StatisticReading| {
        let cells = Statistic::ALL.map(|s| reading_of(s).format(|ms| format!("{ms:.3}")));
        let mut row = vec![Cell::text(name), Cell::number(thousands(count))];
        row.extend(cells.map(Cell::number));
        table.rows.push(row);
    };
    let all = &report.response_time_ms;
    row("response time, all due", all.count, &|s| all.reading(s));
    let fixed = [
        ("response time, ok only", &report.ok_response_time_ms),
        ("service time, replies", &report.service_time_ms),
        ("send lateness, sent", &report.send_lateness_ms),
    ];
    let retries = report.attempts.as_ref();
    let retries = retries.map(|attempts| ("retry lateness, sent", &attempts.retry_lateness_ms));
    let phases = Phases::NAMES.into_iter();
    let phases = phases.filter_map(|name| Some((name, report.phases_ms.get(name)?)));
    let with_values = |(_, times): &(&str, &Summary)| times.count > 0;
    let rows = fixed.into_iter().chain(retries).chain(phases);
    for (name, times) in rows.filter(with_values) {
        row(name, times.count, &|statistic| reading(times, statistic));
    }
    table
}

fn known_curve(name: &str, times: &Histogram) -> Series {
    let some = times.count() > 0;
    let value = |quantile| some.then(|| times.quantile(quantile).as_millis_f64());
    curve(name, times.count(), value)
}

/// Returns the known quantiles of `count` values.
fn curve(name: &str, count: u64, value: impl Fn(f64) -> Option<f64>) -> Series {
    const QUANTILES: [f64; 14] = [
        0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999,
    ];
    let enough = |quantile: &f64| count as f64 * (1.0 - quantile) >= 1.0;
    let known = QUANTILES.into_iter().filter(enough);
    let points = known.filter_map(|quantile| Some(Point::new(quantile, value(quantile)?)));
    Series::line(name, points)
}

fn portion_section(
    title: &str,
    kind: &str,
    portions: &[PortionReport],
    plan: &PlanDescription,
) -> Section {
    let head = [
        kind,
        "offered",
        "achieved",
        "ok",
        "failed",
        "p50, all due",
        "p99, all due",
        "p99, ok only",
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
            Cell::number(milliseconds(times.reading(Statistic::P50))),
            Cell::number(milliseconds(times.reading(Statistic::P99))),
            Cell::number(match portion.ok_response_time_ms.count {
                0 => "-".to_owned(),
                _ => milliseconds(StatisticReading::Known(portion.ok_response_time_ms.p99)),
            }),
        ]);
    }
    let mut blocks = vec![Block::Table(table)];
    if portions
        .iter()
        .all(|portion| portion.offered_rate.is_some())
    {
        let mut chart = response_against_rate(portions);
        chart.notes = parameters(plan);
        blocks.insert(0, Block::Chart(Box::new(chart)));
    }
    Section {
        blocks,
        ..Section::new(title)
    }
}

fn response_against_rate(portions: &[PortionReport]) -> Chart {
    let series = |name: &str, statistic: Statistic| {
        let points = portions.iter().filter_map(|portion| {
            let value = portion.response_time_ms.reading(statistic).known();
            Some(Point::new(portion.offered_rate?, value?))
        });
        Series::line(name, points)
    };
    let series = vec![
        series("p99, all due", Statistic::P99),
        series("p50, all due", Statistic::P50),
    ];
    let x = Axis::linear("offered rate", Unit::PerSecond);
    let y = time_axis("response time", median(drawn(&series)), &series);
    let mut chart = Chart::new("Response time against offered rate", x, y);
    chart.series = series;
    chart
}
