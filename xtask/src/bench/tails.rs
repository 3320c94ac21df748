//! How soon plain replies come through proxies at a load that they can bear, one at a time on the server's core: by those
//! that have been at work, and by those that have just begun and meet all their clients at once.

use posthaste_stats::Share;

use crate::bench::pinned::number;
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

/// Of the gateway's core.
const LOAD: f64 = 0.7;

/// Where the search for the rate begins that makes it so: the more come, the less each costs.
const BEGIN: f64 = 8000.0;
const TRIALS: usize = 3;

/// What one proxy showed, run by run: the 99th percentile in milliseconds, the connections its clients needed, and the
/// share of its core.
#[derive(Default)]
struct Seen {
    tail: Vec<f64>,
    connections: Vec<f64>,
    busy: Vec<f64>,
}

/// The 99th percentile where the gateway is 70 % busy.
pub(crate) fn tails(bench: &Bench) -> Outcome<Vec<Row>> {
    let origin = origin(bench)?;
    let start = |proxy: Proxy| proxy.start(&bench.site, &origin, false);
    let body = request(bench, "BookLite")?.display().to_string();
    let begun: Vec<Server> = PROXIES
        .into_iter()
        .map(|(proxy, _)| start(proxy))
        .collect::<Outcome<_>>()?;
    let mut rate = BEGIN;
    for _ in 0..TRIALS {
        let mut trial = Seen::default();
        trial.run(bench, &begun[0], &body, rate)?;
        rate *= LOAD / trial.busy[0];
    }

    let at_work = bench.or_quick(30, 2);
    let mut rows = Vec::new();
    for (anew, rounds, since) in [
        (false, at_work, "at work"),
        (true, at_work / 2, "begun for each run"),
    ] {
        let mut seen: [Seen; PROXIES.len()] = Default::default();
        for round in 0..rounds {
            let mut turn: Vec<usize> = (0..PROXIES.len()).collect();
            // Whoever came last comes first.
            turn.rotate_left(round % PROXIES.len());
            for place in turn {
                let fresh = anew.then(|| start(PROXIES[place].0)).transpose()?;
                let server = fresh.as_ref().unwrap_or(&begun[place]);
                seen[place].run(bench, server, &body, rate)?;
            }
        }
        rows.push(row(&seen, &format!("at {rate:.0}/s, proxies {since}")));
    }
    Ok(rows)
}

/// The gateway's tails beside HAProxy's, round by round: a stall of the machine makes one of them ten times as long.
fn row(seen: &[Seen; PROXIES.len()], when: &str) -> Row {
    let told = PROXIES
        .iter()
        .zip(seen)
        .map(|((_, name), seen)| seen.tell(name));
    let rounds = seen[0].tail.iter().zip(&seen[1].tail);
    let no_longer = Share {
        hits: rounds
            .clone()
            .filter(|(ours, theirs)| ours <= theirs)
            .count() as u64,
        trials: rounds.len() as u64,
    };
    let (low, high) = no_longer.interval(0.95);
    Row::judged(
        format!("p99 of plain replies of 3.4 KB {when}"),
        format!(
            "{}; the gateway's no longer than HAProxy's in {} of {} rounds ({:.0} to {:.0} %)",
            told.collect::<Vec<_>>().join("; "),
            no_longer.hits,
            no_longer.trials,
            low * 100.0,
            high * 100.0,
        ),
        "no longer than HAProxy's in half of the rounds, as far as they tell",
        high >= 0.5,
    )
}

impl Seen {
    /// An open loop against `server`.
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
        self.busy.push(used.as_secs_f64() / took);
        Ok(())
    }

    fn tell(&self, name: &str) -> String {
        let [tail, connections, busy] =
            [&self.tail, &self.connections, &self.busy].map(|values| median(values));
        format!(
            "{name} {tail:.1} ms, {connections:.0} connections, {:.0} % busy",
            busy * 100.0
        )
    }
}
