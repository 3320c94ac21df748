//! The tables of forms in the documentation, compared with what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{FormProtocol, JudgedForm, LoadVerdict};
use crate::error::{Outcome, TaskError};

/// The page, below the root of the checkout.
pub(super) const PAGE: &str = "docs/reference/replies.md";

/// Heading of the table of reasons.
const REASONS: &str = "Reasons";

/// A row about a form, as in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FormRow {
    description: String,
    load: String,
    other: String,
    /// The name of a reason, or nothing.
    reason: String,
}

/// All rows of the page.
#[derive(Debug, Default)]
pub(super) struct DocumentedForms {
    /// By heading and name.
    rows: BTreeMap<(String, String), FormRow>,
    reasons: BTreeSet<String>,
}

impl DocumentedForms {
    pub(super) fn read(page: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(page).map_err(|error| TaskError::at(page, error))?;
        Ok(Self::parse(&text))
    }

    /// Reads the tables. A row begins with a name in code; all others are headings or prose.
    fn parse(text: &str) -> Self {
        let mut documented = Self::default();
        let mut heading = "";
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title;
            }
            let Some(cells) = cells(line) else {
                continue;
            };
            match cells.as_slice() {
                [name, _] if heading == REASONS => {
                    documented.reasons.extend(code(name));
                }
                [name, description, load, other, reason] => {
                    let row = FormRow {
                        description: (*description).to_owned(),
                        load: (*load).to_owned(),
                        other: (*other).to_owned(),
                        reason: code(reason).unwrap_or_default(),
                    };
                    let key = code(name).map(|name| (heading.to_owned(), name));
                    documented.rows.extend(key.map(|key| (key, row)));
                }
                _ => {}
            }
        }
        documented
    }

    /// Compares the page with the verdicts. Returns the mistakes, each with the row that the page should have.
    pub(super) fn compare(&self, forms: &[JudgedForm], verdicts: &[LoadVerdict]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut found = BTreeSet::new();
        for (form, own) in forms.iter().zip(verdicts) {
            let key = key_of(form.protocol, &form.form);
            let row = self.rows.get(&key);
            if let Err(why) = self.check(row, form, own) {
                let heading = form.protocol.heading();
                let row = row_of(form, own, row.map_or("", |row| &row.reason));
                wrong.push(format!("{heading}, {}: {why}: {row}", form.form));
            }
            found.insert(key);
        }
        let surplus = self.rows.keys().filter(|key| !found.contains(*key));
        wrong.extend(surplus.map(|(heading, name)| format!("{heading}, {name}: no such form")));
        let used: BTreeSet<&String> = self.rows.values().map(|row| &row.reason).collect();
        let unused = self.reasons.iter().filter(|reason| !used.contains(reason));
        wrong.extend(unused.map(|reason| format!("no form has the reason {reason}")));
        wrong
    }

    fn check(
        &self,
        row: Option<&FormRow>,
        form: &JudgedForm,
        own: &LoadVerdict,
    ) -> Result<(), &'static str> {
        let row = row.ok_or("the page has no row")?;
        if row.description != form.description {
            return Err("the page describes it differently");
        }
        if row.load != own.to_string() {
            return Err("the outcome is another one");
        }
        let is_same = match form.protocol {
            FormProtocol::Grpc => row.other == form.word,
            // Versions of curl have different codes for the same error.
            _ if form.accepts => row.other == form.word,
            _ => row.other.starts_with("exit "),
        };
        if !is_same {
            return Err("the other client decides differently");
        }
        match (own.agrees(form), row.reason.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err("a reason without a difference"),
            (false, true) => Err("a difference without a reason"),
            (false, false) if !self.reasons.contains(&row.reason) => Err("an unknown reason"),
            (false, false) => Ok(()),
        }
    }
}

fn key_of(protocol: FormProtocol, name: &str) -> (String, String) {
    (protocol.heading().to_owned(), name.to_owned())
}

/// The row of a form in Markdown.
fn row_of(form: &JudgedForm, own: &LoadVerdict, reason: &str) -> String {
    let reason = match reason {
        "" => String::new(),
        reason => format!("`{reason}` "),
    };
    let (name, description, other) = (&form.form, &form.description, &form.word);
    format!("| `{name}` | {description} | {own} | {other} | {reason}|")
}

/// The cells of a row of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The text of a cell that is code.
fn code(cell: &str) -> Option<String> {
    let text = cell.strip_prefix('`')?.strip_suffix('`')?;
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
## Reasons

| reason | text |
|---|---|
| `framing` | The end is in doubt. |

## HTTP/1.1

| form | reply | `load` | curl | reason |
|---|---|---|---|---|
| `plain` | a reply | ok 200 | 200 | |
| `two-lengths` | two lengths | protocol-error | 200 | `framing` |
";

    fn form(name: &str, description: &str, word: &str) -> JudgedForm {
        JudgedForm {
            protocol: FormProtocol::Http1,
            form: name.to_owned(),
            description: description.to_owned(),
            method: "GET".to_owned(),
            decode: false,
            accepts: !word.starts_with("exit"),
            word: word.to_owned(),
        }
    }

    fn verdict(outcome: &str, status: Option<&str>) -> LoadVerdict {
        LoadVerdict {
            outcome: outcome.to_owned(),
            status: status.map(str::to_owned),
        }
    }

    /// The mistakes, if the second form has this word and outcome.
    fn mistakes(word: &str, outcome: LoadVerdict) -> Vec<String> {
        let forms = [
            form("plain", "a reply", "200"),
            form("two-lengths", "two lengths", word),
        ];
        let verdicts = [verdict("ok", Some("200")), outcome];
        DocumentedForms::parse(TEXT).compare(&forms, &verdicts)
    }

    #[test]
    fn a_difference_needs_a_reason_and_the_reverse() {
        let rejected = || verdict("protocol-error", None);
        assert_eq!(mistakes("200", rejected()), Vec::<String>::new());
        for (word, outcome) in [
            ("exit 8", rejected()),
            ("201", rejected()),
            ("200", verdict("ok", Some("200"))),
        ] {
            assert_eq!(mistakes(word, outcome).len(), 1, "{word}");
        }
    }

    #[test]
    fn each_form_has_a_row_and_each_row_a_form() {
        let documented = DocumentedForms::parse(TEXT);
        let wrong = documented.compare(&[form("odd", "odd", "200")], &[verdict("ok", None)]);
        // The row of the form, those of the others.
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].ends_with("| `odd` | odd | ok | 200 | |"));
    }
}
