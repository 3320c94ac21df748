//! Checks as JUnit XML, in the form that Jenkins, GitLab and GitHub actions read.
//!
//! A failed check is a `failure`. An unknown one is an `error`, or `skipped` if unknown checks are allowed.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{Check, CheckState, Checks};

/// Writes one test suite with one test case per check.
pub(super) fn write(checks: &Checks) -> io::Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |state| checks.checks.iter().filter(|c| c.state == state).count();
    let unknown = count(CheckState::Unknown);
    let (errors, skipped) = if checks.allow_unknown {
        (0, unknown)
    } else {
        (unknown, 0)
    };
    let title = legal(&checks.title);
    let [tests, failures, errors, skipped] = [
        checks.checks.len(),
        count(CheckState::Failed),
        errors,
        skipped,
    ]
    .map(|count| count.to_string());
    let counts = [
        ("name", title.as_str()),
        ("tests", tests.as_str()),
        ("failures", failures.as_str()),
        ("errors", errors.as_str()),
    ];
    writer
        .create_element("testsuites")
        .with_attributes(counts)
        .write_inner_content(|writer| {
            writer
                .create_element("testsuite")
                .with_attributes(counts)
                .with_attribute(("skipped", skipped.as_str()))
                .write_inner_content(|writer| {
                    for check in &checks.checks {
                        case(writer, &title, check, checks.allow_unknown)?;
                    }
                    if !checks.notes.is_empty() {
                        let notes = legal(&checks.notes.join("\n"));
                        let text = BytesText::new(&notes);
                        writer
                            .create_element("system-out")
                            .write_text_content(text)?;
                    }
                    Ok(())
                })?;
            Ok(())
        })?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

fn case(
    writer: &mut Writer<Vec<u8>>,
    title: &str,
    check: &Check,
    allow_unknown: bool,
) -> io::Result<()> {
    let (name, found) = (legal(&check.name), legal(&check.found));
    let detail = legal(&check.detail);
    let case = writer
        .create_element("testcase")
        .with_attributes([("classname", title), ("name", name.as_str())]);
    let element = match (check.state, allow_unknown) {
        (CheckState::Passed, _) => "system-out",
        (CheckState::Failed, _) => "failure",
        (CheckState::Unknown, false) => "error",
        (CheckState::Unknown, true) => "skipped",
    };
    case.write_inner_content(|writer| {
        if element == "system-out" {
            let text = [found.as_str(), &detail].join("\n");
            let text = BytesText::new(text.trim_end());
            writer.create_element(element).write_text_content(text)?;
        } else {
            let outcome = writer
                .create_element(element)
                .with_attribute(("message", found.as_str()));
            outcome.write_text_content(BytesText::new(&detail))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Removes the characters that XML 1.0 forbids even if escaped.
fn legal(text: &str) -> String {
    let forbidden = |letter: char| {
        (letter < ' ' && !matches!(letter, '\t' | '\n' | '\r'))
            || matches!(letter, '\u{fffe}' | '\u{ffff}')
    };
    text.chars().filter(|letter| !forbidden(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::checks::example;

    #[test]
    fn a_suite_with_a_case_a_check() {
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="posthaste compare" tests="3" failures="1" errors="1">
  <testsuite name="posthaste compare" tests="3" failures="1" errors="1" skipped="0">
    <testcase classname="posthaste compare" name="mean">
      <system-out>equal within 9 %</system-out>
    </testcase>
    <testcase classname="posthaste compare" name="p99 &lt;5ms&gt;">
      <failure message="+31 %, worse">before 5 ms
after 6.5 ms</failure>
    </testcase>
    <testcase classname="posthaste compare" name="a|b">
      <error message="too wide">6 &quot;runs&quot;</error>
    </testcase>
    <system-out>target differs: GET http://a/?x=1&amp;y=2 | GET http://b/</system-out>
  </testsuite>
</testsuites>
"#;
        assert_eq!(write(&example()).unwrap(), expected);
    }

    #[test]
    fn unknown_is_skipped_where_it_is_allowed() {
        let mut checks = example();
        checks.allow_unknown = true;
        let text = write(&checks).unwrap();
        assert!(text.contains(r#"errors="0" skipped="1""#), "{text}");
        assert!(text.contains("<skipped message=\"too wide\">"), "{text}");
    }
}
