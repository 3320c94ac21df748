//! Requests through a gateway whose names, upstreams, certificates and configuration change.

use crate::bench::pinned::server;
use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;
use crate::peers::gateway::changes::run;

/// 10,000/s for a minute. Requests that failed, and the time until a removed address gets no more.
pub(crate) fn changes(bench: &Bench) -> Outcome<Vec<Figure>> {
    let (rate, seconds) = bench.or_quick(("10000/s", 60), ("1000/s", 12));
    let outcome = run(&bench.site, server(), rate, seconds)?;
    let intended = outcome.report.intended()?;
    let lost = intended - outcome.report.outcome("ok");
    let latest = outcome.latest.as_secs_f64();
    Ok(vec![
        Figure::new(
            format!("requests not answered well, {rate} for {seconds} s"),
            Measure::part(lost, intended, ""),
        )
        .target("0", lost == 0)
        .remark(format!("{} reloads", outcome.reloads)),
        Figure::new(
            "last request of an address after its removal, time to live 1 s",
            Measure::new(latest, "s"),
        )
        .target("at most 2 s", latest <= 2.0),
    ])
}
