//! The report as Prometheus text (exposition format 0.0.4), for a textfile collector.

use std::fmt::Write as _;

use posthaste_stats::Summary;

use super::Report;

/// The whole report as metrics with the prefix `posthaste_load_`.
pub fn prometheus(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    let gauges = [
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
        ("duration_seconds", "Measured time", report.duration_s),
    ];
    for (name, help, value) in gauges {
        header(out, name, help, "gauge")?;
        writeln!(out, "posthaste_load_{name} {value}")?;
    }
    header(
        out,
        "requests_total",
        "Intended requests by outcome",
        "counter",
    )?;
    for (outcome, count) in report.outcomes.iter() {
        writeln!(
            out,
            "posthaste_load_requests_total{{outcome=\"{outcome}\"}} {count}"
        )?;
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
    times(
        out,
        "response_time",
        "Due to last byte",
        &report.response_time_ms,
    )?;
    times(
        out,
        "service_time",
        "Sent to last byte",
        &report.service_time_ms,
    )?;
    times(
        out,
        "send_lateness",
        "Due to sent",
        &report.send_lateness_ms,
    )
}

fn counter(out: &mut String, name: &str, help: &str, count: u64) -> std::fmt::Result {
    header(out, &format!("{name}_total"), help, "counter")?;
    writeln!(out, "posthaste_load_{name}_total {count}")
}

fn header(out: &mut String, name: &str, help: &str, kind: &str) -> std::fmt::Result {
    writeln!(out, "# HELP posthaste_load_{name} {help}.")?;
    writeln!(out, "# TYPE posthaste_load_{name} {kind}")
}

fn times(out: &mut String, name: &str, help: &str, times: &Summary) -> std::fmt::Result {
    let name = format!("{name}_seconds");
    header(out, &name, help, "summary")?;
    let quantiles = [
        ("0.5", times.p50),
        ("0.9", times.p90),
        ("0.95", times.p95),
        ("0.99", times.p99),
        ("0.999", times.p999),
    ];
    for (quantile, ms) in quantiles {
        writeln!(
            out,
            "posthaste_load_{name}{{quantile=\"{quantile}\"}} {}",
            ms / 1e3
        )?;
    }
    writeln!(
        out,
        "posthaste_load_{name}_sum {}",
        times.mean / 1e3 * times.count as f64
    )?;
    writeln!(out, "posthaste_load_{name}_count {}", times.count)
}
