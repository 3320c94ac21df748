//! Fast inspection of a reply: a fault, another envelope, or not SOAP.
//!
//! For load generators, because HTTP status 200 does not mean that a call succeeded. Reading stops at the first child
//! of Body, so the cost does not grow with the reply. Only a fault is read further, up to its reason.

use crate::Version;
use crate::limits::Limits;
use crate::xml::{Name, Scanner, Token, XmlError};

/// Bytes of a reply that are inspected. A longer SOAP header gives [`Inspection::NotSoap`].
const WINDOW: usize = 64 << 10;

/// Result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// An envelope without a fault in its Body.
    Reply(Version),
    /// An envelope with a fault.
    Fault {
        /// The envelope's version.
        version: Version,
        /// The code without its prefix, such as `Client` or `Sender`.
        code: String,
        /// The reason or faultstring.
        reason: String,
    },
    /// Any other content, with the reason.
    NotSoap(String),
}

/// Inspects a reply's bytes. Never fails: invalid input gives [`Inspection::NotSoap`].
pub fn inspect(bytes: &[u8]) -> Inspection {
    let limits = Limits {
        total: usize::MAX,
        ..Limits::default()
    };
    let utf16 = matches!(bytes, [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..]);
    let window = &bytes[..bytes.len().min(WINDOW)];
    let decoded;
    let text = match std::str::from_utf8(window) {
        Ok(text) => text,
        Err(_) if utf16 => match crate::xml::decode(whole_utf16(window), &limits) {
            Ok(text) => {
                decoded = text;
                &decoded
            }
            Err(error) => return Inspection::NotSoap(error.to_string()),
        },
        // The window, or a truncated reply, may end inside a character.
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default(),
    };
    // A UTF-16 declaration contradicts UTF-8.
    if !utf16 && crate::xml::declares_utf16(text) {
        return Inspection::NotSoap("it is UTF-8 and declared as UTF-16".to_owned());
    }
    look(&mut Scanner::new(text, &limits)).unwrap_or_else(|e| Inspection::NotSoap(e.to_string()))
}

/// Cuts UTF-16 input after the last whole character.
fn whole_utf16(window: &[u8]) -> &[u8] {
    let even = window.len() & !1;
    let high = match (window[0], &window[..even]) {
        (0xFE, [.., high, _]) | (_, [.., _, high]) => (0xD8..0xDC).contains(high),
        _ => false,
    };
    &window[..even - 2 * usize::from(high)]
}

fn look(scanner: &mut Scanner<'_>) -> Result<Inspection, XmlError> {
    let not_soap = |reason: &str| Ok(Inspection::NotSoap(reason.to_owned()));
    let Some(root) = enter(scanner)? else {
        return not_soap("there is no element");
    };
    let Some(version) =
        Version::from_namespace(&root.namespace).filter(|_| root.local == "Envelope")
    else {
        return Ok(Inspection::NotSoap(format!(
            "the root element is {:?}",
            root.local
        )));
    };
    loop {
        match enter(scanner)? {
            Some(child) if child.is(version.namespace(), "Body") => break,
            Some(_) => scanner.skip()?,
            None => return not_soap("the envelope has no Body"),
        }
    }
    match enter(scanner)? {
        Some(child) if child.is(version.namespace(), "Fault") => read_fault(scanner, version),
        _ => Ok(Inspection::Reply(version)),
    }
}

fn read_fault(scanner: &mut Scanner<'_>, version: Version) -> Result<Inspection, XmlError> {
    let (mut code, mut reason) = (String::new(), String::new());
    while let Some(child) = enter(scanner)? {
        match (version, child.local) {
            (Version::Soap11, "faultcode") => code = text(scanner)?,
            (Version::Soap11, "faultstring") => reason = text(scanner)?,
            (Version::Soap12, "Code") => code = first_child_text(scanner)?,
            (Version::Soap12, "Reason") => reason = first_child_text(scanner)?,
            _ => break, // detail, actor, node and role come after both
        }
    }
    let code = code.rsplit(':').next().unwrap_or_default().to_owned();
    Ok(Inspection::Fault {
        version,
        code,
        reason,
    })
}

fn first_child_text(scanner: &mut Scanner<'_>) -> Result<String, XmlError> {
    let outside = scanner.depth() - 1;
    let found = match enter(scanner)? {
        Some(_) => text(scanner)?,
        None => String::new(),
    };
    while scanner.depth() > outside {
        scanner.token()?;
    }
    Ok(found)
}

fn text(scanner: &mut Scanner<'_>) -> Result<String, XmlError> {
    let text = scanner.text()?.unwrap_or_default();
    Ok(text.trim().to_owned())
}

fn enter<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Name<'a>>, XmlError> {
    loop {
        match scanner.token()? {
            Token::Start(name) => return Ok(Some(name)),
            Token::End | Token::Eof => return Ok(None),
            Token::Text(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Detail, Fault, write};

    #[test]
    fn faults_of_both_versions_are_told_with_code_and_reason() {
        let mut fault = Fault::new(Code::Client, "no such <book>");
        fault.detail = Some(Detail {
            namespace: "urn:x",
            name: "Missing",
            fields: vec![("isbn", "1&2".to_owned())],
        });
        for (version, code) in [(Version::Soap11, "Client"), (Version::Soap12, "Sender")] {
            let envelope = fault.envelope(version);
            let expected = Inspection::Fault {
                version,
                code: code.to_owned(),
                reason: "no such <book>".to_owned(),
            };
            assert_eq!(inspect(envelope.as_bytes()), expected, "{envelope}");
        }
    }

    #[test]
    fn a_reply_is_known_from_its_first_kilobytes() {
        let mut reply = String::new();
        write::open(Version::Soap12, &mut reply);
        reply.push_str("<a xmlns='urn:x'>");
        assert_eq!(
            inspect(reply.as_bytes()),
            Inspection::Reply(Version::Soap12)
        );
    }

    #[test]
    fn a_window_that_ends_inside_a_character_is_read() {
        let mut reply = String::new();
        write::open(Version::Soap11, &mut reply);
        reply.push_str("<a xmlns='urn:x'>");
        for padding in ["", "x"] {
            let text = format!("{reply}{padding}{}", "\u{1F4DA}".repeat(WINDOW / 4));
            let units: Vec<u16> = text.encode_utf16().collect();
            let little = units.iter().flat_map(|unit| unit.to_le_bytes());
            let little: Vec<u8> = [0xFF, 0xFE].into_iter().chain(little).collect();
            let big = units.iter().flat_map(|unit| unit.to_be_bytes());
            let big: Vec<u8> = [0xFE, 0xFF].into_iter().chain(big).collect();
            for bytes in [text.as_bytes(), &little, &big] {
                assert_eq!(inspect(bytes), Inspection::Reply(Version::Soap11));
            }
        }
    }

    #[test]
    fn everything_else_is_not_soap() {
        for other in [
            "",
            "<html></html>",
            "{\"a\":1}",
            "<Envelope/>",
            "<?xml version=\"1.0\"?>",
            "\u{0}",
        ] {
            assert!(
                matches!(inspect(other.as_bytes()), Inspection::NotSoap(_)),
                "{other:?}"
            );
        }
        assert!(matches!(
            inspect(&[0xFF, 0xFE, 0x3C]),
            Inspection::NotSoap(_)
        ));
        assert!(matches!(inspect(&[0x80, 0x81]), Inspection::NotSoap(_)));
        let mut declared = "<?xml version=\"1.0\" encoding=\"utf-16\"?>".to_owned();
        write::open(Version::Soap11, &mut declared);
        declared.push_str("<a xmlns='urn:x'>");
        assert!(matches!(
            inspect(declared.as_bytes()),
            Inspection::NotSoap(_)
        ));
    }
}
