//! OpenTelemetry for Python as client, upstream and collector of the gateway: one distributed trace with all its trace
//! spans.

use std::process::Command;

use super::start;
use crate::error::Outcome;
use crate::site::{Site, free_address};
use crate::tools;

/// The client decides about tracing. The upstream and the collector see the same distributed trace.
pub(crate) fn traces(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "traces",
        "conformance/programs/traces/requirements.txt",
    )?;
    let [upstream, collector] = [free_address()?, free_address()?].map(|at| at.to_string());
    let traces = format!("[traces]\ncollector = \"http://{collector}/v1/traces\"\nshare = \"0%\"");
    let gateway = start(site, &upstream, &traces, "")?;
    let mut client = Command::new(python);
    client
        .arg(site.checkout.path("conformance/programs/traces/client.py"))
        .args([&gateway.url(""), &upstream, &collector]);
    let done = site.run("traces", &mut client, 120)?;
    for line in done.stdout.lines() {
        println!("  traces: {line}");
    }
    Ok(())
}
