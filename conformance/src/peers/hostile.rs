//! A server with nonsense answers. `load` names each kind and continues.

use crate::error::{Outcome, TaskError};
use crate::site::Site;

/// Behaviours of the server, with the outcome of each.
const KINDS: &[(&str, &str)] = &[
    ("noise", "protocol-error"),
    ("short", "protocol-error"),
    ("two-lengths", "protocol-error"),
    ("negative-length", "protocol-error"),
    ("chunks", "protocol-error"),
    ("huge-chunk", "protocol-error"),
    ("status", "protocol-error"),
    ("endless-header", "protocol-error"),
    ("nothing", "reset"),
    ("reset", "reset"),
    ("silent", "timed-out"),
];

/// Every kind, with a connection per request and with persistent ones.
pub(crate) fn garbage(site: &Site) -> Outcome<()> {
    let server = site.script("garbage", "conformance/programs/garbage/server.py")?;
    let mut wrong = Vec::new();
    for connection in ["new", "keep-alive"] {
        for (kind, outcome) in KINDS {
            let url = server.url(&format!("/{kind}"));
            let options = [
                "--rate",
                "20/s",
                "--duration",
                "500ms",
                "--timeout",
                "400ms",
            ];
            let arguments: Vec<&str> = [url.as_str(), "--connection", connection]
                .into_iter()
                .chain(options)
                .collect();
            let report = site.load(&arguments, 30)?;
            if let Err(error) = report.expect_all(outcome) {
                wrong.push(format!("{kind}, {connection}: {error}"));
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(TaskError::Failed(wrong.join("\n")))
    }
}
