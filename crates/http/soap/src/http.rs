//! SOAP's rules for HTTP: the media type, SOAPAction, and the action parameter.
//!
//! Pure functions over header values. Each error has its HTTP status.

use thiserror::Error;

use crate::Version;

/// Reason why a request's headers are invalid for SOAP, with an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// 415: neither of the two media types.
    #[error(
        "the media type {0:?} is not SOAP: send text/xml (SOAP 1.1) or application/soap+xml (SOAP 1.2)"
    )]
    MediaType(String),
    /// 415: a character set other than UTF-8 and UTF-16 (R1012).
    #[error("the charset {0:?} is not read: send utf-8 (R1012)")]
    Charset(String),
    /// 400: no SOAPAction field with SOAP 1.1.
    #[error("there is no SOAPAction header: send SOAPAction: \"\" or the one in the WSDL (R2744)")]
    NoAction,
    /// 400: SOAPAction without its quotation marks.
    #[error("SOAPAction {0:?} is not quoted (R1109)")]
    Unquoted(String),
}

/// Content of a Content-Type field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// SOAP version of the media type.
    pub version: Version,
    /// SOAP 1.2's `action` parameter.
    pub action: Option<&'a str>,
}

impl HeaderError {
    /// The HTTP status of the reply.
    pub const fn status(&self) -> u16 {
        match self {
            Self::MediaType(_) | Self::Charset(_) => 415,
            Self::NoAction | Self::Unquoted(_) => 400,
        }
    }
}

/// Reads a Content-Type field.
pub fn media_type(field: &str) -> Result<MediaType<'_>, HeaderError> {
    let (essence, mut rest) = field.split_once(';').unwrap_or((field, ""));
    let essence = essence.trim();
    let version = if essence.eq_ignore_ascii_case("text/xml") {
        Version::Soap11
    } else if essence.eq_ignore_ascii_case("application/soap+xml") {
        Version::Soap12
    } else {
        return Err(HeaderError::MediaType(essence.to_owned()));
    };
    let mut action = None;
    while let Some((name, value, after)) = parameter(rest) {
        rest = after;
        if name.eq_ignore_ascii_case("action") {
            action = Some(value);
        } else if name.eq_ignore_ascii_case("charset") && !readable(value) {
            return Err(HeaderError::Charset(value.to_owned()));
        }
    }
    Ok(MediaType { version, action })
}

/// Reads SOAP 1.1's SOAPAction field: the URI between its quotation marks, often empty.
pub fn soap_action(field: Option<&str>) -> Result<&str, HeaderError> {
    let field = field.ok_or(HeaderError::NoAction)?.trim();
    let inner = field.strip_prefix('"').and_then(|f| f.strip_suffix('"'));
    match inner {
        Some(uri) if !uri.contains('"') => Ok(uri),
        _ => Err(HeaderError::Unquoted(field.to_owned())),
    }
}

/// The Content-Type of a reply in `version`.
pub const fn content_type(version: Version) -> &'static str {
    match version {
        Version::Soap11 => "text/xml; charset=utf-8",
        Version::Soap12 => "application/soap+xml; charset=utf-8",
    }
}

fn readable(charset: &str) -> bool {
    ["utf-8", "utf8", "utf-16", "us-ascii"]
        .iter()
        .any(|known| charset.eq_ignore_ascii_case(known))
}

/// Splits `name=value` or `name="value"` off the start of a parameter list.
fn parameter(rest: &str) -> Option<(&str, &str, &str)> {
    let rest = rest.trim_start_matches([' ', '\t', ';']);
    let (name, value) = rest.split_once('=')?;
    if let Some(quoted) = value.trim_start().strip_prefix('"') {
        let (value, after) = quoted.split_once('"')?;
        return Some((name.trim(), value, after));
    }
    let (value, after) = value.split_once(';').unwrap_or((value, ""));
    Some((name.trim(), value.trim(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_names_the_version_and_the_action() {
        let plain = media_type("text/xml; charset=UTF-8").unwrap();
        assert_eq!((plain.version, plain.action), (Version::Soap11, None));
        let modern =
            media_type("Application/SOAP+xml;charset=\"utf-8\"; action=\"urn:a;b\"").unwrap();
        assert_eq!(
            (modern.version, modern.action),
            (Version::Soap12, Some("urn:a;b"))
        );
        assert_eq!(
            media_type("application/soap+xml; action=urn:x")
                .unwrap()
                .action,
            Some("urn:x")
        );
    }

    #[test]
    fn other_types_and_charsets_are_415() {
        assert_eq!(media_type("application/json").unwrap_err().status(), 415);
        assert_eq!(media_type("").unwrap_err().status(), 415);
        let latin = media_type("text/xml; charset=iso-8859-1").unwrap_err();
        assert_eq!(latin.status(), 415);
        assert!(latin.to_string().contains("R1012"));
    }

    #[test]
    fn a_soap_action_is_quoted() {
        assert_eq!(soap_action(Some("\"\"")), Ok(""));
        assert_eq!(soap_action(Some(" \"urn:x\" ")), Ok("urn:x"));
        for wrong in [None, Some(""), Some("urn:x"), Some("\""), Some("\"a\"b\"")] {
            assert_eq!(soap_action(wrong).unwrap_err().status(), 400, "{wrong:?}");
        }
    }
}
