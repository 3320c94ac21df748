//! Checks as GitHub-flavoured Markdown.

use super::{CheckState, Checks};

/// Writes a heading, the overall result, a table with one row per check, and details and notes below it.
pub(super) fn write(checks: &Checks) -> String {
    let count = |state| checks.checks.iter().filter(|c| c.state == state).count();
    let mut out = format!(
        "### {}\n\n{} passed, {} failed, {} unknown\n\n",
        inline(&checks.title),
        count(CheckState::Passed),
        count(CheckState::Failed),
        count(CheckState::Unknown)
    );
    out.push_str("| check | result | found |\n|---|---|---|\n");
    for check in &checks.checks {
        let state = match check.state {
            CheckState::Passed => "passed",
            CheckState::Failed => "**failed**",
            CheckState::Unknown => "unknown",
        };
        let (name, found) = (inline(&check.name), inline(&check.found));
        out.push_str(&format!("| {name} | {state} | {found} |\n"));
    }
    let details = checks
        .checks
        .iter()
        .filter(|check| !check.detail.is_empty());
    let details = details.map(|check| format!("{}: {}", check.name, check.detail));
    let lines: Vec<String> = details.chain(checks.notes.iter().cloned()).collect();
    if !lines.is_empty() {
        out.push('\n');
    }
    for line in lines {
        out.push_str(&format!("- {}\n", inline(&line)));
    }
    out
}

/// Escapes text so that Markdown shows it unchanged, on one line, also in a table.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("; "),
            letter if letter.is_control() => {}
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::checks::example;

    #[test]
    fn a_table_and_its_details() {
        let expected = r#"### posthaste compare

1 passed, 1 failed, 1 unknown

| check | result | found |
|---|---|---|
| mean | passed | equal within 9 % |
| p99 &lt;5ms&gt; | **failed** | +31 %, worse |
| a\|b | unknown | too wide |

- p99 &lt;5ms&gt;: before 5 ms; after 6.5 ms
- a\|b: 6 "runs"
- target differs: GET http://a/?x=1&amp;y=2 \| GET http://b/
"#;
        assert_eq!(write(&example()), expected);
    }
}
