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
        rows.extend(judged(figure, &text).map_err(|error| Trouble::at(&file, error))?);
    }
    Ok(rows)
}

/// The claims in a figure's `checks.json`; one that claims nothing holds no bar.
fn judged(figure: &str, checks: &str) -> Result<Vec<Row>, String> {
    let checks: Vec<Value> = serde_json::from_str(checks).map_err(|error| error.to_string())?;
    let claims = checks.iter().filter(|check| check["kind"] == "claim");
    let rows = claims.map(|check| {
        let sentence = check["sentence"].as_str().unwrap_or_default();
        Row::judged(figure, sentence, "as it says", check["holds"] == true)
    });
    let rows: Vec<Row> = rows.collect();
    match rows.is_empty() {
        true => Err("there is no claim in it".to_owned()),
        false => Ok(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::judged;

    #[test]
    fn a_figure_without_a_claim_holds_no_bar() {
        let check = |kind: &str| format!(r#"[{{"kind":"{kind}","sentence":"so","holds":true}}]"#);
        assert_eq!(judged("a/1", &check("claim")).map(|rows| rows.len()), Ok(1));
        for none in ["[]", &check("instrument")] {
            assert!(judged("a/1", none).is_err(), "{none}");
        }
    }
}
