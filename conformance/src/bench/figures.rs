//! Targets defined by figures of a study: its claims are the targets, its numbers the details.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, TaskError};

/// Time limit for all figures together, in seconds.
const PATIENCE: u64 = 3600;

/// Reproduces `figures` with these variables in the environment.
pub(crate) fn claims(
    bench: &Bench,
    figures: &[&str],
    variables: &[(&str, &str)],
) -> Outcome<Vec<Figure>> {
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
    // It fails if a check of the instrument does.
    bench.site.run("reproduce", &mut command, PATIENCE)?;
    let mut all = Vec::new();
    for figure in figures {
        for (name, read) in [
            ("checks.json", judged as Reader),
            ("manifest.json", numbers),
        ] {
            let file = out.join(figure).join(name);
            let text = fs::read_to_string(&file).map_err(|error| TaskError::at(&file, error))?;
            all.extend(read(figure, &text).map_err(|error| TaskError::at(&file, error))?);
        }
    }
    Ok(all)
}

/// Reads a file of a figure of this name.
type Reader = fn(&str, &str) -> Result<Vec<Figure>, String>;

/// The claims in a figure's `checks.json`. A figure without claims has no target.
fn judged(figure: &str, checks: &str) -> Result<Vec<Figure>, String> {
    let checks: Vec<Value> = serde_json::from_str(checks).map_err(|error| error.to_string())?;
    let asserted = checks.iter().filter(|check| check["kind"] != "instrument");
    let claims = asserted.map(|check| {
        let sentence = check["sentence"].as_str().unwrap_or_default();
        Figure::sentence(format!("{figure}: {sentence}"))
            .target("as stated", check["holds"] == true)
    });
    let claims: Vec<Figure> = claims.collect();
    if claims.is_empty() {
        Err("there is no claim in it".to_owned())
    } else {
        Ok(claims)
    }
}

/// The numbers in a figure's `manifest.json`. Their names contain the units.
fn numbers(figure: &str, manifest: &str) -> Result<Vec<Figure>, String> {
    let manifest: Value = serde_json::from_str(manifest).map_err(|error| error.to_string())?;
    let numbers = manifest["numbers"].as_object().into_iter().flatten();
    let numbers = numbers.filter_map(|(name, number)| {
        let measure = Measure::new(number.as_f64()?, "");
        Some(Figure::new(format!("{figure}: {name}"), measure).detail())
    });
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::{judged, numbers};

    #[test]
    fn numbers_of_a_figure_are_details() {
        let manifest = r#"{"figure":"a/1","numbers":{"p99_ms":9.4,"unknown":null}}"#;
        let figures = numbers("a/1", manifest).expect("it is JSON");
        assert_eq!(figures.len(), 1);
        assert_eq!(figures[0].name, "a/1: p99_ms");
        assert!(figures[0].detail);
    }

    #[test]
    fn a_figure_without_a_claim_holds_no_target() {
        let check = |kind: &str| format!(r#"[{{"kind":"{kind}","sentence":"so","holds":true}}]"#);
        assert_eq!(
            judged("a/1", &check("claim")).map(|figures| figures.len()),
            Ok(1)
        );
        for none in ["[]", &check("instrument")] {
            assert!(judged("a/1", none).is_err(), "{none}");
        }
    }
}
