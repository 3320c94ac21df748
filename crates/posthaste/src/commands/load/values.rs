//! Values of `posthaste load` with a syntax of their own.

use std::path::Path;

use posthaste_load::RateStep;
use posthaste_soap::Version;
use posthaste_units::{Rate, Ratio, Span};

pub(super) fn soap_version(text: &str) -> Result<Version, String> {
    match text {
        "1.1" => Ok(Version::Soap11),
        "1.2" => Ok(Version::Soap12),
        _ => Err("write 1.1 or 1.2".to_owned()),
    }
}

pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("write a number from 1 to 1024".to_owned()),
    }
}

pub(super) fn user(text: &str) -> Result<String, String> {
    if text.contains(':') {
        Ok(text.to_owned())
    } else {
        Err("write NAME:PASSWORD".to_owned())
    }
}

pub(super) fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err("write a number from 1".to_owned()),
    }
}

/// Kinds of arrivals that `--arrivals` accepts by name. Everything else is a file.
const ARRIVALS: [&str; 2] = ["constant", "poisson"];

/// Similarity (Jaro-Winkler, 1 for equal) above which a word counts as a mistyped kind of arrivals. Examples: `const`
/// and `constant` 0.92, `poison` and `poisson` 0.97, `trace` and `constant` 0.57.
const ALIKE: f64 = 0.8;

/// Returns an error for a mistyped kind in `--arrivals`: a word without separator and point that is similar to a kind,
/// if no file has that name.
pub(super) fn mistyped_arrivals(text: &str) -> Option<String> {
    if ARRIVALS.contains(&text) || text.contains(['/', '.']) || Path::new(text).exists() {
        return None;
    }
    let word = text.to_lowercase();
    let likeness = |kind: &str| strsim::jaro_winkler(&word, kind);
    let nearest = ARRIVALS
        .into_iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) >= ALIKE).then(|| {
        format!(
            "{text:?} is no kind of arrivals (did you mean {nearest}?), and there is no file of that name: \
             --arrivals takes constant, poisson, or a file with one time a line"
        )
    })
}

pub(super) fn precision(text: &str) -> Result<Ratio, String> {
    match text.parse::<Ratio>() {
        Ok(share) if share.get() > 0.0 => Ok(share),
        Ok(_) => Err("write a percentage above 0, for example 5%".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Clone)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

impl std::str::FromStr for Header {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .ok_or_else(|| format!("{text:?}: write 'Name: value'"))?;
        Ok(Self {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

#[derive(Clone)]
pub(super) struct Ramp {
    pub(super) from: Rate,
    pub(super) to: Rate,
}

impl std::str::FromStr for Ramp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text
            .split_once("..")
            .ok_or_else(|| format!("{text:?}: write A..B, for example 100/s..1000/s"))?;
        let rate = |text: &str| text.parse::<Rate>().map_err(|error| error.to_string());
        Ok(Self {
            from: rate(from)?,
            to: rate(to)?,
        })
    }
}

#[derive(Clone)]
pub(super) struct RateSteps(Vec<Rate>);

impl RateSteps {
    /// The steps, with equal parts of `duration`.
    pub(super) fn over(&self, duration: Span) -> Vec<RateStep> {
        let each = duration / self.0.len() as u64;
        self.0
            .iter()
            .map(|rate| RateStep::steady(*rate, each))
            .collect()
    }
}

/// Maximum number of steps. More are a mistake, and their histograms would need much memory.
const MOST_STEPS: usize = 100;

impl std::str::FromStr for RateSteps {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let example = || format!("{text:?}: write A..B:S, for example 100/s..1000/s:10");
        let (range, step) = text.rsplit_once(':').ok_or_else(example)?;
        let Ramp { from, to } = range.parse()?;
        let (from, to) = (from.as_per_second(), to.as_per_second());
        let count = match (step.parse::<usize>(), step.parse::<Rate>()) {
            (Ok(count), _) => count,
            (_, Ok(by)) if by.as_per_second() > 0.0 => {
                let steps = (to - from).abs() / by.as_per_second();
                if (steps - steps.round()).abs() > 1e-6 {
                    return Err(format!(
                        "{text:?}: {by} does not divide the way from A to B"
                    ));
                }
                steps.round() as usize + 1
            }
            _ => return Err(example()),
        };
        if !(2..=MOST_STEPS).contains(&count) {
            return Err(format!(
                "{text:?} makes {count} steps: from 2 to {MOST_STEPS} are possible"
            ));
        }
        let gap = (to - from) / (count - 1) as f64;
        let rates = (0..count).filter_map(|n| Rate::per_second(from + gap * n as f64));
        Ok(Self(rates.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_of_arrivals_are_typos_unless_they_are_files() {
        for (typed, meant) in [
            ("poison", "poisson"),
            ("Poisson", "poisson"),
            ("posson", "poisson"),
            ("const", "constant"),
            ("constnat", "constant"),
        ] {
            let error = mistyped_arrivals(typed).expect(typed);
            assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("poison");
        std::fs::write(&file, "").unwrap();
        let paths = [file.to_str().unwrap(), "./poison", "poison.csv"];
        let names = ["constant", "poisson", "times", "trace", "burst"];
        for typed in paths.into_iter().chain(names) {
            assert_eq!(mistyped_arrivals(typed), None, "{typed}");
        }
    }
}
