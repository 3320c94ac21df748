//! Character encodings: decoding of bytes.

use std::borrow::Cow;

use super::XmlError;
use super::markup::Markup;
use crate::limits::{Limit, Limits};

/// Decodes UTF-8, or UTF-16 with a byte order mark (R1012). UTF-8 that is declared as UTF-16 is rejected, because other
/// readers would decode it as such.
pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, str>, XmlError> {
    if bytes.len() > limits.total {
        return Err(XmlError::Limit {
            limit: Limit::Total,
            allowed: limits.total,
            position: limits.total,
        });
    }
    let wrong = |violation: &str, position| XmlError::Encoding {
        violation: violation.to_owned(),
        position,
    };
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        _ => {
            let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            let text = std::str::from_utf8(bytes)
                .map_err(|e| wrong("these bytes are not UTF-8", e.valid_up_to()))?;
            return if declares_utf16(text) {
                Err(wrong("UTF-8 that is declared as UTF-16", 0))
            } else {
                Ok(Cow::Borrowed(text))
            };
        }
    };
    let (pairs, rest) = bytes[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong("half a character of UTF-16", bytes.len() - 1));
    }
    char::decode_utf16(pairs.iter().copied().map(unit))
        .collect::<Result<String, _>>()
        .map(Cow::Owned)
        .map_err(|_| wrong("these bytes are not UTF-16", 2))
}

/// Returns true if the XML declaration of a UTF-8 text names UTF-16.
pub(crate) fn declares_utf16(text: &str) -> bool {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let inner = text
        .strip_prefix("<?xml")
        .and_then(|rest| rest.split_once("?>"));
    let Some((inner, _)) = inner else {
        return false;
    };
    let mut markup = Markup::new(inner);
    while let Ok(Some((key, value))) = markup.attribute() {
        if key.written == "encoding" {
            return value
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("utf-16"));
        }
    }
    false
}
