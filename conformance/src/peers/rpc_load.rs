//! `posthaste load --grpc` against a server of grpcio: the server's log of calls is the report's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::nginx::certificate;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Statuses that calls ask for, by row of the data.
const STATUSES: [(u32, &str); 8] = [
    (0, "OK"),
    (1, "CANCELLED"),
    (5, "NOT_FOUND"),
    (8, "RESOURCE_EXHAUSTED"),
    (12, "UNIMPLEMENTED"),
    (13, "INTERNAL"),
    (14, "UNAVAILABLE"),
    (16, "UNAUTHENTICATED"),
];

/// Calls of each run.
const PACE: [&str; 4] = ["--rate", "200/s", "--duration", "2s"];

/// Each kind of call, statuses, deadlines and metadata, plain and over TLS.
pub(crate) fn grpc_load(site: &Site) -> Outcome<()> {
    let folder = site.checkout.peer_folder("grpc-load")?;
    let certificate = certificate(site, &folder)?;
    let trusted = certificate.display().to_string();
    for tls in [None, Some(certificate)] {
        let server = LoggedServer::start(site, &folder, tls.as_ref())?;
        let url = match tls {
            None => format!("http://{}", server.server.address),
            Some(_) => format!("https://localhost:{}", server.server.address.port()),
        };
        let resolve = format!("localhost:{}:127.0.0.1", server.server.address.port());
        let mut common = vec![url.as_str(), "-H", "Tenant: blue", "--timeout", "20s"];
        if tls.is_some() {
            common.extend(["--ca", &trusted, "--resolve", &resolve]);
        }
        statuses(site, &server, &folder, &common)?;
        streams(site, &server, &common)?;
        deadlines(site, &server, &common)?;
    }
    Ok(())
}

/// Runs `load --grpc` with these words.
fn load(site: &Site, common: &[&str], method: &str, options: &[&str]) -> Outcome<LoadReport> {
    let method = format!("peer.v1.Log/{method}");
    site.load(
        &[common, &["--grpc", &method], &PACE, options].concat(),
        120,
    )
}

/// Every status: the report's counts are the log's, and each call has the deadline and the metadata of the plan.
fn statuses(
    site: &Site,
    server: &LoggedServer,
    folder: &std::path::Path,
    common: &[&str],
) -> Outcome<()> {
    let rows = STATUSES.map(|(number, name)| format!("{number},{name}\n"));
    let file = folder.join("statuses.csv");
    tools::write(&file, format!("status,text\n{}", rows.concat()))?;
    let file = file.display().to_string();
    let message = "{\"status\": {{status}}, \"text\": \"{{text}}\"}";
    let report = load(
        site,
        common,
        "Get",
        &["--message", message, "--data", &file],
    )?;
    let calls = server.calls("Get")?;
    let mut logged = BTreeMap::<String, u64>::new();
    for call in &calls {
        let status = call["status"].as_str().unwrap_or_default();
        *logged.entry(status.to_owned()).or_default() += 1;
        let remaining = call["remaining"].as_f64().unwrap_or_default();
        check((10.0..=20.5).contains(&remaining), || {
            format!("a deadline in {remaining} s")
        })?;
        check(call["tenant"] == "blue", || {
            format!("metadata of a call: {call}")
        })?;
        check(call["texts"][0] == call["status"], || {
            format!("message of a call: {call}")
        })?;
    }
    let ours = report.grpc_statuses();
    let counts = || format!("{ours:?} in the report, {logged:?} in the log");
    check(
        ours == logged && calls.len() as u64 == report.intended()?,
        counts,
    )?;
    let ok = logged.get("OK").copied().unwrap_or_default();
    report.expect("ok", ok)?;
    report.expect("grpc-error", report.intended()? - ok)?;
    println!("  statuses: {logged:?}");
    Ok(())
}

/// Streams of replies and of requests.
fn streams(site: &Site, server: &LoggedServer, common: &[&str]) -> Outcome<()> {
    let list = "{\"count\": 5, \"pause_ms\": 10}";
    let report = load(site, common, "List", &["--message", list])?;
    report.expect_all("ok")?;
    let intended = report.intended()?;
    check(server.calls("List")?.len() as u64 == intended, || {
        report.outcomes()
    })?;
    let events = report.number("events/count")?;
    check(events == 5.0 * intended as f64, || {
        format!("{events} events of {intended} calls")
    })?;
    let gap = report.number("events/gap_ms/p50")?;
    check((9.0..60.0).contains(&gap), || {
        format!("a median gap of {gap} ms")
    })?;
    // A stream that ends with an error after its messages.
    let failing = "{\"count\": 2, \"status\": 10}";
    let failed = load(site, common, "List", &["--message", failing])?;
    failed.expect_all("grpc-error")?;
    let lines = "{\"text\": \"a\"} {\"text\": \"b\"}\n{}";
    let collected = load(site, common, "Collect", &["--message", lines])?;
    collected.expect_all("ok")?;
    let calls = server.calls("Collect")?;
    check(calls.len() as u64 == collected.intended()?, || {
        collected.outcomes()
    })?;
    let is_whole = |call: &Value| call["texts"] == serde_json::json!(["a", "b", ""]);
    check(calls.iter().all(is_whole), || {
        format!("messages of a call: {}", calls[0])
    })?;
    let empty = load(site, common, "Collect", &["--message", "[]"])?;
    empty.expect_all("ok")
}

/// Calls that last longer than their deadline: each one ended here or there, none is ok.
fn deadlines<'w>(site: &Site, server: &LoggedServer, common: &[&'w str]) -> Outcome<()> {
    let before = server.calls("Get")?.len();
    let slow = "{\"pause_ms\": 700}";
    let shorter = |word: &&'w str| match *word {
        "20s" => "300ms",
        word => word,
    };
    let common: Vec<&str> = common.iter().map(shorter).collect();
    let options = ["--message", slow, "--rate", "20/s"];
    let method = ["--grpc", "peer.v1.Log/Get", "--duration", "2s"];
    let report = site.load(&[common.as_slice(), &method, &options].concat(), 120)?;
    let (ours, theirs) = (report.outcome("timed-out"), report.outcome("grpc-error"));
    check(ours + theirs == report.intended()?, || report.outcomes())?;
    let remaining = &server.calls("Get")?[before..];
    let is_short = |call: &Value| call["remaining"].as_f64().is_some_and(|left| left <= 0.31);
    check(
        !remaining.is_empty() && remaining.iter().all(is_short),
        || format!("deadlines of the log: {remaining:?}"),
    )?;
    println!("  deadlines: {ours} timed-out, {theirs} with a status of the server");
    Ok(())
}

/// A server of grpcio with its log.
struct LoggedServer {
    server: Server,
    log: PathBuf,
}

impl LoggedServer {
    fn start(site: &Site, folder: &std::path::Path, tls: Option<&PathBuf>) -> Outcome<Self> {
        let python = tools::python(
            &site.checkout,
            "grpc-load",
            "conformance/programs/grpc-load/requirements.txt",
        )?;
        let log = folder.join(if tls.is_some() {
            "calls-tls.jsonl"
        } else {
            "calls.jsonl"
        });
        tools::write(&log, "")?;
        let address = free_address()?;
        let mut command = Command::new(python);
        command
            .arg(
                site.checkout
                    .path("conformance/programs/grpc-load/server.py"),
            )
            .arg(address.to_string())
            .arg(&log);
        if let Some(certificate) = tls {
            command
                .arg(certificate)
                .arg(certificate.with_file_name("key.pem"));
        }
        let server = site.serve("grpc-load", &mut command, address)?;
        Ok(Self { server, log })
    }

    /// The logged calls of a method.
    fn calls(&self, method: &str) -> Outcome<Vec<Value>> {
        let text = std::fs::read_to_string(&self.log);
        let text = text.map_err(|error| TaskError::at(&self.log, error))?;
        let mut calls = Vec::new();
        for line in text.lines() {
            let call: Value = serde_json::from_str(line)
                .map_err(|error| TaskError::Failed(format!("{error} in {line}")))?;
            if call["method"] == method {
                calls.push(call);
            }
        }
        Ok(calls)
    }
}
