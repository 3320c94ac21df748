//! How exactly packets arrive when they should: one line, and hundreds side by side.

use super::worker::{Ran, Worker};
use super::{NOBODY, load, quantile, surroundings};
use crate::bench::witness::Pauses;
use crate::bench::{Bench, Row};
use crate::trouble::Outcome;

/// A delay of 10 ms for a packet each millisecond: with both cores busy, and without privilege.
pub(in crate::bench) fn delay(bench: &Bench) -> Outcome<Vec<Row>> {
    const UNDER_WAY: f64 = 10_000.0;
    let worker = Worker::build(bench)?;
    let packets = bench.or_quick(10_000, 2_000);
    let (load, witness) = (load(), bench.watch_all()?);
    let nobody: &[&str] = match rustix::process::geteuid().is_root() {
        true => NOBODY,
        false => &[],
    };
    let (mut busy, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..bench.or_quick(5, 1) {
        busy.push(worker.run(&[], &format!("delay {packets} busy fifo"))?);
        plain.push(worker.run(nobody, &format!("delay {packets}"))?);
    }
    let pauses = witness.end();
    let mut rows = vec![surroundings(&load, &pauses)];
    let what = format!(
        "error of a delay of 10 ms, every core busy, {}",
        rank(&busy)?
    );
    rows.extend(judged(&what, &busy, UNDER_WAY, &pauses, [15.0, 60.0]));
    let what = format!("the same, no other work of ours, {}", rank(&plain)?);
    rows.extend(judged(&what, &plain, UNDER_WAY, &pauses, [60.0, 400.0]));
    rows.push(Row::told(
        "what the emulator said of itself after these",
        plain
            .iter()
            .map(|ran| ran.word("verdict"))
            .collect::<Outcome<Vec<String>>>()?
            .join("; "),
    ));
    Ok(rows)
}

/// Flows of 20 packets a second, each on a line of its own that takes 18 ms for one.
pub(in crate::bench) fn flows(bench: &Bench) -> Outcome<Vec<Row>> {
    const UNDER_WAY: f64 = 18_000.0;
    let worker = Worker::build(bench)?;
    let (load, witness) = (load(), bench.watch_all()?);
    let counts = [256, 1024];
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..bench.or_quick(3, 1) {
        for (count, runs) in counts.iter().zip(&mut runs) {
            runs.push(worker.run(&[], &format!("flows {count} fifo"))?);
        }
    }
    let pauses = witness.end();
    let mut rows = vec![surroundings(&load, &pauses)];
    for (count, runs) in counts.iter().zip(&runs) {
        let what = format!("{count} flows with own lines, {}", rank(runs)?);
        rows.extend(judged(&what, runs, UNDER_WAY, &pauses, [1000.0, 1000.0]));
    }
    Ok(rows)
}

/// Whether the emulator had precedence in all of these runs.
fn rank(runs: &[Ran]) -> Outcome<&'static str> {
    let granted: Vec<bool> = runs
        .iter()
        .map(|ran| ran.word("real-time"))
        .collect::<Outcome<_>>()?;
    Ok(match granted.iter().all(|granted| *granted) {
        true => "SCHED_FIFO",
        false => "without precedence",
    })
}

/// How far packets were off what they should take, in µs; at most `bars` at p50 and p99 without a
/// pause, and beside it all packets.
fn judged(what: &str, runs: &[Ran], under_way: f64, pauses: &Pauses, bars: [f64; 2]) -> [Row; 2] {
    let (mut quiet, mut all) = (Vec::new(), Vec::new());
    for &(sent, arrived) in runs.iter().flat_map(|ran| &ran.packets) {
        let taken = arrived.saturating_sub(sent) as f64 / 1000.0;
        let error = (taken - under_way).abs();
        all.push(error);
        if !pauses.hit(sent, arrived) {
            quiet.push(error);
        }
    }
    let [low, high] = bars;
    let told = |errors: &mut Vec<f64>| {
        errors.sort_by(f64::total_cmp);
        let at = |share| quantile(errors, share);
        let (p50, p99) = (at(0.5), at(0.99));
        let words = format!(
            "p50 {p50:.1} µs, p99 {p99:.1} µs, p99.9 {:.1} µs, max {:.1} µs of {} packets",
            at(0.999),
            at(1.0),
            errors.len()
        );
        (words, p50 <= low && p99 <= high)
    };
    let (without, holds) = told(&mut quiet);
    let (with, _) = told(&mut all);
    let bar = format!("p50 at most {low:.0} µs, p99 at most {high:.0} µs");
    [
        Row::judged(
            format!("{what}, packets without a pause"),
            without,
            bar,
            holds,
        ),
        Row::told("the same, all packets", with),
    ]
}
