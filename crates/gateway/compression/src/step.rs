//! Compression steps: codings, their tokens, and levels of effort.
//!
//! A step is one row of [`STEPS`]. Data per step (costs, menus, counters) is an array over it, so a new level is a new
//! row. `deflate` is absent: half of the implementations read it as zlib and the other half as a raw stream, and every
//! client that supports it supports gzip.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use thiserror::Error;

/// A content coding (RFC 9110, section 8.4.1; RFC 7932; RFC 8878).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// gzip, RFC 1952.
    Gzip,
    /// Zstandard, RFC 8878. The window is at most 8 MiB (RFC 9659).
    Zstd,
    /// Brotli, RFC 7932.
    Brotli,
}

/// A set of codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Codings(u8);

/// A set of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps(u8);

/// A coding at one level of effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename = "step")]
pub enum Step {
    /// gzip at level 1.
    #[schemars(rename = "gzip-1")]
    Gzip1,
    /// gzip at level 6.
    #[schemars(rename = "gzip-6")]
    Gzip6,
    /// Zstandard at level 1.
    #[schemars(rename = "zstd-1")]
    Zstd1,
    /// Zstandard at level 3.
    #[schemars(rename = "zstd-3")]
    Zstd3,
    /// Brotli at quality 1.
    #[schemars(rename = "br-1")]
    Brotli1,
    /// Brotli at quality 5.
    #[schemars(rename = "br-5")]
    Brotli5,
}

/// Every step, in the order of [`Step::index`].
pub const STEPS: [Step; 6] = [
    Step::Gzip1,
    Step::Gzip6,
    Step::Zstd1,
    Step::Zstd3,
    Step::Brotli1,
    Step::Brotli5,
];

/// Not the name of a step.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no step {0:?}: write one of {list}", list = STEPS.map(Step::name).join(", "))]
pub struct UnknownStep(pub String);

/// The available steps, in the server's order of preference, without duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Menu {
    steps: [Step; STEPS.len()],
    len: u8,
}

impl Coding {
    /// Every coding.
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Zstd, Self::Brotli];

    /// Its token in `Content-Encoding`, in lower case.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// The coding of a token in `Accept-Encoding` or `Content-Encoding`, ignoring case. `x-gzip` is gzip (RFC 9110,
    /// section 8.4.1.3).
    pub fn from_token(token: &[u8]) -> Option<Self> {
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        let mut all = Self::ALL.into_iter();
        all.find(|coding| token.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}

impl Codings {
    /// All codings.
    pub const ALL: Self = Self(7);

    /// This set and `coding`.
    #[must_use]
    pub const fn with(self, coding: Coding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// Returns true if the set contains `coding`.
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & 1 << coding as u8 != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Steps {
    /// This set and `step`.
    #[must_use]
    pub const fn with(self, step: Step) -> Self {
        Self(self.0 | 1 << step.index())
    }

    /// Returns true if the set contains `step`.
    pub const fn has(self, step: Step) -> bool {
        self.0 & 1 << step.index() != 0
    }
}

impl Step {
    /// Its coding.
    pub const fn coding(self) -> Coding {
        match self {
            Self::Gzip1 | Self::Gzip6 => Coding::Gzip,
            Self::Zstd1 | Self::Zstd3 => Coding::Zstd,
            Self::Brotli1 | Self::Brotli5 => Coding::Brotli,
        }
    }

    /// Its level, on the coding's own scale.
    pub const fn level(self) -> u8 {
        match self {
            Self::Gzip1 | Self::Zstd1 | Self::Brotli1 => 1,
            Self::Zstd3 => 3,
            Self::Brotli5 => 5,
            Self::Gzip6 => 6,
        }
    }

    /// Its name in configurations and metrics, such as `zstd-1`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip1 => "gzip-1",
            Self::Gzip6 => "gzip-6",
            Self::Zstd1 => "zstd-1",
            Self::Zstd3 => "zstd-3",
            Self::Brotli1 => "br-1",
            Self::Brotli5 => "br-5",
        }
    }

    /// Its position in [`STEPS`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl FromStr for Step {
    type Err = UnknownStep;

    fn from_str(text: &str) -> Result<Self, UnknownStep> {
        let found = STEPS.into_iter().find(|step| step.name() == text);
        found.ok_or_else(|| UnknownStep(text.to_owned()))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Menu {
    /// Creates a menu in this order. Of repeated steps, the first counts.
    pub fn new(steps: &[Step]) -> Self {
        let mut menu = Self {
            steps: STEPS,
            len: 0,
        };
        for step in steps {
            if !menu.steps().contains(step) {
                menu.steps[usize::from(menu.len)] = *step;
                menu.len += 1;
            }
        }
        menu
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps[..usize::from(self.len)]
    }

    /// The codings of its steps.
    pub fn codings(&self) -> Codings {
        let steps = self.steps().iter();
        steps.fold(Codings::default(), |set, step| set.with(step.coding()))
    }
}

impl Default for Menu {
    /// All steps, those that save most bytes for their time first: Zstandard, then gzip, then Brotli.
    fn default() -> Self {
        Self::new(&[
            Step::Zstd1,
            Step::Gzip1,
            Step::Brotli1,
            Step::Zstd3,
            Step::Gzip6,
            Step::Brotli5,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_indices_are_places() {
        for (index, step) in STEPS.into_iter().enumerate() {
            assert_eq!(step.index(), index);
            assert_eq!(step.name().parse(), Ok(step));
            let name = format!("{}-{}", step.coding().token(), step.level());
            assert_eq!(step.to_string(), name);
        }
        let unknown = "gzip-9".parse::<Step>().unwrap_err().to_string();
        assert!(unknown.contains("gzip-1, gzip-6, zstd-1"), "{unknown}");
    }

    #[test]
    fn a_set_has_what_was_put_into_it() {
        for step in STEPS {
            let set = Steps::default().with(step);
            let had = STEPS.into_iter().filter(|other| set.has(*other));
            assert_eq!(had.collect::<Vec<_>>(), [step]);
        }
    }

    #[test]
    fn a_menu_holds_each_step_once() {
        let menu = Menu::new(&[Step::Gzip6, Step::Zstd1, Step::Gzip6]);
        assert_eq!(menu.steps(), [Step::Gzip6, Step::Zstd1]);
        assert!(menu.codings().has(Coding::Gzip) && !menu.codings().has(Coding::Brotli));
        assert_eq!(Menu::default().codings(), Codings::ALL);
        assert!(Menu::new(&[]).codings().is_empty());
    }
}
