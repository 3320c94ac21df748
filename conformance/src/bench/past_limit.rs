//! Servers that are overloaded, or do not answer for a time.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::bench::{Bench, Figure, Measure};
use crate::cores::generator;
use crate::error::{Outcome, TaskError};
use crate::peers::generators::first_isbn;
use crate::peers::namespace::in_namespace;

/// Capacity of the slow server in requests per second: a millisecond each, and Python.
const SLOW_CAPACITY: u32 = 900;
/// The frozen server sleeps this long in every `PERIOD`.
const FREEZE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(10);

/// Attempts equal intentions, no SYN is sent twice, and lost requests equal the kernel's drops.
pub(crate) fn overload(bench: &Bench) -> Outcome<Vec<Figure>> {
    let duration = bench.or_quick("10s", "2s");
    let mut figures = Vec::new();
    for factor in [3, 8, 25] {
        let rate = format!("{}/s", factor * SLOW_CAPACITY);
        let chore = [
            "overload",
            "--rate",
            &rate,
            "--duration",
            duration,
            "--json",
        ];
        let output = in_namespace(&bench.site, &chore, 120)?;
        let run: serde_json::Value = serde_json::from_str(output.trim())
            .map_err(|error| TaskError::Failed(format!("{error} in {output}")))?;
        let get = |name: &str| run[name].as_f64().unwrap_or(f64::NAN);
        let share = get("attempted") / get("intended");
        let (lost, drops) = (
            get("connect_aborted") + get("unanswered"),
            get("listen_drops"),
        );
        let twice = get("syn_retransmissions");
        let figure = |name: &str, value, unit| {
            Figure::new(format!("{factor}x: {name}"), Measure::new(value, unit))
        };
        figures.extend([
            figure("attempts over intentions", share, "")
                .target("0.999 to 1.001", (share - 1.0).abs() <= 0.001)
                .remark(format!("{} intended", get("intended"))),
            figure("connect-aborted and unanswered", lost, "requests")
                .peer("ListenDrops", Measure::new(drops, "requests"))
                .target("equal", lost.to_bits() == drops.to_bits())
                .remark(format!("{} unanswered", get("unanswered"))),
            figure("SYNs sent twice", twice, "SYNs").target("0", twice < 0.5),
            figure("send lateness p99", get("lateness_p99_ms"), "ms"),
        ]);
    }
    Ok(figures)
}

/// Percentiles of a server stopped for 1 s in every 10 s, 500/s on kept connections.
///
/// A request due at time t of a freeze of length f waits f - t. So a share (f - x) / period waits longer than x: p95 is
/// f - 0.5 s, p99 is f - 0.1 s. The first freeze is in the warm-up. It creates the 500 connections that the others
/// need, which takes server time.
pub(crate) fn frozen(bench: &Bench) -> Outcome<Vec<Figure>> {
    let freezes = bench.or_quick(4, 1);
    let length = format!("{}s", freezes * PERIOD.as_secs());
    let shop = bench.bookshop(&[])?;
    let url = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
    let options = ["--rate", "500/s", "--duration", &length];
    let awake = bench.load(&url, &options, 120)?;
    let arguments = [[url.as_str()].as_slice(), &["--warm-up", "10s"], &options].concat();
    let loading = bench.site.start_load(generator(), &arguments)?;
    let started = Instant::now();
    let mut asleep = Duration::ZERO;
    for number in 0..=u32::try_from(freezes).unwrap_or(1) {
        sleep_until(started + PERIOD / 2 + PERIOD * number);
        let since = Instant::now();
        shop.running.signal(Signal::STOP)?;
        sleep_until(since + FREEZE);
        shop.running.signal(Signal::CONT)?;
        if number > 0 {
            asleep += since.elapsed();
        }
    }
    let report = loading.finish(60)?;
    report.expect_all("ok")?;
    let freeze = asleep.as_secs_f64() * 1000.0 / freezes as f64;
    let period = PERIOD.as_secs_f64() * 1000.0;
    let mut figures = Vec::new();
    for (name, share) in [("p95", 0.05), ("p99", 0.01)] {
        let (truth, measured) = (
            freeze - share * period,
            report.number(&format!("response_time_ms/{name}"))?,
        );
        figures.push(
            Figure::new(
                format!("response time {name}"),
                Measure::new(measured, "ms"),
            )
            .peer("computed", Measure::new(truth, "ms"))
            .target("within 2 %", (measured / truth - 1.0).abs() <= 0.02),
        );
    }
    let (frozen, awake) = (
        report.number("service_time_ms/p50")?,
        awake.number("service_time_ms/p50")?,
    );
    figures.push(
        Figure::new("median service time", Measure::new(frozen, "ms"))
            .peer("never frozen", Measure::new(awake, "ms"))
            .target("at most 1.5 times", frozen <= 1.5 * awake),
    );
    Ok(figures)
}

fn sleep_until(then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()));
}
