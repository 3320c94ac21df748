//! The report on a terminal: the plan, the results, and the phases of the time.

use std::fmt::Write as _;

use posthaste_load::{Outcome, Outcomes, Phases};
use posthaste_stats::{CensoredSummary, Statistic, StatisticReading, Summary};
use posthaste_units::thousands;

use super::events::EventsReport;
use super::numbers::{millis, per_second};
use super::{
    Bin, PortionReport, Report, agents, client_in_words, connections_in_words, occurred, reading,
    streams,
};

/// Times in the text of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextTimes {
    /// Phases only if others than the wait take a tenth of the service time, and good replies only if they differ from all
    /// due.
    #[default]
    Differing,
    /// All of them.
    All,
}

/// Renders the report in at most 80 columns. Narrower terminals wrap it. The last line sums it up.
pub fn text(report: &Report, times: TextTimes) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(report, times, &mut out);
    out
}

/// Statistics in the table of times.
const COLUMNS: [Statistic; 6] = [
    Statistic::Mean,
    Statistic::P50,
    Statistic::P90,
    Statistic::P99,
    Statistic::P999,
    Statistic::Max,
];
/// Width of the table's first column.
const NAMES: usize = 22;
/// Characters of the longest bar of the histogram.
const BAR: usize = 40;

fn write(report: &Report, shown: TextTimes, out: &mut String) -> std::fmt::Result {
    if let Some(reason) = &report.generator.reason {
        writeln!(
            out,
            "THE GENERATOR WAS THE LIMIT: {reason}.\nResponse times are the generator's own.\n"
        )?;
    }
    writeln!(out, "{}", report.plan.target)?;
    let plan = &report.plan;
    let (connections, client) = (connections_in_words(plan), client_in_words(plan));
    writeln!(out, "{}, {connections}{client}", plan.pace)?;
    if report.stopped {
        stopped(report, out)?;
    }
    rates(report, out)?;
    outcomes(report, out)?;
    attempts(report, out)?;
    for (name, fact) in report.streams.iter().flat_map(streams::facts) {
        writeln!(out, "{name:<10} {fact}")?;
    }
    addresses(report, out)?;
    qlog(report, out)?;
    clients(report, out)?;
    agents(report, out)?;
    writeln!(out)?;
    times(report, shown, out)?;
    histogram(report, out)?;
    portions(out, "step", &report.steps)?;
    portions(out, "request", &report.requests)?;
    assertions(report, out)?;
    if let Some(hint) = &report.hint {
        writeln!(out, "\nno reply at all: {hint}")?;
    }
    if let Some(eventless) = report.eventless_in_words() {
        writeln!(out, "\n{eventless}")?;
    }
    writeln!(out, "\n{}", report.summary())
}

fn stopped(report: &Report, out: &mut String) -> std::fmt::Result {
    let due = report.planned_requests.map_or(String::new(), |planned| {
        let (intended, planned) = (thousands(report.intended), thousands(planned));
        format!(": {intended} of {planned} requests were due")
    });
    writeln!(
        out,
        "stopped after {:.1} s of {:.1} s{due}",
        report.duration_s, report.planned_duration_s
    )
}

fn rates(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "\nrate       offered {}/s   sent {}/s   achieved {}/s   ok {}/s",
        per_second(report.offered_rate),
        per_second(report.sent_rate),
        per_second(report.achieved_rate),
        per_second(report.ok_rate)
    )?;
    writeln!(
        out,
        "bytes      sent {}/s   received {}/s",
        bytes(report.bytes_sent_rate),
        bytes(report.bytes_received_rate)
    )
}

fn outcomes(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "requests   {} intended =", thousands(report.intended))?;
    shares(out, report, &report.outcomes)?;
    if report.reused_resets > 0 {
        let resets = thousands(report.reused_resets);
        writeln!(
            out,
            "reset      {resets} on reused connections before a reply: the server may have closed idle ones"
        )?;
    }
    if report.statuses.is_empty() {
        return Ok(());
    }
    let statuses = report.statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("{status}: {}", thousands(*count)));
    writeln!(
        out,
        "statuses   {}",
        statuses.collect::<Vec<_>>().join("   ")
    )?;
    match report
        .grpc
        .as_ref()
        .filter(|grpc| !grpc.statuses.is_empty())
    {
        Some(grpc) => writeln!(out, "gRPC       {}", grpc.description()),
        None => Ok(()),
    }
}

/// Counts by outcome with their shares of the sum.
fn shares(out: &mut String, report: &Report, outcomes: &Outcomes) -> std::fmt::Result {
    for (outcome, count) in occurred(outcomes) {
        let share = count as f64 / outcomes.total() as f64 * 100.0;
        let reason = match outcome {
            Outcome::Ok => String::new(),
            _ => report.reason(outcome).map_or_else(
                || outcome.meaning().to_owned(),
                |reason| format!("{} (first: {reason})", outcome.meaning()),
            ),
        };
        let name = outcome.name();
        let line = format!("{:>15} {name:<16}{share:6.2} %  {reason}", thousands(count));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Attempts by outcome, and requests by number of attempts, if clients retry.
fn attempts(report: &Report, out: &mut String) -> std::fmt::Result {
    let Some(attempts) = &report.attempts else {
        return Ok(());
    };
    writeln!(
        out,
        "attempts   {}, {:.2} per request, {}/s sent =",
        thousands(attempts.total),
        attempts.per_request,
        per_second(attempts.rate)
    )?;
    shares(out, report, &attempts.outcomes)?;
    let numbers = attempts
        .by_number()
        .map(|(number, count)| format!("{number}: {}", thousands(count)));
    let numbers: Vec<String> = numbers.collect();
    writeln!(
        out,
        "requests by number of attempts   {}",
        numbers.join("   ")
    )
}

/// Connections by address, if there are several, and those that were not established.
fn addresses(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.addresses.len() < 2 {
        return Ok(());
    }
    for (address, counts) in &report.addresses {
        let connections = thousands(counts.connections);
        let failed = match counts.failed {
            0 => String::new(),
            failed => format!(", not established {}", thousands(failed)),
        };
        writeln!(
            out,
            "address    {address}: connections {connections}{failed}"
        )?;
    }
    Ok(())
}

/// The folder with qlog files, and those that are missing.
fn qlog(report: &Report, out: &mut String) -> std::fmt::Result {
    let Some(qlog) = &report.qlog else {
        return Ok(());
    };
    let (files, omitted) = (thousands(qlog.files), thousands(qlog.omitted));
    let directory = &qlog.directory;
    writeln!(
        out,
        "qlog       {files} files in {directory}, {omitted} connections without"
    )?;
    match qlog.failure_in_words() {
        Some(failure) => writeln!(out, "qlog       {failure}"),
        None => Ok(()),
    }
}

/// Lines for runs whose clients decode or choose by price.
fn clients(report: &Report, out: &mut String) -> std::fmt::Result {
    if let Some(decoded) = &report.decoded {
        writeln!(
            out,
            "decoded    {} replies, {} bytes became {}",
            thousands(decoded.replies),
            thousands(decoded.bytes_coded),
            thousands(decoded.bytes)
        )?;
    }
    if let Some(events) = &report.events {
        events_line(events, out)?;
    }
    if let Some(quotes) = &report.quotes {
        writeln!(
            out,
            "quotes     {} used, of which {} refused; {} unreadable",
            thousands(quotes.used),
            thousands(quotes.refused),
            thousands(quotes.unreadable)
        )?;
    }
    Ok(())
}

/// A line for each agent.
fn agents(report: &Report, out: &mut String) -> std::fmt::Result {
    for (name, fact) in agents::facts(&report.agents) {
        writeln!(out, "agent      {name}: {fact}")?;
    }
    Ok(())
}

/// Numbers of events and end marks, and the rate of the streams.
fn events_line(events: &EventsReport, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "events     {}, {}/s",
        thousands(events.count),
        per_second(events.rate)
    )?;
    if let Some(reached) = events.stream_rate {
        write!(out, "; 95 % of the streams reach {}/s", per_second(reached))?;
    }
    if events.at_once > 0 {
        let replies = thousands(events.at_once);
        write!(
            out,
            "; all events at one instant in {replies} replies, which have no gap and no rate"
        )?;
    }
    if let (Some(with), Some(without)) = (events.with_end_mark, events.without_end_mark) {
        let replies = thousands(with + without);
        write!(
            out,
            "; end mark in {} of {replies} replies",
            thousands(with)
        )?;
    }
    writeln!(out)
}

/// The table of times. Each row names its requests.
fn times(report: &Report, shown: TextTimes, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "{:<NAMES$}     mean      p50      p90      p99    p99.9      max",
        "ms"
    )?;
    let response = &report.response_time_ms;
    let all = COLUMNS.map(|statistic| response.reading(statistic));
    row(out, "response, all due", all)?;
    interval(out, response)?;
    if shown == TextTimes::All || report.outcomes.failed() > 0 {
        plain_row(out, "response, ok only", &report.ok_response_time_ms)?;
    }
    plain_row(out, "service, replies", &report.service_time_ms)?;
    plain_row(out, "send lateness, sent", &report.send_lateness_ms)?;
    let attempts = report.attempts.as_ref();
    let retries = report.plan.retries.as_ref();
    if let Some(attempts) = attempts.filter(|_| retries.is_some()) {
        plain_row(out, "retry lateness, sent", &attempts.retry_lateness_ms)?;
    }
    let phases = if shown == TextTimes::All || has_phases(report) {
        &Phases::NAMES[..]
    } else {
        &[]
    };
    for phase in phases {
        if let Some(times) = report.phases_ms.get(*phase).filter(|times| times.count > 0) {
            plain_row(out, &format!("  {phase}, replies"), times)?;
        }
    }
    if let Some(events) = &report.events {
        for (name, times) in [
            ("first event, all due", &events.first_ms),
            ("gap between events", &events.gap_ms),
        ] {
            row(out, name, COLUMNS.map(|statistic| times.reading(statistic)))?;
            interval(out, times)?;
        }
    }
    let is_shown = |statistic: &&Statistic| {
        COLUMNS.contains(statistic) && response.reading(**statistic) != StatisticReading::Unknown
    };
    let own = report.generator.lateness_in.iter().filter(is_shown);
    let own: Vec<&str> = own
        .map(|statistic| match statistic {
            Statistic::P999 => "p99.9",
            other => other.key(),
        })
        .collect();
    if own.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "Send lateness is more than a quarter of the response time at {}.",
        own.join(", ")
    )
}

/// True if the time of complete replies consists of more than the wait for the server.
fn has_phases(report: &Report) -> bool {
    let wait = report.phases_ms.get("wait");
    wait.map_or(0.0, |times| times.mean) < 0.9 * report.service_time_ms.mean
}

fn row(
    out: &mut String,
    name: &str,
    readings: [StatisticReading; COLUMNS.len()],
) -> std::fmt::Result {
    write!(out, "{name:<NAMES$}")?;
    for reading in readings {
        write!(out, "{:>9}", reading.format(millis))?;
    }
    writeln!(out)
}

fn plain_row(out: &mut String, name: &str, times: &Summary) -> std::fmt::Result {
    if times.count == 0 {
        return writeln!(out, "{name:<NAMES$}     none");
    }
    row(
        out,
        name,
        COLUMNS.map(|statistic| reading(times, statistic)),
    )
}

/// The 95 % intervals of the mean and of p99, if there is enough data.
fn interval(out: &mut String, times: &CensoredSummary) -> std::fmt::Result {
    let print = |statistic: Statistic| {
        let [low, high] = times.interval(statistic)?.map(|end| end.format(millis));
        Some(format!("{} {low} to {high}", statistic.key()))
    };
    let known: Vec<String> = [Statistic::Mean, Statistic::P99]
        .into_iter()
        .filter_map(print)
        .collect();
    if known.is_empty() {
        Ok(())
    } else {
        writeln!(out, "  95 % sure: {}", known.join(", "))
    }
}

/// Response times as bars, requests without a reply last.
fn histogram(report: &Report, out: &mut String) -> std::fmt::Result {
    let times = &report.response_time_ms;
    let lost = times.count - times.answered;
    let bins = &report.response_time_bins;
    let most = bins.iter().map(|bin| bin.requests).chain([lost]).max();
    let most = most.filter(|most| *most > 0);
    let Some(most) = most else { return Ok(()) };
    writeln!(out, "\nresponse time, all due")?;
    let bar = |count: u64| "#".repeat((count * BAR as u64).div_ceil(most) as usize);
    for Bin { up_to_ms, requests } in bins {
        let bound = format!("<= {up_to_ms} ms");
        let line = format!(
            "{bound:>14} {:>11} {}",
            thousands(*requests),
            bar(*requests)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    match lost {
        0 => Ok(()),
        _ => writeln!(
            out,
            "{:>14} {:>11} {}",
            "no reply",
            thousands(lost),
            bar(lost)
        ),
    }
}

fn portions(out: &mut String, kind: &str, portions: &[PortionReport]) -> std::fmt::Result {
    if portions.is_empty() {
        return Ok(());
    }
    let width = portions.iter().map(|p| p.name.len()).max();
    let width = width.unwrap_or(0).clamp(8, 40);
    writeln!(
        out,
        "\n{kind:<width$}  achieved       ok   failed      p50      p99  ms, all due"
    )?;
    for portion in portions {
        let time = |statistic| portion.response_time_ms.reading(statistic).format(millis);
        writeln!(
            out,
            "{:<width$} {:>8}/s {:>8} {:>8} {:>8} {:>8}",
            portion.name,
            per_second(portion.achieved_rate),
            portion.outcomes[Outcome::Ok],
            portion.outcomes.failed(),
            time(Statistic::P50),
            time(Statistic::P99),
        )?;
    }
    Ok(())
}

fn assertions(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.assertions.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for checked in &report.assertions {
        let verdict = match checked.holds {
            Some(true) => "holds",
            Some(false) => "FAILS",
            None => "UNKNOWN",
        };
        writeln!(
            out,
            "{verdict}  {}: {}",
            checked.assertion,
            checked.reason()
        )?;
    }
    Ok(())
}

/// A number of bytes with a decimal unit.
fn bytes(count: f64) -> String {
    match count {
        count if count >= 1e9 => format!("{:.2} GB", count / 1e9),
        count if count >= 1e6 => format!("{:.2} MB", count / 1e6),
        count if count >= 1e3 => format!("{:.1} kB", count / 1e3),
        count => format!("{count:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_names_columns_of_the_table_that_have_a_value() {
        let mut report = crate::testing::report(100, 0);
        // The table has no column for p95, and 100 requests have no p99.9.
        report.generator.lateness_in = vec![Statistic::P95, Statistic::P99, Statistic::P999];
        let shown = text(&report, TextTimes::All);
        assert!(shown.contains("response time at p99.\n"), "{shown}");
        report.generator.lateness_in = vec![Statistic::P95];
        assert!(!text(&report, TextTimes::All).contains("Send lateness is"));
    }
}
