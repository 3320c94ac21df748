//! Characters: their classes, references, and normalised values.

use std::borrow::Cow;

use quick_xml::escape::{resolve_predefined_entity, unescape};

use super::{XmlError, malformed};

pub(super) fn reference<'a>(name: &'a str, position: usize) -> Result<Cow<'a, str>, XmlError> {
    let unknown = || XmlError::Entity {
        name: name.chars().take(40).collect(),
        position,
    };
    let Some(number) = name.strip_prefix('#') else {
        return resolve_predefined_entity(name)
            .map(Cow::Borrowed)
            .ok_or_else(unknown);
    };
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let signed = number.trim_start_matches('x').starts_with('+');
    code.ok()
        .filter(|_| !signed)
        .and_then(char::from_u32)
        .filter(|c| is_char(*c))
        .map(|c| Cow::Owned(c.to_string()))
        .ok_or_else(unknown)
}

/// The first `characters` characters of `text`, for error messages.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Character classes of bytes. A table lookup is used, because names and text are most of a document.
const KINDS: [u8; 256] = kinds();
pub(super) const NAME_START: u8 = 1;
pub(super) const NAME: u8 = 2;

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let start = b.is_ascii_alphabetic() || b == b'_' || b >= 0x80;
        if start {
            kinds[byte] |= NAME_START;
        }
        if start || b.is_ascii_digit() || matches!(b, b'-' | b'.') {
            kinds[byte] |= NAME;
        }
        byte += 1;
    }
    kinds
}

/// Returns true if `byte` is in this class.
pub(super) fn is(byte: u8, kind: u8) -> bool {
    KINDS[usize::from(byte)] & kind != 0
}

/// Returns true for a name without a prefix (Namespaces in XML 1.0, production 4, `NCName`). Characters beyond ASCII
/// are all accepted.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| is(first, NAME_START)) && bytes.all(|b| is(b, NAME))
}

/// Returns true if `wanted` holds for every byte. No early exit, so that the compiler can vectorise the loop.
fn all(text: &str, wanted: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, b| all & wanted(b))
}

/// Returns true if all of `text` are characters of XML.
pub(super) fn is_text(text: &str) -> bool {
    // 0xEF is the lead byte of U+FFFE and U+FFFF, which are not characters of XML, and of many valid ones.
    let plain = |b: u8| (b != 0xEF) & ((b >= b' ') | (b == b'\t') | (b == b'\r') | (b == b'\n'));
    all(text, plain) || text.chars().all(is_char)
}

/// Returns true for a character of XML 1.0 (production 2, `Char`).
pub(crate) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Normalises an attribute's value (XML 1.0, section 3.3.3).
pub(super) fn value(raw: &str, position: usize) -> Result<Cow<'_, str>, XmlError> {
    // Most values are addresses and need no normalisation.
    if all(raw, |b| {
        (b' '..=b'~').contains(&b) & (b != b'<') & (b != b'&')
    }) {
        return Ok(Cow::Borrowed(raw));
    }
    if raw.contains('<') || !is_text(raw) {
        return Err(malformed(
            "a character that an attribute may not hold",
            position,
        ));
    }
    let raw = if raw.bytes().any(|b| b < b' ') {
        Cow::Owned(raw.replace("\r\n", " ").replace(['\t', '\n', '\r'], " "))
    } else {
        Cow::Borrowed(raw)
    };
    if !raw.contains('&') {
        return Ok(raw);
    }
    let entity = || XmlError::Entity {
        name: raw
            .chars()
            .skip_while(|c| *c != '&')
            .skip(1)
            .take_while(|c| *c != ';')
            .take(40)
            .collect(),
        position,
    };
    match unescape(&raw) {
        Ok(text) if text.chars().all(is_char) => Ok(Cow::Owned(text.into_owned())),
        _ => Err(entity()),
    }
}
