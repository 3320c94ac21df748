//! A look at a reply: bounded by its window, settled by what it has seen, and of one opinion with
//! the reader of requests.

use posthaste_soap::reply::{Inspection, inspect};
use posthaste_soap::xml::{Scanner, Token, XmlError, decode};
use posthaste_soap::{Code, Detail, Fault, Limits, Request, Version};

use crate::envelope::{BOTH, FIXED, PER_BYTE, as_written};
use crate::within;

/// How much of a reply may matter.
const WINDOW: usize = 64 << 10;

/// How much of the input is made into the words of a fault.
const WORDS: usize = 2 << 10;

/// Any bytes as a reply, and as the words of a fault.
pub fn reply_inspect(bytes: &[u8]) {
    let seen = bytes.len().min(WINDOW);
    let found = within("inspect", seen, PER_BYTE, 4 * FIXED, || inspect(bytes));
    assert_eq!(inspect(&bytes[..seen]), found, "the rest does not matter");
    if let Inspection::NotSoap(why) = &found {
        assert!(!why.is_empty() && why.len() < 16 << 10);
    } else if !matches!(bytes, [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..]) {
        let longer = [bytes, b"<&\xFF\x00"].concat();
        assert_eq!(inspect(&longer), found, "what has been seen settles it");
    }
    let text = std::str::from_utf8(bytes);
    if let Some(text) = text.ok().filter(|text| text.len() <= WINDOW) {
        steps(text);
        agrees(text, &found);
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(WORDS)]);
    check_faults(&text);
}

/// Each step takes bytes off the document or closes an element: no more steps than twice the bytes.
fn steps(text: &str) {
    let limits = Limits::default();
    let mut scanner = Scanner::new(text, &limits);
    let (mut position, mut steps) = (0, 0);
    loop {
        let outcome = within("Scanner::token", WINDOW, PER_BYTE, FIXED, || {
            scanner.token()
        });
        assert!(scanner.position() >= position && scanner.position() <= text.len());
        assert!(scanner.depth() <= limits.depth + 1);
        match outcome {
            Ok(Token::Eof) => {
                assert_eq!(scanner.depth(), 0, "a whole document is closed");
                return;
            }
            Ok(_) => assert!(scanner.attributes().len() <= limits.attributes),
            Err(error) => return inside(&error, text.len()),
        }
        position = scanner.position();
        steps += 1;
        assert!(steps <= 2 * text.len());
    }
}

/// An error names a place in the document.
fn inside(error: &XmlError, length: usize) {
    let (XmlError::Limit { position, .. }
    | XmlError::Doctype { position }
    | XmlError::Instruction { position }
    | XmlError::Entity { position, .. }
    | XmlError::Encoding { position, .. }
    | XmlError::Prefix { position, .. }
    | XmlError::Malformed { position, .. }) = error;
    assert!(*position <= length, "{error} in {length} bytes");
}

/// Whatever a service would read as a request, a client sees as an envelope with that content.
fn agrees(text: &str, found: &Inspection) {
    let limits = Limits::default();
    let Ok(text) = &decode(text.as_bytes(), &limits) else {
        return;
    };
    for version in BOTH {
        let Ok(request) = Request::read(text, version, &limits, &[]) else {
            continue;
        };
        if !request.operation.is(version.namespace(), "Fault") {
            assert_eq!(*found, Inspection::Reply(version));
        } else if version == Version::Soap11 {
            assert_eq!(*found, fault_in(&request));
        } else {
            let right = matches!(found, Inspection::Fault { version: v, .. } if *v == version);
            assert!(right, "{found:?}");
        }
    }
}

/// The fault of SOAP 1.1 among a request's fields.
fn fault_in(request: &Request<'_>) -> Inspection {
    let (mut code, mut reason) = ("", "");
    for field in &request.fields {
        let text = field.text.as_deref().unwrap_or_default().trim();
        match field.name.local {
            "faultcode" => code = text,
            "faultstring" => reason = text,
            _ => break,
        }
    }
    Inspection::Fault {
        version: request.version,
        code: code.rsplit(':').next().unwrap_or_default().to_owned(),
        reason: reason.to_owned(),
    }
}

/// A fault with any words is read as it was meant.
fn check_faults(text: &str) {
    let detail = Detail {
        namespace: "urn:fuzz",
        name: "Trouble",
        fields: vec![("words", text.to_owned())],
    };
    for (version, code) in BOTH.into_iter().zip([Code::Server, Code::Client]) {
        for detail in [None, Some(detail.clone())] {
            let fault = Fault {
                code,
                reason: text.to_owned(),
                detail,
            };
            let expected = Inspection::Fault {
                version,
                code: code.name(version).to_owned(),
                reason: as_written(text).trim().to_owned(),
            };
            assert_eq!(inspect(fault.envelope(version).as_bytes()), expected);
        }
    }
}
