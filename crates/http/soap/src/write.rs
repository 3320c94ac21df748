//! Writer for envelopes. Text is escaped only here.

use quick_xml::escape::{escape, partial_escape};

use crate::Version;
use crate::xml::is_char;

/// Appends `text` as character data. Characters that XML forbids become U+FFFD.
pub fn text(text: &str, out: &mut String) {
    if is_plain(text) {
        return out.push_str(text);
    }
    if text.chars().all(is_char) {
        out.push_str(&partial_escape(text));
    } else {
        out.push_str(&partial_escape(clean(text)));
    }
}

/// Appends `value` escaped for use between double quotes.
pub fn attribute(value: &str, out: &mut String) {
    if value.chars().all(|c| is_char(c) && c >= ' ') {
        out.push_str(&escape(value));
    } else {
        // XML 1.0, section 3.3.3: a literal line end in an attribute would be read back as a space.
        let kept = clean(value);
        let escaped = escape(kept.as_str()).replace('\n', "&#10;");
        out.push_str(&escaped.replace('\t', "&#9;").replace('\r', "&#13;"));
    }
}

/// Appends `<name>value</name>`. `name` is not checked.
pub fn element(name: &str, value: &str, out: &mut String) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    text(value, out);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Appends the XML declaration and everything before the Body's children.
pub fn open(version: Version, out: &mut String) {
    out.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?><soap:Envelope xmlns:soap=\"");
    out.push_str(version.namespace());
    out.push_str("\"><soap:Body>");
}

/// Appends everything after the Body's children.
pub fn close(out: &mut String) {
    out.push_str("</soap:Body></soap:Envelope>");
}

/// Returns true if `text` needs no escaping: no markup, no control character, and no lead byte of U+FFFE and U+FFFF. No
/// early exit, so that the compiler can vectorise the loop.
fn is_plain(text: &str) -> bool {
    let suspect = |b: u8| (b < b' ') | (b == b'<') | (b == b'>') | (b == b'&') | (b == 0xEF);
    !text.bytes().fold(false, |found, b| found | suspect(b))
}

fn clean(text: &str) -> String {
    let keep = |c| {
        if is_char(c) {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    text.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::xml::{Scanner, Token};
    use proptest::prelude::*;

    fn kept(text: &str) -> String {
        clean(text)
    }

    proptest! {
        #[test]
        fn written_attributes_and_texts_are_read_back(value in "\\PC{0,40}", text_value in any::<String>()) {
            let mut out = String::from("<a b=\"");
            attribute(&value, &mut out);
            out.push_str("\">");
            text(&text_value, &mut out);
            out.push_str("</a>");
            let limits = Limits::default();
            let mut scanner = Scanner::new(&out, &limits);
            prop_assert!(matches!(scanner.token(), Ok(Token::Start(_))));
            prop_assert_eq!(scanner.attribute("b").unwrap().as_ref(), kept(&value));
            // A lone carriage return is read as a line feed (XML 1.0 section 2.11).
            let expected = kept(&text_value).replace("\r\n", "\n").replace('\r', "\n");
            let read = scanner.text().unwrap().unwrap();
            prop_assert_eq!(read.as_ref(), expected);
        }
    }
}
