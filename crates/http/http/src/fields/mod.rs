//! Syntax of HTTP fields: lists (RFC 9110, section 5.6), the senders of forwarded requests, protocol switches, and the
//! timeout of gRPC.

pub mod forwarded;
mod grpc_timeout;
pub mod upgrade;

use memchr::memchr2;

pub use crate::fields::grpc_timeout::grpc_timeout;

/// Splits `text` at separators outside quotation marks and trims the parts.
pub fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = outside_quotes(text, separator);
        rest = text.get(end + 1..);
        Some(text[..end].trim_ascii())
    })
}

/// Position of the first `separator` outside quotation marks, or the length of `text`.
fn outside_quotes(text: &[u8], separator: u8) -> usize {
    let (mut at, mut quoted) = (0, false);
    while let Some(found) = memchr2(if quoted { b'\\' } else { separator }, b'"', &text[at..]) {
        at += found;
        match text[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            _ => return at,
        }
        at += 1;
        if at >= text.len() {
            break;
        }
    }
    text.len()
}

/// Returns true for a token (RFC 9110, section 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is_tchar = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !text.is_empty() && text.iter().all(is_tchar)
}

/// Splits `name=value` or `name="value"`, with white space allowed around the sign. The value is empty if there is
/// none. Quoted pairs are not unescaped.
pub fn pair(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(at) = memchr::memchr(b'=', text) else {
        return (text, b"");
    };
    let (name, value) = (text[..at].trim_ascii(), text[at + 1..].trim_ascii());
    match value {
        [b'"', inner @ .., b'"'] => (name, inner),
        _ => (name, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<&str> {
        split(text.as_bytes(), b',')
            .map(|part| std::str::from_utf8(part).unwrap())
            .collect()
    }

    #[test]
    fn quotation_marks_hide_separators() {
        assert_eq!(parts("a, b ,c"), ["a", "b", "c"]);
        assert_eq!(parts("a=\"x,\\\",y\", b"), ["a=\"x,\\\",y\"", "b"]);
        assert_eq!(parts("a=\"x,"), ["a=\"x,"]);
        assert_eq!(parts("\"\\"), ["\"\\"]);
        assert_eq!(parts(",a,"), ["", "a", ""]);
        assert_eq!(parts(""), [""]);
    }

    #[test]
    fn pairs_come_apart() {
        assert_eq!(pair(b"a = \"b=c\""), (&b"a"[..], &b"b=c"[..]));
        assert_eq!(pair(b"a=b"), (&b"a"[..], &b"b"[..]));
        assert_eq!(pair(b"a"), (&b"a"[..], &b""[..]));
        assert_eq!(pair(b"a=\""), (&b"a"[..], &b"\""[..]));
    }
}
