//! How soon plain replies come through proxies that share a core with nobody, at a load that they can bear: by those
//! that have been at work, and by those that have just begun and meet all their clients at once.

use crate::bench::proxies::{Proxy, origin, posts, request};
use crate::bench::{Bench, Row, median};
use crate::site::Server;
use crate::trouble::{Outcome, check};

/// Who is compared; the gateway's cost makes the load.
const PROXIES: [(Proxy, &str); 3] = [
    (Proxy::Gateway, "the gateway"),
    (Proxy::Haproxy, "HAProxy"),
    (Proxy::Nginx, "nginx"),
];

/// Of the gateway's core, and the rate at which the cost of a request is measured for it: one by one, a request costs
/// twice what it does in a closed loop.
const LOAD: f64 = 0.7;
const TRIAL: &str = "8000/s";

/// The 99th percentile where the gateway is 70 % busy, and connections that clients needed for it.
pub(crate) fn tails(bench: &Bench) -> Outcome<Vec<Row>> {
    let origin = origin(bench)?;
    let start = |proxy: Proxy| proxy.start(&bench.site, &origin, false);
    let body = request(bench, "BookLite")?.display().to_string();
    let begun: Vec<Server> = PROXIES
        .into_iter()
        .map(|(proxy, _)| start(proxy))
        .collect::<Outcome<_>>()?;
    let mut trial = posts(&body, bench.or_quick("3s", "500ms"));
    trial.extend(["--rate", TRIAL]);
    let (cost, _) = bench.server_cost(&begun[0], &trial, &begun[0].url("/BookLite.xml"))?;
    let rate = format!("{:.0}/s", LOAD * 1e6 / cost);

    let mut rows = Vec::new();
    for anew in [false, true] {
        let mut seen = [const { (Vec::new(), Vec::new()) }; PROXIES.len()];
        for _ in 0..bench.or_quick(9, 1) {
            for (place, (proxy, _)) in PROXIES.into_iter().enumerate() {
                let fresh = anew.then(|| start(proxy)).transpose()?;
                let server = fresh.as_ref().unwrap_or(&begun[place]);
                let (tail, connections) = run(bench, server, &body, &rate)?;
                seen[place].0.push(tail);
                seen[place].1.push(connections);
            }
        }
        let told = PROXIES
            .iter()
            .zip(&seen)
            .map(|((_, name), (tails, opened))| {
                format!(
                    "{name} {:.1} ms, {:.0} connections",
                    median(tails),
                    median(opened)
                )
            });
        rows.push(Row::judged(
            format!(
                "p99 of plain replies of 3.4 KB at {rate}, proxies {}",
                if anew {
                    "begun for each run"
                } else {
                    "at work"
                }
            ),
            told.collect::<Vec<_>>().join("; "),
            "no more than HAProxy's",
            median(&seen[0].0) <= median(&seen[1].0),
        ));
    }
    Ok(rows)
}

/// The 99th percentile in milliseconds, and the connections, of an open loop.
fn run(bench: &Bench, server: &Server, body: &str, rate: &str) -> Outcome<(f64, f64)> {
    let mut options = posts(body, bench.or_quick("3s", "500ms"));
    options.extend(["--rate", rate]);
    let url = server.url("/BookLite.xml");
    let report = bench.load(&url, &options, 120)?;
    check(report.outcome("ok") == report.intended()?, || {
        format!("{url}: not only ok: {}", report.outcomes())
    })?;
    Ok((
        report.number("response_time_ms/p99")?,
        report.number("connections")?,
    ))
}
