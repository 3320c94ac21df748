//! Classes of the fields of replies: the rules that HTTP/2 and HTTP/3 share (RFC 9113, section 8.2; RFC 9114, section
//! 4.2).
//!
//! A class belongs to a field, not to its position, so that a table of compressed fields stores it with the entry.

/// Class of a field of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldClass {
    /// `:status`.
    Status,
    /// `content-length`.
    ContentLength,
    /// Any other permitted field.
    Regular,
    /// A pseudo-field that a reply must not have.
    OtherPseudo,
    /// A field about the connection, as HTTP/1 has them.
    ConnectionSpecific,
    /// A name with upper-case letters, control characters, white space or bytes beyond ASCII, or an empty name.
    InvalidName,
    /// A value with CR, LF or NUL, or with white space at an end.
    InvalidValue,
}

impl FieldClass {
    /// Class of a field by its name.
    pub(crate) fn of_name(name: &[u8]) -> Self {
        match name {
            b":status" => Self::Status,
            b"content-length" => Self::ContentLength,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Self::ConnectionSpecific,
            [b':', ..] => Self::OtherPseudo,
            _ if is_valid_name(name) => Self::Regular,
            _ => Self::InvalidName,
        }
    }

    /// The class of a field with a name of this class.
    pub(crate) fn with_value(self, value: &[u8]) -> Self {
        if is_valid_value(value) {
            self
        } else {
            Self::InvalidValue
        }
    }
}

/// True for a name without upper-case letters and without bytes that no name may have.
pub(crate) fn is_valid_name(name: &[u8]) -> bool {
    let forbidden = |byte: &u8| matches!(byte, 0..=0x20 | b'A'..=b'Z' | b':' | 0x7f..);
    !name.is_empty() && !name.iter().any(forbidden)
}

/// True for a value without CR, LF and NUL and without white space at its ends.
pub(crate) fn is_valid_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let forbidden = |bad, byte: &u8| bad | matches!(byte, b'\0' | b'\r' | b'\n');
    // Without an early end, the loop compares many bytes at once.
    !value.iter().fold(false, forbidden) && !is_space(value.first()) && !is_space(value.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_have_a_class() {
        let class = |name: &[u8], value: &[u8]| FieldClass::of_name(name).with_value(value);
        assert_eq!(class(b":status", b"200"), FieldClass::Status);
        assert_eq!(class(b":path", b"/"), FieldClass::OtherPseudo);
        assert_eq!(class(b"content-length", b"1"), FieldClass::ContentLength);
        assert_eq!(class(b"upgrade", b"h2c"), FieldClass::ConnectionSpecific);
        assert_eq!(class(b"etag", b"\"a b\""), FieldClass::Regular);
        assert_eq!(class(b"etag", b""), FieldClass::Regular);
        for name in [&b""[..], b"Etag", b"e tag", b"e:tag", b"\xc3\xa9", b"e\0"] {
            assert_eq!(class(name, b"1"), FieldClass::InvalidName);
        }
        for value in [&b" a"[..], b"a\t", b"a\r\nb", b"a\0b", b"\n"] {
            assert_eq!(class(b"etag", value), FieldClass::InvalidValue);
        }
    }
}
