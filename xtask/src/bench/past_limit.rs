//! Servers that cannot keep up, or do not answer for a while.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::bench::pinned::generator;
use crate::bench::{Bench, Row};
use crate::peers::generators::first_isbn;
use crate::peers::namespace::in_namespace;
use crate::trouble::{Outcome, Trouble};

/// What the slow server can do, in requests per second: a millisecond each, and Python.
const SLOW_CAPACITY: u32 = 900;
/// The frozen server sleeps this long in every `PERIOD`.
const FREEZE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(10);

/// Attempts are intentions, no SYN is sent twice, and what was lost is what the kernel dropped.
pub(crate) fn overload(bench: &Bench) -> Outcome<Vec<Row>> {
    let duration = bench.or_quick("10s", "2s");
    let mut rows = Vec::new();
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
        let said = in_namespace(&bench.site, &chore, 120)?;
        let run: serde_json::Value = serde_json::from_str(said.trim())
            .map_err(|error| Trouble::Failed(format!("{error} in {said}")))?;
        let get = |name: &str| run[name].as_f64().unwrap_or(f64::NAN);
        let share = get("attempted") / get("intended");
        let (lost, drops) = (
            get("connect_aborted") + get("unanswered"),
            get("listen_drops"),
        );
        let twice = get("syn_retransmissions");
        rows.push(Row::judged(
            format!("{factor}x: attempts of {} intended", get("intended")),
            format!("{share:.4}"),
            "0.999 to 1.001",
            (share - 1.0).abs() <= 0.001,
        ));
        rows.push(Row::judged(
            format!("{factor}x: connect-aborted and unanswered"),
            format!(
                "{} + {}; ListenDrops {drops}",
                get("connect_aborted"),
                get("unanswered")
            ),
            "equal",
            lost.to_bits() == drops.to_bits(),
        ));
        rows.push(Row::judged(
            format!("{factor}x: SYNs sent twice"),
            format!("{twice}"),
            "0",
            twice < 0.5,
        ));
        rows.push(Row::told(
            format!("{factor}x: lateness p99"),
            format!("{:.3} ms", get("lateness_p99_ms")),
        ));
    }
    Ok(rows)
}

/// Percentiles of a server stopped for 1 s in every 10 s, 500/s on kept connections.
///
/// A request due at time t of a freeze of length f waits f - t, so that a share (f - x) / period
/// waits longer than x: p95 is f - 0.5 s, p99 is f - 0.1 s. The first freeze falls into the warm-up:
/// it makes the 500 connections that the others need, which takes the server time of its own.
pub(crate) fn frozen(bench: &Bench) -> Outcome<Vec<Row>> {
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
    let mut rows = Vec::new();
    for (name, share) in [("p95", 0.05), ("p99", 0.01)] {
        let (truth, measured) = (
            freeze - share * period,
            report.number(&format!("response_time_ms/{name}"))?,
        );
        rows.push(Row::judged(
            format!("response time {name}"),
            format!(
                "{measured:.1} ms; truth {truth:.1} ms; off by {:+.2} %",
                (measured / truth - 1.0) * 100.0
            ),
            "within 2 %",
            (measured / truth - 1.0).abs() <= 0.02,
        ));
    }
    let (frozen, awake) = (
        report.number("service_time_ms/p50")?,
        awake.number("service_time_ms/p50")?,
    );
    rows.push(Row::judged(
        "median service time",
        format!("{frozen:.3} ms; never frozen {awake:.3} ms"),
        "at most 1.5 times",
        frozen <= 1.5 * awake,
    ));
    Ok(rows)
}

fn sleep_until(then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()));
}
