//! Precision of packet arrivals: on one link, and on hundreds in parallel.

use super::worker::{Ran, Worker};
use super::{NOBODY, load, surroundings};
use crate::bench::quantile;
use crate::bench::witness::Pauses;
use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;

/// A delay of 10 ms with one packet per millisecond: with both cores busy, and without privileges.
pub(in crate::bench) fn delay(bench: &Bench) -> Outcome<Vec<Figure>> {
    const UNDER_WAY: f64 = 10_000.0;
    let worker = Worker::build(bench)?;
    let packets = bench.or_quick(10_000, 2_000);
    let (load, witness) = (load(), bench.watch_all()?);
    let nobody: &[&str] = if rustix::process::geteuid().is_root() {
        NOBODY
    } else {
        &[]
    };
    let (mut busy, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..bench.or_quick(5, 1) {
        busy.push(worker.run(&[], &format!("delay {packets} busy fifo"))?);
        plain.push(worker.run(nobody, &format!("delay {packets}"))?);
    }
    let pauses = witness.end();
    let mut figures = Vec::from(surroundings(load, &pauses));
    let subject = "error of a delay of 10 ms";
    for (others, runs, bars) in [
        ("every core busy", &busy, [15.0, 60.0]),
        ("no other work of ours", &plain, [60.0, 400.0]),
    ] {
        let subject = format!("{subject}, {others}, {}", rank(runs)?);
        figures.extend(judged(&subject, runs, UNDER_WAY, &pauses, bars));
    }
    let verdicts = plain.iter().map(|ran| ran.word("verdict"));
    let verdicts = verdicts.collect::<Outcome<Vec<String>>>()?;
    let subject = "verdict of the emulator on itself after these";
    figures.push(
        Figure::sentence(subject)
            .remark(verdicts.join("; "))
            .detail(),
    );
    Ok(figures)
}

/// Flows of 20 packets per second, each on a link of its own with 18 ms per packet.
pub(in crate::bench) fn flows(bench: &Bench) -> Outcome<Vec<Figure>> {
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
    let mut figures = Vec::from(surroundings(load, &pauses));
    for (count, runs) in counts.iter().zip(&runs) {
        let subject = format!("{count} flows with own lines, {}", rank(runs)?);
        figures.extend(judged(&subject, runs, UNDER_WAY, &pauses, [1000.0, 1000.0]));
    }
    Ok(figures)
}

/// States if the emulator had real-time priority in all of these runs.
fn rank(runs: &[Ran]) -> Outcome<&'static str> {
    let granted: Vec<bool> = runs
        .iter()
        .map(|ran| ran.word("real-time"))
        .collect::<Outcome<_>>()?;
    Ok(if granted.iter().all(|granted| *granted) {
        "SCHED_FIFO"
    } else {
        "without precedence"
    })
}

/// Deviation of packets from their expected time, in µs. Targets are `bars` at p50 and p99 of packets without a pause.
/// Further figures show all packets.
fn judged(
    subject: &str,
    runs: &[Ran],
    under_way: f64,
    pauses: &Pauses,
    bars: [f64; 2],
) -> Vec<Figure> {
    let (mut quiet, mut all) = (Vec::new(), Vec::new());
    for &(sent, arrived) in runs.iter().flat_map(|ran| &ran.packets) {
        let taken = arrived.saturating_sub(sent) as f64 / 1000.0;
        let error = (taken - under_way).abs();
        all.push(error);
        if !pauses.hit(sent, arrived) {
            quiet.push(error);
        }
    }
    let places = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
    let figures = |which: &str, errors: &[f64]| {
        let figure = |(name, share)| {
            let at = Measure::new(quantile(errors, share), "µs").n(errors.len() as u64);
            Figure::new(format!("{subject}, {which}: {name}"), at)
        };
        places.map(figure)
    };
    let [p50, p99, p999, max] = figures("packets without a pause", &quiet);
    let bounded = |figure: Figure, share, bar| {
        let holds = quantile(&quiet, share) <= bar;
        figure.target(format!("at most {bar:.0} µs"), holds)
    };
    let [low, high] = bars;
    let mut judged = vec![bounded(p50, 0.5, low), bounded(p99, 0.99, high)];
    let others = figures("all packets", &all);
    judged.extend([p999, max].into_iter().chain(others).map(Figure::detail));
    judged
}
