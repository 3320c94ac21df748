//! Whether exactly the planned packets are missing, and the trace says so.

use super::worker::Worker;
use crate::bench::{Bench, Row};
use crate::trouble::Outcome;

/// A million packets of which a pattern drops each 997th.
pub(in crate::bench) fn positions(bench: &Bench) -> Outcome<Vec<Row>> {
    let worker = Worker::build(bench)?;
    let packets: u64 = bench.or_quick(1_000_000, 50_000);
    let ran = worker.run(&[], &format!("positions {packets} fifo"))?;
    let dropped: u64 = ran.word("dropped")?;
    let row = |what: &str, name: &str| -> Outcome<Row> {
        let holds = ran.word(name)?;
        let words = match holds {
            true => "those, and no other",
            false => "others",
        };
        let what = format!("{what}, {dropped} of {packets} planned");
        Ok(Row::judged(what, words, "exactly those", holds))
    };
    let traced: u64 = ran.word("traced")?;
    Ok(vec![
        row("missing at the far end", "missing-as-planned")?,
        row("dropped by the trace", "trace-as-planned")?,
        Row::judged(
            "packets in the trace",
            format!("{traced}; {} found no room", ran.word::<u64>("unseen")?),
            "all",
            traced == packets,
        ),
    ])
}
