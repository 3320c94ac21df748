//! Maximum packet rate of one emulator, with packets of the largest size always waiting.
//!
//! Four fifths of its time are the kernel's sending, a tenth copying, a tenth deciding (`perf`).

use super::worker::{Ran, Worker};
use super::{load, surroundings};
use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;

/// With real-time priority for the emulator and the sender, and without for both.
pub(in crate::bench) fn capacity(bench: &Bench) -> Outcome<Vec<Figure>> {
    let worker = Worker::build(bench)?;
    let seconds = bench.or_quick(4, 2);
    let (load, witness) = (load(), bench.watch_all()?);
    let (mut first, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..bench.or_quick(4, 1) {
        let arguments = format!("capacity {seconds}");
        first.push(worker.run(&["chrt", "-f", "1"], &format!("{arguments} fifo"))?);
        plain.push(worker.run(&[], &arguments)?);
    }
    let pauses = witness.end();
    // A median withstands pauses, and few seconds are free of them.
    let packets = "packets of 1,500 bytes";
    let [fifo, ordinary] = ["SCHED_FIFO", "without precedence"];
    let rate = passed_on(&first);
    let holds = rate.value >= 150_000.0;
    let mut figures = Vec::from(surroundings(load, &pauses));
    figures.extend([
        Figure::new(format!("{packets}, {fifo}"), rate).target("at least 150,000/s", holds),
        lost(fifo, &first)?,
        Figure::new(format!("{packets}, {ordinary}"), passed_on(&plain)),
        lost(ordinary, &plain)?,
    ]);
    Ok(figures)
}

/// Packets that were sent and did not arrive, by the counters of the receiver's kernel.
fn lost(rank: &str, runs: &[Ran]) -> Outcome<Figure> {
    let sum = |name| -> Outcome<u64> { runs.iter().map(|ran| ran.word::<u64>(name)).sum() };
    let (sent, received) = (sum("sent")?, sum("received")?);
    let lost = Measure::part(sent.abs_diff(received), sent, "packets");
    Ok(Figure::new(format!("lost of these, {rank}"), lost).target("0", sent == received))
}

/// Packets per second by the receiver's kernel.
fn passed_on(runs: &[Ran]) -> Measure {
    let rates: Vec<f64> = runs
        .iter()
        .flat_map(|ran| &ran.windows)
        .map(|(from, to, packets)| *packets as f64 * 1e9 / (to - from) as f64)
        .collect();
    Measure::median(&rates, "packets/s")
}
