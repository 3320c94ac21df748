//! Cost of a request over HTTP/2 compared with h2load: each client alone on a core, nghttpd on the other.

use std::process::Command;

use crate::bench::pinned::{micros, number};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio};
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError};
use crate::nginx::certificate;
use crate::site::{Server, free_address};
use crate::tools;

/// Highest permitted ratio to h2load's CPU time.
const BAR: f64 = 0.85;

/// Connections, concurrent requests on each, and the name in the table.
const SHAPES: [(&str, &str, &str); 2] = [("1", "32", "1 x 32"), ("50", "1", "50 x 1")];

/// CPU time per completed request of 1 KB in a closed loop.
pub(crate) fn cpu(bench: &Bench) -> Outcome<Vec<Figure>> {
    let h2load = tools::debian(&bench.site.checkout, "h2load", "nghttp2-client")?;
    let h2load = h2load.display().to_string();
    let length = bench.or_quick("5", "1");
    let mut figures = Vec::new();
    for is_secure in [false, true] {
        let server = nghttpd(bench, is_secure)?;
        let (scheme, transport) = if is_secure {
            ("https", "TLS")
        } else {
            ("http", "cleartext")
        };
        let url = format!("{scheme}://{}/1k", server.address);
        for (connections, streams, shape) in SHAPES {
            let mut theirs = || {
                let own = [
                    h2load.as_str(),
                    "-c",
                    connections,
                    "-m",
                    streams,
                    "-D",
                    length,
                    &url,
                ];
                let line = [generator(), &own].concat();
                let mut command = Command::new(line[0]);
                let done = bench.site.run("h2load", command.args(&line[1..]), 60)?;
                Ok(micros(done.cpu) / succeeded(&done.stdout)?)
            };
            let clients = number_of(connections) * number_of(streams);
            let clients = clients.to_string();
            let duration = format!("{length}s");
            let mut ours = || {
                let pace = ["--clients", &clients, "--duration", &duration, "--insecure"];
                let protocol = ["--http", "2", "--connections", connections];
                let report = bench.load(&url, &[pace.as_slice(), &protocol].concat(), 60)?;
                Ok(micros(report.finished.cpu) / number(report.outcome("ok")))
            };
            let [theirs, ours] = in_turns(bench.or_quick(7, 2), [&mut theirs, &mut ours])?;
            let ratio = pair_ratio(&ours, &theirs);
            let name = format!("CPU per request, {transport}, {shape}");
            figures.push(
                Figure::new(name, Measure::median(&ours, "µs"))
                    .paired("h2load", Measure::median(&theirs, "µs"), ratio)
                    .target(format!("at most {BAR:.2} of h2load's"), ratio <= BAR),
            );
        }
    }
    Ok(figures)
}

fn number_of(text: &str) -> u32 {
    text.parse().expect("a number of the table")
}

/// The number of requests that h2load reports as succeeded.
fn succeeded(output: &str) -> Outcome<f64> {
    let count = output
        .split(" succeeded")
        .next()
        .and_then(|text| text.rsplit(' ').next());
    let count = count.and_then(|text| text.parse().ok());
    count.ok_or_else(|| {
        TaskError::Failed(format!("h2load did not say how many succeeded:\n{output}"))
    })
}

/// nghttpd with a page of 1,024 bytes, on the server's core.
pub(crate) fn nghttpd(bench: &Bench, is_secure: bool) -> Outcome<Server> {
    let site = &bench.site;
    let program = tools::debian(&site.checkout, "nghttpd", "nghttp2-server")?;
    let folder = site.checkout.peer_folder("streams-bench")?;
    let pages = folder.join("pages");
    std::fs::create_dir_all(&pages).map_err(|error| TaskError::at(&pages, error))?;
    tools::write(&pages.join("1k"), [b'x'; 1_024])?;
    let address = free_address()?;
    let (program, port) = (program.display().to_string(), address.port().to_string());
    let own = [program.as_str(), "--address=127.0.0.1", "--htdocs=pages"];
    let certificate = certificate(site, &folder)?.display().to_string();
    let security: &[&str] = if is_secure {
        &[&port, "key.pem", &certificate]
    } else {
        &["--no-tls", &port]
    };
    let line = [server(), &own, security].concat();
    let mut command = Command::new(line[0]);
    site.serve(
        "nghttpd",
        command.args(&line[1..]).current_dir(&folder),
        address,
    )
}
