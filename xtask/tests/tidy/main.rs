//! The house rules as ordinary tests: each finding names a file, a line and the remedy.
//!
//! Only what git tracks is looked at, so that work in progress bothers nobody but its author.
//! What rustc and clippy can say is left to them (docs, long functions, `dbg!`).

mod documents;
mod files;
mod manifests;
mod purity;
mod rooms;
mod shape;
mod unsafety;
mod waiting;

/// One rule broken in one place.
struct Finding {
    /// `path:line`, or the path alone where the whole file is meant.
    place: String,
    /// What is wrong.
    what: String,
    /// What to do about it.
    remedy: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// Fails with all findings, one a line.
fn expect_none(findings: &[Finding]) {
    let lines: Vec<String> = findings
        .iter()
        .map(
            |Finding {
                 place,
                 what,
                 remedy,
             }| format!("{place}: {what}; {remedy}"),
        )
        .collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        lines.join("\n")
    );
}
