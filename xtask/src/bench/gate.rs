//! What was asked of the gateway under load, by the study that measures it: its checks are the rows.
//!
//! The study has a generator and an origin of its own, cheap enough that they do not give way before the
//! proxies do, and starts HAProxy and nginx itself.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, Row};
use crate::tools;
use crate::trouble::{Outcome, Trouble};

/// The figures that hold the bars, and how long both may take, in seconds.
const FIGURES: [&str; 2] = ["wsqos/promises-2026", "wsqos/policies-2026"];
const PATIENCE: u64 = 3600;

/// Beyond HAProxy's limit, at saturation, at ease; and the share compressed against load.
pub(crate) fn gate(bench: &Bench) -> Outcome<Vec<Row>> {
    let checkout = &bench.site.checkout;
    for (program, package) in [("haproxy", "haproxy"), ("nginx", "nginx-light")] {
        tools::debian(checkout, program, package)?;
    }
    let out = checkout.peer_folder("gate")?;
    let mut command = Command::new(&bench.site.binary);
    command
        .arg("reproduce")
        .args(FIGURES)
        .arg("--out")
        .arg(&out);
    if !bench.quick {
        command.arg("--full");
    }
    bench.site.run("reproduce", &mut command, PATIENCE)?;
    let mut rows = Vec::new();
    for figure in FIGURES {
        let file = out.join(figure).join("checks.json");
        let text = fs::read_to_string(&file).map_err(|error| Trouble::at(&file, error))?;
        let checks: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| Trouble::at(&file, error))?;
        for check in checks.iter().filter(|check| check["kind"] == "claim") {
            let sentence = check["sentence"].as_str().unwrap_or_default();
            let holds = check["holds"] == true;
            rows.push(Row::judged(figure, sentence, "as it says", holds));
        }
    }
    Ok(rows)
}
