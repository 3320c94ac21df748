//! Words of other machines, made safe for a terminal and a line of a report (CWE-150).

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns `text` with escapes in place of control characters, line ends and changes of the writing direction: `\n`,
/// `\u001b`. The result is one line that a terminal shows as it is. Safe text is returned as it is. The escapes are those
/// of JSON, so that a JSON document keeps its meaning.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// The same for text of several lines: line ends and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a string does not fail.
        let _ = match c {
            _ if !is_hidden(c) => safe.write_char(c),
            '\n' => safe.write_str("\\n"),
            '\r' => safe.write_str("\\r"),
            '\t' => safe.write_str("\\t"),
            _ => write!(safe, "\\u{:04x}", u32::from(c)),
        };
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("plain, ä → €"), "plain, ä → €");
        let hostile = "\x1b[2J\x1b]0;title\x07a\r\nb\tc\u{9b}2J\u{202e}d\u{2028}";
        assert_eq!(
            visible(hostile),
            "\\u001b[2J\\u001b]0;title\\u0007a\\r\\nb\\tc\\u009b2J\\u202ed\\u2028"
        );
        assert_eq!(visible_lines("a\n\tb\x1b"), "a\n\tb\\u001b");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            let safe = visible(&text).into_owned();
            prop_assert!(!safe.contains(is_hidden));
            prop_assert_eq!(visible(&safe), safe.as_str());
        }
    }
}
