//! The demo in a real browser.

use std::process::Command;

use crate::error::Outcome;
use crate::site::{Site, free_address};
use crate::tools;

/// Debian's chromium opens the page, moves a slider by keyboard and sees the system change.
pub(crate) fn browser(site: &Site) -> Outcome<()> {
    let folder = tools::node(&site.checkout, "demo", "conformance/programs/demo")?;
    let chromium = tools::debian(&site.checkout, "chromium", "chromium")?;
    let address = free_address()?;
    let mut serve = Command::new(&site.binary);
    serve.args(["demo", "--listen", &address.to_string()]);
    let demo = site.serve("demo", &mut serve, address)?;
    // Next to its modules, where node searches for them.
    let script = folder.join("client.js");
    tools::copy(
        &site.checkout.path("conformance/programs/demo/client.js"),
        &script,
    )?;
    let mut visit = Command::new("node");
    visit.arg(script).arg(demo.url("/")).arg(chromium);
    let done = site.run("browser", &mut visit, 400)?;
    for line in done.stdout.lines() {
        println!("  browser: {line}");
    }
    Ok(())
}
