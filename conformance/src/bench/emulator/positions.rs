//! Check that exactly the planned packets are missing, and that the trace agrees.

use super::worker::Worker;
use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;

/// A million packets with a pattern that drops each 997th.
pub(in crate::bench) fn positions(bench: &Bench) -> Outcome<Vec<Figure>> {
    let worker = Worker::build(bench)?;
    let packets: u64 = bench.or_quick(1_000_000, 50_000);
    let ran = worker.run(&[], &format!("positions {packets} fifo"))?;
    let dropped: u64 = ran.word("dropped")?;
    let as_planned = |statement: &str, name: &str| -> Outcome<Figure> {
        let statement = format!("{statement} are the planned {dropped} of {packets}");
        Ok(Figure::sentence(statement).target("exactly those", ran.word(name)?))
    };
    let traced: u64 = ran.word("traced")?;
    Ok(vec![
        as_planned("packets missing at the far end", "missing-as-planned")?,
        as_planned("packets dropped by the trace", "trace-as-planned")?,
        Figure::new(
            "packets in the trace",
            Measure::part(traced, packets, "packets"),
        )
        .target("all", traced == packets)
        .remark(format!("{} found no room", ran.word::<u64>("unseen")?)),
    ])
}
