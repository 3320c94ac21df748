//! From a file's text to a [`Config`], or to the place that is wrong.

use std::fmt;

use hyper::header::HeaderName;

use super::{Config, Route, Watch};

/// What is wrong with a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Line and column, from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// What is wrong, and the remedy.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a `gateway.toml`.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError {
            place: error.span().map(|span| place(text, span.start)),
            reason: with_nearest(error.message()),
        })?;
        config.check()?;
        Ok(config)
    }

    /// Refuses what the types allow and no gateway can do.
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| ConfigError {
            place: None,
            reason,
        };
        if self.threads == 0 {
            return Err(wrong("threads must be at least 1".to_owned()));
        }
        if self.connections == Some(0) {
            return Err(wrong("connections must be at least 1".to_owned()));
        }
        let (release, threshold) = (self.compression.release, self.compression.threshold);
        if release > threshold {
            return Err(wrong(format!(
                "compression.release, {release}, is above compression.threshold, {threshold}: write a release that is not"
            )));
        }
        match &self.demand.watch {
            Watch::Cores(cores) if cores.is_empty() => {
                return Err(wrong("demand.watch names no core".to_owned()));
            }
            Watch::Upstream(field) if field.parse::<HeaderName>().is_err() => {
                return Err(wrong(format!(
                    "{field:?} is not the name of a header field"
                )));
            }
            _ => {}
        }
        if self.routes.is_empty() {
            return Err(wrong(
                "there is no route: add [[route]] with path = \"/\" and upstream = [\"HOST:PORT\"]"
                    .to_owned(),
            ));
        }
        for (index, route) in self.routes.iter().enumerate() {
            route.check().map_err(|reason| {
                wrong(format!("route {} ({:?}): {reason}", index + 1, route.path))
            })?;
            if self.routes[..index].iter().any(|r| r.path == route.path) {
                return Err(wrong(format!(
                    "there are two routes for {:?}: give one of them another path",
                    route.path
                )));
            }
        }
        Ok(())
    }
}

impl Route {
    fn check(&self) -> Result<(), String> {
        if !self.path.starts_with('/') {
            return Err("a path begins with /".to_owned());
        }
        if self.upstream.is_empty() {
            return Err(
                "upstream needs at least one address, such as \"127.0.0.1:9000\"".to_owned(),
            );
        }
        if self
            .health
            .path
            .as_ref()
            .is_some_and(|path| !path.starts_with('/'))
        {
            return Err("health.path begins with /".to_owned());
        }
        if self.health.failures == 0 {
            return Err("health.failures must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// Line and column of a byte, both from 1; columns count characters.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// Adds the nearest known name to a message that lists the known ones after an unknown one, as
/// serde's do: "unknown field `a`, expected one of `b`, `c`".
fn with_nearest(message: &str) -> String {
    let message = message.trim();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let nearest = quoted
        .next()
        .filter(|_| message.starts_with("unknown "))
        .and_then(|unknown| {
            quoted
                .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
                .filter(|(distance, known)| *distance <= known.len().div_ceil(2))
                .min()
        });
    match nearest {
        Some((_, known)) => format!("{message}: did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]";

    fn wrong(text: &str) -> String {
        Config::read(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_the_remedy() {
        let listen = "listen = \"127.0.0.1:8080\"\n";
        for (text, words) in [
            (
                format!("{listen}[compresion]\npolicy = \"never\""),
                "line 2, column 2: ",
            ),
            (
                format!("{listen}[compresion]"),
                "did you mean `compression`?",
            ),
            (
                format!("{listen}[compression]\npolicy = \"treshold\""),
                "line 3, column 10: ",
            ),
            (
                format!("{listen}[compression]\npolicy = \"treshold\""),
                "never, always, threshold",
            ),
            (
                format!("{listen}[compression]\nthreshold = \"50%\"{ROUTE}"),
                "release, 70%, is above compression.threshold, 50%",
            ),
            (
                format!("listen = \"localhost\"{ROUTE}"),
                "such as 127.0.0.1:8080",
            ),
            (listen.to_owned(), "add [[route]]"),
            (format!("{listen}{ROUTE}{ROUTE}"), "two routes for \"/\""),
            (
                format!("{listen}threads = 0{ROUTE}"),
                "threads must be at least 1",
            ),
        ] {
            let error = wrong(&text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn places_count_characters() {
        assert_eq!(place("a\n\u{e9}b", 4), (2, 2));
        assert_eq!(place("a", 9), (1, 2));
    }
}
