//! Syntax of fields that came over HTTP/2 and may go on over HTTP/1.1 (RFC 9113, section 8.2.1).
//!
//! The decoder of HTTP/2 rejects upper case and control characters. Left to check are signs that no token has, and
//! blanks around values.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_http::fields::is_token;

/// A field that is invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FieldError {
    #[error("a field's name has signs other than letters, digits and !#$%&'*+-.^_`|~")]
    Name,
    #[error("the value of {0} begins or ends with a blank")]
    Value(HeaderName),
}

/// Checks the fields of a head or of trailers.
pub(crate) fn check_fields(fields: &HeaderMap) -> Result<(), FieldError> {
    fields.iter().try_for_each(|(name, value)| {
        if !is_token(name.as_str().as_bytes()) {
            Err(FieldError::Name)
        } else if is_padded(value) {
            Err(FieldError::Value(name.clone()))
        } else {
            Ok(())
        }
    })
}

fn is_padded(value: &HeaderValue) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let value = value.as_bytes();
    is_blank(value.first()) || is_blank(value.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_no_blanks_around_them() {
        for (value, is_valid) in [
            ("", true),
            ("a b", true),
            (" a", false),
            ("a\t", false),
            (" ", false),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert("x-sum", HeaderValue::from_static(value));
            assert_eq!(check_fields(&fields).is_ok(), is_valid, "{value:?}");
        }
    }
}
