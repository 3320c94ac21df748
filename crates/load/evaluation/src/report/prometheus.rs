//! The report as Prometheus text (exposition format 0.0.4), for a textfile collector.

use std::fmt::Write as _;

use posthaste_stats::{CensoredSummary, Statistic, Summary};

use super::{AttemptsReport, Report};

/// Renders the whole report as metrics with the prefix `posthaste_load_`.
pub fn prometheus(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    gauges(out, report)?;
    counters(out, report)?;
    response_times(out, &report.response_time_ms)?;
    for (name, help, summary) in [
        (
            "ok_response_time",
            "Due to last byte, good replies only",
            &report.ok_response_time_ms,
        ),
        (
            "service_time",
            "Sent to last byte, complete replies only",
            &report.service_time_ms,
        ),
        (
            "send_lateness",
            "Due to sent, requests that were sent",
            &report.send_lateness_ms,
        ),
    ] {
        times(out, name, help, summary)?;
    }
    Ok(())
}

fn gauges(out: &mut String, report: &Report) -> std::fmt::Result {
    let limited = f64::from(u8::from(report.generator.limited));
    for (name, help, value) in [
        (
            "offered_rate",
            "Requests due per second",
            report.offered_rate,
        ),
        (
            "sent_rate",
            "Requests sent per second of the measured time",
            report.sent_rate,
        ),
        (
            "achieved_rate",
            "Complete replies per second of the measured time",
            report.achieved_rate,
        ),
        (
            "ok_rate",
            "Good replies per second of the measured time",
            report.ok_rate,
        ),
        ("duration_seconds", "Measured time", report.duration_s),
        (
            "generator_limited",
            "1 where the generator was the limit and response times are its own",
            limited,
        ),
    ] {
        header(out, name, help, "gauge")?;
        writeln!(out, "posthaste_load_{name} {value}")?;
    }
    Ok(())
}

fn counters(out: &mut String, report: &Report) -> std::fmt::Result {
    let name = "requests_total";
    header(out, name, "Intended requests by outcome", "counter")?;
    for (outcome, count) in report.outcomes.iter() {
        writeln!(
            out,
            "posthaste_load_{name}{{outcome=\"{outcome}\"}} {count}"
        )?;
    }
    let name = "replies_total";
    header(out, name, "Complete replies by status", "counter")?;
    for (status, count) in &report.statuses {
        writeln!(out, "posthaste_load_{name}{{status=\"{status}\"}} {count}")?;
    }
    if let Some(grpc) = &report.grpc {
        let name = "grpc_replies_total";
        let help = "Complete replies to gRPC calls by status";
        header(out, name, help, "counter")?;
        for (status, count) in &grpc.statuses {
            writeln!(out, "posthaste_load_{name}{{status=\"{status}\"}} {count}")?;
        }
    }
    if let Some(attempts) = &report.attempts {
        write_attempts(out, attempts)?;
    }
    if let Some(decoded) = &report.decoded {
        let coded = decoded.bytes_coded;
        counter(out, "decoded_replies", "Replies decoded", decoded.replies)?;
        let help = "Bytes of their content as it came";
        counter(out, "decoded_coded_bytes", help, coded)?;
        let help = "Bytes of what became of it";
        counter(out, "decoded_bytes", help, decoded.bytes)?;
    }
    if let Some(quotes) = &report.quotes {
        counter(out, "quotes_used", "Requests with a quote", quotes.used)?;
        counter(out, "quotes_refused", "Those refused", quotes.refused)?;
        let help = "Quotes that cannot be understood";
        counter(out, "quotes_unreadable", help, quotes.unreadable)?;
    }
    Ok(())
}

fn write_attempts(out: &mut String, attempts: &AttemptsReport) -> std::fmt::Result {
    let help = "Attempts sent per second of the measured time";
    header(out, "attempt_rate", help, "gauge")?;
    writeln!(out, "posthaste_load_attempt_rate {}", attempts.rate)?;
    let name = "attempts_total";
    header(out, name, "Attempts by outcome", "counter")?;
    for (outcome, count) in attempts.outcomes.iter() {
        writeln!(
            out,
            "posthaste_load_{name}{{outcome=\"{outcome}\"}} {count}"
        )?;
    }
    let name = "requests_by_attempts_total";
    header(out, name, "Requests by number of attempts", "counter")?;
    for (number, count) in (1..).zip(&attempts.requests) {
        let number: usize = number;
        writeln!(
            out,
            "posthaste_load_{name}{{attempts=\"{number}\"}} {count}"
        )?;
    }
    let help = "End of the back-off to sent, retries that were sent";
    times(out, "retry_lateness", help, &attempts.retry_lateness_ms)
}

fn counter(out: &mut String, name: &str, help: &str, count: u64) -> std::fmt::Result {
    header(out, &format!("{name}_total"), help, "counter")?;
    writeln!(out, "posthaste_load_{name}_total {count}")
}

fn header(out: &mut String, name: &str, help: &str, kind: &str) -> std::fmt::Result {
    writeln!(out, "# HELP posthaste_load_{name} {help}.")?;
    writeln!(out, "# TYPE posthaste_load_{name} {kind}")
}

/// Quantiles as Prometheus labels them.
const QUANTILES: [(&str, Statistic); 5] = [
    ("0.5", Statistic::P50),
    ("0.9", Statistic::P90),
    ("0.95", Statistic::P95),
    ("0.99", Statistic::P99),
    ("0.999", Statistic::P999),
];

/// Response times of all requests due: infinite without a reply, NaN if unknown.
fn response_times(out: &mut String, times: &CensoredSummary) -> std::fmt::Result {
    let value = |statistic| match times.reading(statistic).or_infinite() {
        Some(f64::INFINITY) => "+Inf".to_owned(),
        Some(ms) => (ms / 1e3).to_string(),
        None => "NaN".to_owned(),
    };
    let name = "response_time_seconds";
    let help = "Due to last byte, all requests that were due; +Inf is no reply";
    header(out, name, help, "summary")?;
    for (quantile, statistic) in QUANTILES {
        let value = value(statistic);
        writeln!(
            out,
            "posthaste_load_{name}{{quantile=\"{quantile}\"}} {value}"
        )?;
    }
    let mean = times.reading(Statistic::Mean).or_infinite();
    let sum = match mean.map(|mean| mean / 1e3 * times.count as f64) {
        None => "0".to_owned(),
        Some(f64::INFINITY) => "+Inf".to_owned(),
        Some(sum) => sum.to_string(),
    };
    writeln!(out, "posthaste_load_{name}_sum {sum}")?;
    writeln!(out, "posthaste_load_{name}_count {}", times.count)
}

fn times(out: &mut String, name: &str, help: &str, times: &Summary) -> std::fmt::Result {
    let name = format!("{name}_seconds");
    header(out, &name, help, "summary")?;
    for (quantile, statistic) in QUANTILES {
        let seconds = times.value(statistic) / 1e3;
        writeln!(
            out,
            "posthaste_load_{name}{{quantile=\"{quantile}\"}} {seconds}"
        )?;
    }
    let sum = times.mean / 1e3 * times.count as f64;
    writeln!(out, "posthaste_load_{name}_sum {sum}")?;
    writeln!(out, "posthaste_load_{name}_count {}", times.count)
}
