//! Response times of plain replies through proxies at a load within their capacity, one at a time on the server's core.
//! Measured for proxies that have been running, and for proxies that have just started and get all their clients at
//! once.

use posthaste_stats::Share;

use crate::bench::pinned::number;
use crate::bench::proxies::{BenchProxy, origin, posts, request};
use crate::bench::result::Bounds;
use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, check};
use crate::site::Server;

/// The compared proxies. The gateway's cost defines the load.
const PROXIES: [BenchProxy; 3] = [BenchProxy::Gateway, BenchProxy::Haproxy, BenchProxy::Nginx];

/// Use of the gateway's core, in percent.
const LOAD: f64 = 70.0;

/// Start of the search for the rate of that load. The search is needed because the cost per request falls with the
/// rate.
const BEGIN: f64 = 8000.0;
const TRIALS: usize = 3;

/// Results of one proxy, run by run: the 99th percentile in milliseconds, the connections of its clients, and the share
/// of its core.
#[derive(Default)]
struct TailResult {
    tail: Vec<f64>,
    connections: Vec<f64>,
    busy: Vec<f64>,
}

/// The 99th percentile while the gateway is 70 % busy.
pub(crate) fn tails(bench: &Bench) -> Outcome<Vec<Figure>> {
    let origin = origin(bench)?;
    let start = |proxy: BenchProxy| proxy.start(&bench.site, &origin, false);
    let body = request(bench, "BookLite")?.display().to_string();
    let begun: Vec<Server> = PROXIES.into_iter().map(start).collect::<Outcome<_>>()?;
    let mut rate = BEGIN;
    for _ in 0..TRIALS {
        let mut trial = TailResult::default();
        trial.run(bench, &begun[0], &body, rate)?;
        rate *= LOAD / trial.busy[0];
    }

    let at_work = bench.or_quick(30, 2);
    let mut figures = Vec::new();
    for (anew, rounds, since) in [
        (false, at_work, "at work"),
        (true, at_work / 2, "begun for each run"),
    ] {
        let mut seen: [TailResult; PROXIES.len()] = Default::default();
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..PROXIES.len()).collect();
            // Rotates the order in each round.
            order.rotate_left(round % PROXIES.len());
            for index in order {
                let fresh = anew.then(|| start(PROXIES[index])).transpose()?;
                let server = fresh.as_ref().unwrap_or(&begun[index]);
                seen[index].run(bench, server, &body, rate)?;
            }
        }
        figures.extend(figures_of(
            &seen,
            &format!("proxies {since}"),
            &format!("{rate:.0}/s"),
        ));
    }
    Ok(figures)
}

/// The gateway's tails compared with HAProxy's, round by round, because a stall of the machine makes one of them ten
/// times as long. Most stalls were a daemon of the kernel (`kdamond`) that occasionally takes a core for 4 to 15 ms,
/// from all proxies alike.
fn figures_of(seen: &[TailResult; PROXIES.len()], when: &str, rate: &str) -> [Figure; 4] {
    let figure = |name: &str, unit, values: fn(&TailResult) -> &[f64]| {
        let [ours, haproxy, nginx] = seen
            .each_ref()
            .map(|seen| Measure::median(values(seen), unit));
        Figure::new(format!("{name}, plain replies of 3.4 KB, {when}"), ours)
            .peer("HAProxy", haproxy)
            .peer("nginx", nginx)
            .remark(rate)
    };
    let rounds = seen[0].tail.iter().zip(&seen[1].tail);
    let no_longer = Share {
        hits: rounds
            .clone()
            .filter(|(ours, theirs)| ours <= theirs)
            .count() as u64,
        trials: rounds.len() as u64,
    };
    let (low, high) = no_longer.interval(0.95);
    let share = 100.0 * number(no_longer.hits) / number(no_longer.trials);
    let share = Measure::new(share, "%")
        .between(100.0 * low, 100.0 * high, Bounds::Interval95)
        .n(no_longer.trials);
    [
        figure("p99", "ms", |seen| &seen.tail),
        Figure::new(
            format!("rounds with a p99 not above HAProxy's, {when}"),
            share,
        )
        .target("half is within or below the interval", high >= 0.5)
        .remark(rate),
        figure("connections", "", |seen| &seen.connections).detail(),
        figure("share of the core", "%", |seen| &seen.busy).detail(),
    ]
}

impl TailResult {
    /// Runs an open loop against `server`.
    fn run(&mut self, bench: &Bench, server: &Server, body: &str, rate: f64) -> Outcome<()> {
        let rate = format!("{rate:.0}/s");
        let mut options = posts(body, bench.or_quick("2s", "500ms"));
        options.extend(["--rate", &rate]);
        let url = server.url("/BookLite.xml");
        let (report, used) = bench.served(server, &options, &url)?;
        let (ok, all) = (report.outcome("ok"), report.intended()?);
        check(ok == all, || {
            format!("{url}: not only ok: {}", report.outcomes())
        })?;
        self.tail.push(report.number("response_time_ms/p99")?);
        self.connections.push(report.number("connections")?);
        let took = number(all) / report.number("achieved_rate")?;
        self.busy.push(100.0 * used.as_secs_f64() / took);
        Ok(())
    }
}
