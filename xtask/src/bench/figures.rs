//! Bars that figures hold: the study measures, and the claims of its figures are the rows.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, Row};
use crate::trouble::{Outcome, Trouble};

/// How long they may take together, in seconds.
const PATIENCE: u64 = 3600;

/// Reproduces `figures` with these variables in the environment.
pub(crate) fn claims(
    bench: &Bench,
    figures: &[&str],
    variables: &[(&str, &str)],
) -> Outcome<Vec<Row>> {
    let out = bench.site.checkout.peer_folder("figures")?;
    let mut command = Command::new(&bench.site.binary);
    command
        .arg("reproduce")
        .args(figures)
        .arg("--out")
        .arg(&out);
    command.envs(variables.iter().copied());
    if !bench.quick {
        command.arg("--full");
    }
    // It fails where a check of the instrument does.
    bench.site.run("reproduce", &mut command, PATIENCE)?;
    let mut rows = Vec::new();
    for figure in figures {
        let file = out.join(figure).join("checks.json");
        let text = fs::read_to_string(&file).map_err(|error| Trouble::at(&file, error))?;
        let checks: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| Trouble::at(&file, error))?;
        for check in checks.iter().filter(|check| check["kind"] == "claim") {
            let sentence = check["sentence"].as_str().unwrap_or_default();
            let holds = check["holds"] == true;
            rows.push(Row::judged(*figure, sentence, "as it says", holds));
        }
    }
    Ok(rows)
}
