//! Cost of a request over HTTP/3 compared with oha: each client alone on a core, ngtcp2's server on the other.

use std::process::Command;

use serde_json::Value;

use crate::bench::pinned::{micros, number};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio};
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::nginx::certificate;
use crate::site::{Server, free_udp_address};
use crate::tools;

/// Highest permitted ratio to oha's CPU time.
const BAR: f64 = 0.7;

/// Version of oha. It uses quinn, the QUIC of our client, and the crate `h3`.
const OHA: &str = "1.16.0";

/// Connections, concurrent requests on each, the name in the table, and whether the bar holds for it.
const SHAPES: [(&str, &str, &str, bool); 2] =
    [("1", "32", "1 x 32", true), ("50", "1", "50 x 1", false)];

/// CPU time per completed request of 1 KB in a closed loop.
pub(crate) fn cpu(bench: &Bench) -> Outcome<Vec<Figure>> {
    let checkout = &bench.site.checkout;
    let oha = tools::cargo_optimised(checkout, "oha", OHA, "rustls,http3")?;
    let oha = oha.display().to_string();
    let server = gtlsserver(bench)?;
    let url = format!("https://{}/1k", server.address);
    let mut figures = Vec::new();
    for (connections, streams, shape, has_bar) in SHAPES {
        let turns = bench.or_quick(5, 2);
        let [theirs, ours] = in_turns(
            turns,
            [
                &mut || of_oha(bench, &oha, [connections, streams], &url),
                &mut || of_posthaste(bench, [connections, streams], &url),
            ],
        )?;
        let ratio = pair_ratio(&ours, &theirs);
        let figure = Figure::new(
            format!("CPU per request over HTTP/3, {shape}"),
            Measure::median(&ours, "µs"),
        )
        .paired("oha", Measure::median(&theirs, "µs"), ratio);
        figures.push(if has_bar {
            figure.target(format!("at most {BAR:.2} of oha's"), ratio <= BAR)
        } else {
            figure
        });
    }
    Ok(figures)
}

/// Microseconds of `posthaste load` per request.
fn of_posthaste(bench: &Bench, [connections, streams]: [&str; 2], url: &str) -> Outcome<f64> {
    let clients = (number_of(connections) * number_of(streams)).to_string();
    let duration = bench.or_quick("5s", "1s");
    let pace = ["--clients", &clients, "--duration", duration, "--insecure"];
    let protocol = ["--http", "3", "--connections", connections];
    let report = bench.load(url, &[pace.as_slice(), &protocol].concat(), 60)?;
    let (ok, all) = (report.outcome("ok"), report.intended()?);
    // At the end of a closed loop, each client may be in the middle of a request.
    check(ok > 0 && ok + report.outcome("in-flight") == all, || {
        format!("not only ok: {}", report.outcomes())
    })?;
    Ok(micros(report.finished.cpu) / number(ok))
}

/// Microseconds of oha per request.
fn of_oha(bench: &Bench, oha: &str, [connections, streams]: [&str; 2], url: &str) -> Outcome<f64> {
    let duration = bench.or_quick("5s", "1s");
    let protocol = ["--http-version", "3", "--insecure"];
    let load = ["-c", connections, "-p", streams, "-z", duration];
    let form = ["--no-tui", "--output-format", "json", url];
    let line = [generator(), &[oha], &protocol, &load, &form].concat();
    let mut command = Command::new(line[0]);
    let done = bench.site.run("oha", command.args(&line[1..]), 60)?;
    Ok(micros(done.cpu) / succeeded(&done.stdout)?)
}

fn number_of(text: &str) -> u32 {
    text.parse().expect("a number of the table")
}

/// Number of replies with status 200 in oha's JSON.
fn succeeded(json: &str) -> Outcome<f64> {
    let report: Value = serde_json::from_str(json)
        .map_err(|error| TaskError::Failed(format!("oha's JSON: {error} in:\n{json}")))?;
    report["statusCodeDistribution"]["200"]
        .as_f64()
        .ok_or_else(|| TaskError::Failed(format!("oha had no reply:\n{json}")))
}

/// ngtcp2's server with a page of 1,024 bytes, on the server's core. oha does not close its connections and ends when
/// the server has, so the idle timeout is short.
fn gtlsserver(bench: &Bench) -> Outcome<Server> {
    let site = &bench.site;
    let program = tools::debian(&site.checkout, "gtlsserver", "ngtcp2-server")?;
    let folder = site.checkout.peer_folder("http3-bench")?;
    let pages = folder.join("pages");
    std::fs::create_dir_all(&pages).map_err(|error| TaskError::at(&pages, error))?;
    tools::write(&pages.join("1k"), [b'x'; 1_024])?;
    certificate(site, &folder)?;
    let address = free_udp_address()?;
    let (program, port) = (program.display().to_string(), address.port().to_string());
    let own = [
        program.as_str(),
        "--quiet",
        "--timeout=2s",
        "--htdocs=pages",
    ];
    let listen = ["127.0.0.1", &port, "key.pem", "certificate.pem"];
    let line = [server(), &own, &listen].concat();
    let mut command = Command::new(line[0]);
    site.serve_quic(
        "gtlsserver",
        command.args(&line[1..]).current_dir(&folder),
        address,
    )
}
