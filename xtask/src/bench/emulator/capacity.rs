//! How many of the largest packets one emulator passes on, when it always has one more.

use super::worker::{Ran, Worker};
use super::{load, surroundings};
use crate::bench::{Bench, Row, median};
use crate::trouble::Outcome;

/// With precedence for the emulator and for who feeds it, and without for both.
pub(in crate::bench) fn capacity(bench: &Bench) -> Outcome<Vec<Row>> {
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
    // A median withstands pauses, and few seconds are without one.
    let (words, middle) = told(&first);
    Ok(vec![
        surroundings(&load, &pauses),
        Row::judged(
            "packets of 1,500 bytes a second, SCHED_FIFO",
            words,
            "at least 150,000",
            middle >= 150_000.0,
        ),
        lost(&first)?,
        Row::told("the same without precedence", told(&plain).0),
        lost(&plain)?,
    ])
}

/// Packets that were sent and did not arrive.
fn lost(runs: &[Ran]) -> Outcome<Row> {
    let sum = |name| -> Outcome<u64> { runs.iter().map(|ran| ran.word::<u64>(name)).sum() };
    let (sent, received) = (sum("sent")?, sum("received")?);
    Ok(Row::judged(
        "lost of these, by the counters of the far end's kernel",
        format!("{} of {sent}", sent.abs_diff(received)),
        "0",
        sent == received,
    ))
}

/// Packets a second by the far end's kernel: in words, and the median.
fn told(runs: &[Ran]) -> (String, f64) {
    let rates: Vec<f64> = runs
        .iter()
        .flat_map(|ran| &ran.windows)
        .map(|(from, to, packets)| *packets as f64 * 1e9 / (to - from) as f64)
        .collect();
    let middle = median(&rates);
    let low = rates.iter().copied().fold(f64::NAN, f64::min);
    let high = rates.iter().copied().fold(f64::NAN, f64::max);
    let words = format!(
        "median {middle:.0} of {} ({low:.0} to {high:.0}), {:.2} Gbit/s",
        rates.len(),
        middle * 12_000.0 / 1e9
    );
    (words, middle)
}
