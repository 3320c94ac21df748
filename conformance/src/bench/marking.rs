//! The gateway's cost of marking replies: requests for a mark, through a gateway that marks and through one that does
//! not, in turns.

use std::fs;

use crate::bench::proxies::{BenchProxy, calls, origin, request};
use crate::bench::result::Bounds;
use crate::bench::{Bench, Figure, Measure, in_turns, median};
use crate::error::{Outcome, TaskError};
use crate::site::Server;
use crate::tools;

/// SOAP header block that requests the throughput class (docs/reference/gateway.md).
const HEADER: &str = "<s:Header><q:WSQoSSoapHeader xmlns:q=\"http://wsqos.org/\"><qosInfo>\
     <transportQoSPriorities><throughput>0</throughput></transportQoSPriorities></qosInfo>\
     </q:WSQoSSoapHeader></s:Header>";

/// Ratio of CPU time per request, with marks to without, on kept and on new connections.
pub(crate) fn marking(bench: &Bench) -> Outcome<Vec<Figure>> {
    let origin = origin(bench)?;
    let plain = BenchProxy::Gateway.start(&bench.site, &origin, false)?;
    let marks = BenchProxy::Marking.start(&bench.site, &origin, false)?;
    let body = asking(bench)?;
    let mut figures = Vec::new();
    for connection in ["keep-alive", "new"] {
        let cost = |server: &Server| {
            let mut options = calls(&body, bench.or_quick("1s", "300ms"));
            options.extend(["--connection", connection]);
            let url = server.url("/BookLite.xml");
            Ok(bench.server_cost(server, &options, &url)?.0)
        };
        let [without, with] = in_turns(
            bench.or_quick(40, 2),
            [&mut || cost(&plain), &mut || cost(&marks)],
        )?;
        let mut ratios: Vec<f64> = without.iter().zip(&with).map(|(a, b)| b / a).collect();
        let ratio = median(&ratios);
        ratios.sort_by(f64::total_cmp);
        let quarter = ratios.len() / 4;
        let [low, high] = [ratios[quarter], ratios[ratios.len() - 1 - quarter]];
        let name = format!("CPU per request that asks for a mark, {connection} connections");
        figures.extend([
            Figure::new(&name, Measure::median(&with, "µs"))
                .paired("without marks", Measure::median(&without, "µs"), ratio)
                .target(
                    "at most 1.031 times: 97 % of the throughput",
                    ratio <= 1.0 / 0.97,
                ),
            Figure::new(
                format!("{name}: ratio of pairs"),
                Measure::new(ratio, "")
                    .between(low, high, Bounds::MiddleHalf)
                    .n(ratios.len() as u64),
            )
            .detail(),
        ]);
    }
    Ok(figures)
}

/// The request for a page, with the header that asks for a mark.
fn asking(bench: &Bench) -> Outcome<String> {
    let plain = request(bench, "BookLite")?;
    let text = fs::read_to_string(&plain).map_err(|error| TaskError::at(&plain, error))?;
    let file = plain.with_file_name("asking-request.xml");
    let body = "<s:Body>";
    tools::write(&file, text.replacen(body, &format!("{HEADER}{body}"), 1))?;
    Ok(file.display().to_string())
}
