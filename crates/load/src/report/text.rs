//! The report a person reads on a terminal: what was asked, what came, where the time went.

use std::fmt::Write as _;

use posthaste_stats::Summary;

use super::{PortionReport, Report, client_in_words, occurred};
use crate::outcome::Outcome;
use crate::tally::Phases;

/// The report in at most 80 columns; narrower terminals wrap it.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}", report.plan.target)?;
    writeln!(
        out,
        "{}, {} connections{}",
        report.plan.pace,
        report.plan.connection,
        client_in_words(&report.plan)
    )?;
    if report.stopped {
        writeln!(out, "stopped after {:.1} s", report.duration_s)?;
    }
    writeln!(
        out,
        "\nrate       offered {}/s   sent {}/s   achieved {}/s",
        rate(report.offered_rate),
        rate(report.sent_rate),
        rate(report.achieved_rate)
    )?;
    writeln!(out, "requests   {} intended =", thousands(report.intended))?;
    for (outcome, count) in occurred(&report.outcomes) {
        let share = count as f64 / report.intended as f64 * 100.0;
        let reason = match outcome {
            Outcome::Ok => String::new(),
            _ => report.reasons.get(outcome.name()).map_or_else(
                || outcome.meaning().to_owned(),
                |reason| format!("{} (first: {reason})", outcome.meaning()),
            ),
        };
        let name = outcome.name();
        let line = format!("{:>15} {name:<16}{share:6.2} %  {reason}", thousands(count));
        writeln!(out, "{}", line.trim_end())?;
    }
    if let Some(decoded) = &report.decoded {
        writeln!(
            out,
            "decoded    {} replies, {} bytes became {}",
            thousands(decoded.replies),
            thousands(decoded.bytes_coded),
            thousands(decoded.bytes)
        )?;
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
    writeln!(
        out,
        "\nms              mean      p50      p90      p99    p99.9      max"
    )?;
    summary(out, "response time", &report.response_time_ms)?;
    interval(out, &report.response_time_ms)?;
    summary(out, "service time", &report.service_time_ms)?;
    summary(out, "send lateness", &report.send_lateness_ms)?;
    for phase in Phases::NAMES {
        if let Some(times) = report.phases_ms.get(phase).filter(|times| times.count > 0) {
            summary(out, &format!("  {phase}"), times)?;
        }
    }
    portions(out, "step", &report.steps)?;
    portions(out, "request", &report.requests)
}

fn summary(out: &mut String, name: &str, times: &Summary) -> std::fmt::Result {
    if times.count == 0 {
        return writeln!(out, "{name:<13}   no complete reply");
    }
    write!(out, "{name:<13}")?;
    for value in [
        times.mean, times.p50, times.p90, times.p99, times.p999, times.max,
    ] {
        write!(out, "{:>9}", millis(value))?;
    }
    writeln!(out)
}

/// The 95 % intervals of the mean and of p99, where there is enough data for them.
fn interval(out: &mut String, times: &Summary) -> std::fmt::Result {
    let print = |interval: Option<[f64; 2]>| {
        interval.map(|[low, high]| format!("{} to {}", millis(low), millis(high)))
    };
    match (print(times.mean_interval), print(times.p99_interval)) {
        (Some(mean), Some(p99)) => {
            writeln!(out, "  95 % sure    mean {mean}, p99 {p99}")
        }
        (Some(mean), None) => writeln!(out, "  95 % sure    mean {mean}"),
        _ => Ok(()),
    }
}

fn portions(out: &mut String, kind: &str, portions: &[PortionReport]) -> std::fmt::Result {
    if portions.is_empty() {
        return Ok(());
    }
    let width = portions
        .iter()
        .map(|p| p.name.len())
        .max()
        .unwrap_or(0)
        .clamp(8, 40);
    writeln!(
        out,
        "\n{kind:<width$}  achieved       ok   failed      p50      p99  ms"
    )?;
    for portion in portions {
        let times = &portion.response_time_ms;
        writeln!(
            out,
            "{:<width$} {:>8}/s {:>8} {:>8} {:>8} {:>8}",
            portion.name,
            rate(portion.achieved_rate),
            portion.outcomes[Outcome::Ok],
            portion.outcomes.failed(),
            millis(times.p50),
            millis(times.p99),
        )?;
    }
    Ok(())
}

/// Milliseconds with as many digits as say something.
fn millis(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 0.1 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 {
        format!("{per_second:.1}")
    } else {
        thousands(per_second.round() as u64)
    }
}

/// A whole number with commas.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
