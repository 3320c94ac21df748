//! Requests through a gateway whose names, upstreams, certificates and configuration change.

use crate::bench::{Bench, Figure, Measure};
use crate::cores::server;
use crate::error::Outcome;
use crate::peers::gateway::changes::{ChangesOutcome, Surroundings, run};

/// Requests per second: one that takes about half of the gateway's core, and one that takes nearly all of it.
const RATES: [&str; 2] = ["5000/s", "10000/s"];

/// Requests that were lost during a minute of changes and without changes, and the time until a removed address gets no
/// more.
pub(crate) fn changes(bench: &Bench) -> Outcome<Vec<Figure>> {
    let (rates, seconds) = bench.or_quick((&RATES[..], 60), (&["1000/s"], 12));
    let mut figures = Vec::new();
    for rate in rates {
        let run = |surroundings| run(&bench.site, server(), surroundings, rate, seconds);
        let (constant, changing) = (run(Surroundings::Constant)?, run(Surroundings::Changing)?);
        let (without, with) = (lost(&constant)?, lost(&changing)?);
        let none = with.value == 0.0;
        figures.push(
            Figure::new(
                format!("requests not answered well, {rate} for {seconds} s"),
                with,
            )
            .peer("without changes", without)
            .target("0", none)
            .remark(format!("{} reloads", changing.reloads)),
        );
        let latest = changing.latest.as_secs_f64();
        figures.push(
            Figure::new(
                format!("last request of an address after its removal, {rate}, time to live 1 s"),
                Measure::new(latest, "s"),
            )
            .target("at most 2 s", latest <= 2.0),
        );
    }
    Ok(figures)
}

/// Requests without a reply of status 200.
fn lost(outcome: &ChangesOutcome) -> Outcome<Measure> {
    let intended = outcome.report.intended()?;
    let lost = intended - outcome.report.outcome("ok");
    Ok(Measure::part(lost, intended, ""))
}
