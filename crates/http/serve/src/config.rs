//! Reading of TOML configurations. Errors name the line, the column and the nearest valid key.

use std::fmt;

use serde::de::DeserializeOwned;

/// An error in a configuration, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Line and column, from 1, if known.
    pub position: Option<(usize, usize)>,
    /// The problem and the solution.
    pub reason: String,
}

impl ConfigError {
    /// Creates an error without a position.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            position: None,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ConfigError {}

/// Parses the text of a configuration file.
pub fn read_config<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError {
        position: error.span().map(|span| position(text, span.start)),
        reason: with_nearest(error.message()),
    })
}

/// Line and column of a byte, both from 1. Columns count characters.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// Adds the nearest known name to serde's messages with an unknown name and a list of known ones: "unknown field `a`,
/// expected one of `b`, `c`".
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

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("a\n\u{e9}b", 4), (2, 2));
        assert_eq!(position("a", 9), (1, 2));
    }
}
