//! Costs of the generator itself: CPU, memory, and the time until a newcomer's first results.

use std::process::Command;
use std::time::Duration;

use crate::bench::pinned::{micros, number};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio, streams};
use crate::checkout::cargo;
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::nginx::Nginx;
use crate::process;
use crate::site::Server;
use crate::tools;

/// CPU time per completed request, 50 connections, 1 KB from one nginx worker.
pub(crate) fn cpu(bench: &Bench) -> Outcome<Vec<Figure>> {
    let wrk = tools::debian(&bench.site.checkout, "wrk", "wrk")?
        .display()
        .to_string();
    let nginx = Nginx::start(&bench.site, "nginx-bench", false, server())?;
    let url = nginx.server.url("/1k");
    let length = bench.or_quick("5s", "1s");
    let mut figures = Vec::new();
    for (connection, header) in [
        ("keep-alive", "Connection: keep-alive"),
        ("new", "Connection: close"),
    ] {
        let duration = format!("-d{length}");
        let mut theirs = || {
            let own = [wrk.as_str(), "-t1", "-c50", &duration, "-H", header, &url];
            let line = [generator(), &own].concat();
            let done = bench
                .site
                .run("wrk", Command::new(line[0]).args(&line[1..]), 60)?;
            Ok(micros(done.cpu) / requests(&done.stdout)?)
        };
        let mut ours = || {
            let options = [
                "--clients",
                "50",
                "--duration",
                length,
                "--connection",
                connection,
            ];
            let report = bench.load(&url, &options, 60)?;
            Ok(micros(report.finished.cpu) / number(report.outcome("ok")))
        };
        let [theirs, ours] = in_turns(bench.or_quick(9, 2), [&mut theirs, &mut ours])?;
        let ratio = pair_ratio(&ours, &theirs);
        let name = format!("CPU per request, {connection}");
        figures.push(
            Figure::new(name, Measure::median(&ours, "µs"))
                .paired("wrk", Measure::median(&theirs, "µs"), ratio)
                .target("at most 0.90 of wrk's", ratio <= 0.9),
        );
    }
    Ok(figures)
}

/// Returns the number of completed requests that wrk reports.
fn requests(output: &str) -> Outcome<f64> {
    output
        .lines()
        .find_map(|line| line.split_once(" requests in ")?.0.trim().parse().ok())
        .ok_or_else(|| TaskError::Failed(format!("wrk did not say how many requests:\n{output}")))
}

/// Peak resident memory after about one and about five million requests, by version of HTTP.
pub(crate) fn memory(bench: &Bench) -> Outcome<Vec<Figure>> {
    let nginx = Nginx::start(&bench.site, "nginx-bench", false, server())?;
    let mut figures = peak(bench, "HTTP/1", &nginx.server, &[])?;
    drop(nginx);
    let nghttpd = streams::nghttpd(bench, false)?;
    figures.extend(peak(bench, "HTTP/2", &nghttpd, &["--http", "2"])?);
    Ok(figures)
}

/// Peak memory of runs of two lengths.
fn peak(bench: &Bench, version: &str, server: &Server, protocol: &[&str]) -> Outcome<Vec<Figure>> {
    let url = server.url("/1k");
    let mut figures = Vec::new();
    for length in bench.or_quick(["15s", "75s"], ["1s", "5s"]) {
        let pace = ["--clients", "50", "--duration", length];
        let report = bench.load(&url, &[&pace[..], protocol].concat(), 120)?;
        let peak = number(report.finished.peak_kib) / 1024.0;
        let done = report.outcome("ok");
        check(done > 0, || {
            format!("nothing was ok: {}", report.outcomes())
        })?;
        figures.push(
            Figure::new(
                format!("peak memory after {length} in a closed loop, {version}"),
                Measure::new(peak, "MiB"),
            )
            .target("under 32 MB", peak * 1.048_576 < 32.0)
            .remark(format!("{:.2} million requests", number(done) / 1e6)),
        );
    }
    Ok(figures)
}

/// A fresh clone, `cargo build --release`, then the core selection. Crates come from cargo's cache.
pub(crate) fn newcomer(bench: &Bench) -> Outcome<Vec<Figure>> {
    let checkout = &bench.site.checkout;
    let folder = checkout.peer_folder("newcomer")?;
    std::fs::remove_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
    let mut clone = Command::new("git");
    clone
        .args(["clone", "--quiet", "--local"])
        .arg(checkout.root())
        .arg(&folder);
    bench.site.run("git", &mut clone, 60)?;
    let in_clone = |arguments: &[&str], seconds: u64| {
        let mut command = cargo(checkout);
        command
            .args(arguments)
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", folder.join("target"));
        process::run(
            "cargo",
            &mut command,
            Duration::from_secs(seconds),
            &bench.site.logs,
        )?
        .succeeded("cargo")
        .map(|done| done.wall.as_secs_f64())
    };
    let build = in_clone(&["build", "--release"], 1200)?;
    let core = ["run", "--release", "--", "reproduce"];
    let study = in_clone(&core, 900)?;
    Ok(vec![
        Figure::new("cold release build", Measure::new(build, "s"))
            .target("at most 240 s", build <= 240.0),
        Figure::new("the core selection of figures", Measure::new(study, "s"))
            .target("at most 180 s", study <= 180.0),
    ])
}
