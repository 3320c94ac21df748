//! The common start of two agents, as the service sees it.

use super::surroundings::{LoggedRequest, LoggingService, NatsServer, of_agent, rows};
use crate::bench::{Bench, Figure, Measure, quantile};
use crate::cores::real_time;
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;

/// Highest permitted skew of the first requests in ms, at p50 and at p90.
const BARS: [(&str, f64, f64); 2] = [("p50", 0.5, 0.3), ("p90", 0.9, 1.0)];
/// Requests of a run, one each 5 ms.
const REQUESTS: usize = 100;
/// The pace of these requests.
const PACE: [&str; 4] = ["--rate", "200/s", "--duration", "500ms"];
/// Interval of two requests in ms.
const INTERVAL: f64 = 5.0;

/// Skew of one start, in ms.
struct StartSkew {
    /// Between the first requests of the two agents.
    first: f64,
    /// Between the two origins: each is seen by the request with the least delay.
    origins: f64,
    /// Bound of the reported errors of both clocks.
    bound: f64,
}

/// Differences between the starts of two agents.
pub(in crate::bench) fn start(bench: &Bench) -> Outcome<Vec<Figure>> {
    let site = &bench.site;
    let nats = NatsServer::start(site)?;
    let mut service = LoggingService::start(site, "start")?;
    let rows = rows(site, REQUESTS as u64)?;
    let agent = |name| nats.agent(real_time(), "start", name);
    let _agents = [agent("a")?, agent("b")?];
    let mut skews = Vec::new();
    for _ in 0..bench.or_quick(50, 3) {
        let options = [PACE.as_slice(), &["--agents", "2"]].concat();
        let report = nats.load(&service, &rows, "start", &options)?.finish(60)?;
        report.expect_all("ok")?;
        skews.push(skew(&report, &service.take()?)?);
    }
    let values = |figure: fn(&StartSkew) -> f64| skews.iter().map(figure).collect::<Vec<_>>();
    let (first, origins) = (values(|one| one.first), values(|one| one.origins));
    let mut figures = Vec::new();
    for (name, share, bar) in BARS {
        let value = quantile(&first, share);
        let measure = Measure::new(value, "ms").n(first.len() as u64);
        figures.push(
            Figure::new(
                format!("between the first requests of two agents, {name}"),
                measure,
            )
            .target(format!("at most {bar} ms"), value <= bar),
        );
    }
    let within = skews.iter().filter(|one| one.origins <= one.bound).count() as u64;
    let starts = skews.len() as u64;
    figures.extend([
        Figure::new(
            "starts within the reported bound of both clocks",
            Measure::part(within, starts, "starts"),
        )
        .target("all", within == starts),
        Figure::new(
            "between the origins of two agents",
            Measure::median(&origins, "ms"),
        ),
        Figure::new(
            "reported bound of both clocks",
            Measure::median(&values(|one| one.bound), "ms"),
        ),
        Figure::new(
            "between the first requests of two agents",
            Measure::median(&first, "ms"),
        )
        .detail(),
    ]);
    Ok(figures)
}

/// The skew of a run with one loop per agent: agent a has the even numbers.
fn skew(report: &LoadReport, requests: &[LoggedRequest]) -> Outcome<StartSkew> {
    check(requests.len() == REQUESTS, || {
        format!("{} requests in the log, and not {REQUESTS}", requests.len())
    })?;
    let begin = requests
        .iter()
        .map(|request| request.at)
        .min()
        .unwrap_or_default();
    let delays = |agent: usize| {
        let its = requests
            .iter()
            .filter(move |request| request.number % 2 == agent);
        its.map(move |request| {
            let at = (request.at - begin) as f64 / 1e6;
            (request.number, at - request.number as f64 * INTERVAL)
        })
    };
    let first = |agent: usize| {
        let first = delays(agent).find(|(number, _)| *number == agent);
        let delay = first.map(|(_, delay)| delay);
        delay.ok_or_else(|| TaskError::Failed(format!("request {agent} is not in the log")))
    };
    let least = |agent: usize| {
        delays(agent)
            .map(|(_, delay)| delay)
            .fold(f64::MAX, f64::min)
    };
    let bound = |agent: usize| of_agent(report, agent, "clock_bound_ms");
    Ok(StartSkew {
        first: (first(0)? - first(1)?).abs(),
        origins: (least(0) - least(1)).abs(),
        bound: bound(0)? + bound(1)?,
    })
}
