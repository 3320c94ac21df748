//! Placeholders in a text: `{{column}}`, `{{column|filter}}`, and `{{"{{"}}` for two literal braces.
//!
//! Everything else is literal, as in bodies of CSS, shell or other templates: `{%`, `{#`, and braces around other text.
//! minijinja evaluates the placeholders; [`template_source`] hides the rest from it.

/// True if a text has a placeholder.
pub(crate) fn has_placeholders(text: &str) -> bool {
    next_placeholder(text).is_some()
}

/// The part of a text that looks like a placeholder and is none, such as `{{column` without an end.
pub(super) fn stray_braces(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let found = next_placeholder(rest);
        let literal = found.map_or(rest, |(start, _)| &rest[..start]);
        if let Some(start) = literal.find("{{") {
            return Some(&literal[start..]);
        }
        rest = &rest[found?.1..];
    }
}

/// Returns the text as a template of minijinja that renders the literal parts as they are.
pub(super) fn template_source(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, end)) = next_placeholder(rest) {
        push_literal(&rest[..start], &mut source);
        source.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    push_literal(rest, &mut source);
    source
}

/// Appends a literal text. A brace that could begin a tag together with the character after it becomes a placeholder
/// with a constant.
fn push_literal(text: &str, source: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let may_begin_tag = matches!(characters.peek(), None | Some('{' | '%' | '#'));
        if character == '{' && may_begin_tag {
            source.push_str("{{\"{\"}}");
        } else {
            source.push(character);
        }
    }
}

/// Start and end of the first placeholder.
fn next_placeholder(text: &str) -> Option<(usize, usize)> {
    let opening = text.match_indices("{{").map(|(start, _)| start);
    // Of three braces the last two may begin a placeholder.
    let opening = opening.flat_map(|start| [start, start + 1]);
    opening
        .filter(|start| text[*start..].starts_with("{{"))
        .find_map(|start| Some((start, start + placeholder_length(&text[start..])?)))
}

/// Length of the placeholder at the beginning of a text that starts with `{{`.
fn placeholder_length(text: &str) -> Option<usize> {
    let end = text.find("}}")?;
    let inside = text.get("{{".len()..end)?.trim();
    let rest = after_constant(inside)
        .or_else(|| after_name(inside))?
        .trim_start();
    let is_filtered = rest
        .strip_prefix('|')
        .is_some_and(|filter| after_name(filter.trim_start()).is_some());
    (rest.is_empty() || is_filtered).then_some(end + "}}".len())
}

/// The text after the constant `"{{"` or `'{{'`.
fn after_constant(text: &str) -> Option<&str> {
    let mut constants = ["\"{{\"", "'{{'"].iter();
    constants.find_map(|constant| text.strip_prefix(constant))
}

/// The text after an identifier.
fn after_name(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_name = rest.len() < text.len() && !text.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some(rest)
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context};
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str) -> String {
        let mut source = template_source(text);
        // minijinja removes the last line end unless it is told to keep it.
        source.push('$');
        let environment = Environment::new();
        let mut text = environment
            .render_str(&source, context! { isbn => "7", _1 => "one" })
            .unwrap();
        assert_eq!(text.pop(), Some('$'));
        text
    }

    #[test]
    fn names_filters_and_the_constant_are_placeholders() {
        for (text, expected) in [
            ("{{isbn}}", "7"),
            ("{{ isbn }}{{_1}}", "7one"),
            ("{{isbn|tojson}}", "\"7\""),
            ("{{ isbn | default(\"x\") | upper }}", "7"),
            ("{\"a\":{{isbn}}}", "{\"a\":7}"),
            ("{{{isbn}}}", "{7}"),
            ("{{{{isbn}}", "{{7"),
            ("{{\"{{\"}}isbn}}", "{{isbn}}"),
            ("{{ '{{' }}{{isbn}}}}", "{{7}}"),
        ] {
            assert!(has_placeholders(text), "{text}");
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn other_braces_are_literal() {
        for text in [
            "a{#id} b {#c#}",
            "{% if x %}{%",
            "{{.Name}} {{#each x}} {{> part}} {{1}} {{}} {{",
            "{{ include \"x\" . }} {{a b}} {{a||b}} {{a|}} {{isbn} }",
            "${#x} {{{ {",
        ] {
            assert!(!has_placeholders(text), "{text}");
            assert_eq!(rendered(text), text);
            let between = format!("{text}{{{{isbn}}}}{text}");
            assert_eq!(rendered(&between), format!("{text}7{text}"));
        }
    }

    #[test]
    fn stray_braces_are_found() {
        assert_eq!(stray_braces("/{{isbn}}/{a}"), None);
        assert_eq!(stray_braces("/{{isbn}}/{{isbn"), Some("{{isbn"));
        assert_eq!(stray_braces("/{{is bn}}/{{isbn}}"), Some("{{is bn}}/"));
    }

    proptest! {
        #[test]
        fn text_without_placeholders_is_unchanged(text in "[{}%#\"'a|\\-\r\n ]{0,24}") {
            if !has_placeholders(&text) {
                prop_assert_eq!(rendered(&text), text);
            }
        }

        #[test]
        fn literal_text_around_a_placeholder_is_unchanged(
            before in "[{%#a\\-\n ]{0,8}",
            after in "[}%#a\\-\n ]{0,8}",
        ) {
            let text = format!("{before}{{{{isbn}}}}{after}");
            prop_assert_eq!(rendered(&text), format!("{before}7{after}"));
        }
    }
}
