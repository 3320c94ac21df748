//! The rules of the project as ordinary tests. Each finding names a file, a line and the remedy.
//!
//! Only files tracked by git are checked, so that work in progress does not disturb others. Checks of rustc and clippy
//! are not repeated here (docs, long functions, `dbg!`).

mod comments;
mod cycles;
mod documents;
mod files;
mod indirect;
mod installs;
mod layers;
mod manifests;
mod messages;
mod metadata;
mod names;
mod openers;
mod packages;
mod purity;
mod ratchet;
mod seam;
mod shadowing;
mod shape;
mod sizes;
mod terms;
mod test_names;
mod type_names;
mod unsafety;
mod waiting;

/// One rule violated in one place.
struct Finding {
    /// `path:line`, or only the path for a whole file.
    location: String,
    /// The violation.
    violation: String,
    /// The solution.
    remedy: String,
}

impl Finding {
    fn new(
        location: impl Into<String>,
        violation: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            location: location.into(),
            violation: violation.into(),
            remedy: remedy.into(),
        }
    }
}

/// Fails with all findings, one per line.
fn expect_none(findings: &[Finding]) {
    let lines: Vec<String> = findings
        .iter()
        .map(
            |Finding {
                 location,
                 violation,
                 remedy,
             }| format!("{location}: {violation}; {remedy}"),
        )
        .collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        lines.join("\n")
    );
}
