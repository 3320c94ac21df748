//! Checks for other programs: Markdown for a pull request, JUnit XML for a build server.
//!
//! The writers take a plain list of checks, so that every command with checks can use them.

mod junit;
mod markdown;
mod report;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// The property holds.
    Passed,
    /// The property does not hold.
    Failed,
    /// The data do not decide.
    Unknown,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    /// The checked property: `p99 of the response time`.
    pub name: String,
    /// Outcome.
    pub state: CheckState,
    /// The result in a few words: `+12.0 %, worse`.
    pub found: String,
    /// Further details for a reader. May have several lines, may be empty.
    pub detail: String,
}

/// The checks of one run of a command.
#[derive(Clone, Debug)]
pub struct Checks {
    /// The title: `posthaste compare`.
    pub title: String,
    /// Lines about all checks, such as the options that differ.
    pub notes: Vec<String>,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// An unknown check counts as skipped, not as an error.
    pub allow_unknown: bool,
}

impl Checks {
    /// Returns a heading, the overall result, a table with one row per check, and details and notes below it.
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }

    /// Returns one test suite with one test case per check.
    pub fn junit(&self) -> String {
        junit::write(self).expect("writing to memory cannot fail")
    }
}

#[cfg(test)]
fn example() -> Checks {
    let check = |name: &str, state, found: &str, detail: &str| Check {
        name: name.to_owned(),
        state,
        found: found.to_owned(),
        detail: detail.to_owned(),
    };
    Checks {
        title: "posthaste compare".to_owned(),
        notes: vec!["target differs: GET http://a/?x=1&y=2 | GET http://b/".to_owned()],
        checks: vec![
            check("mean", CheckState::Passed, "equal within 9 %", ""),
            check(
                "p99 <5ms>",
                CheckState::Failed,
                "+31 %, worse",
                "before 5 ms\nafter 6.5 ms",
            ),
            check("a|b", CheckState::Unknown, "too wide", "\u{1}6 \"runs\""),
        ],
        allow_unknown: false,
    }
}
