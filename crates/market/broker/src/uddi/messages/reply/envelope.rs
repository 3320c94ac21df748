//! Common parts of all replies: envelope, message or fault, and traversal of elements.

use posthaste_soap::Version as Soap;
use posthaste_soap::xml::{Scanner, Token, XmlError, decode};

use super::{LIMITS, Parsed, ReplyError};
use crate::uddi::messages::version::Version;

/// Maximum characters quoted from a fault.
const QUOTED: usize = 300;

pub(super) fn read_reply(
    bytes: &[u8],
    version: Version,
    wanted: &str,
    child: impl FnMut(&mut Scanner<'_>, &str) -> Result<(), XmlError>,
) -> Parsed<()> {
    read_reply_with(bytes, version, wanted, |_| (), child)
}

/// Calls `root` at the message `wanted`, and `child` for each of its children.
pub(super) fn read_reply_with(
    bytes: &[u8],
    version: Version,
    wanted: &str,
    root: impl FnOnce(&Scanner<'_>),
    mut child: impl FnMut(&mut Scanner<'_>, &str) -> Result<(), XmlError>,
) -> Parsed<()> {
    read(bytes, version, |at, found| {
        if found != Some((version.namespace(), wanted)) {
            let found = found.map_or("nothing".to_owned(), |(namespace, name)| {
                format!("{name:?} of {namespace:?}")
            });
            let wanted = format!("{wanted:?} of {:?}", version.namespace());
            return Err(ReplyError::Unexpected { found, wanted });
        }
        root(at);
        Ok(children(at, version, &mut child)?)
    })
}

/// Parses a complete envelope and calls `message` at the child of Body, unless it is a fault.
fn read(
    bytes: &[u8],
    version: Version,
    message: impl FnOnce(&mut Scanner<'_>, Option<(&str, &str)>) -> Parsed<()>,
) -> Parsed<()> {
    let text = decode(bytes, &LIMITS)?;
    let mut scanner = Scanner::new(&text, &LIMITS);
    let envelope = |found: String| ReplyError::Unexpected {
        found,
        wanted: "an envelope of SOAP 1.1".to_owned(),
    };
    let soap = Soap::Soap11.namespace();
    match scanner.token()? {
        Token::Start(name) if name.is(soap, "Envelope") => {}
        Token::Start(name) => {
            return Err(envelope(format!(
                "{:?} of {:?}",
                name.local, name.namespace
            )));
        }
        _ => return Err(envelope("nothing".to_owned())),
    }
    loop {
        match scanner.token()? {
            Token::Start(name) if name.is(soap, "Body") => break,
            Token::Start(_) => scanner.skip()?,
            Token::Text(_) => {}
            Token::End | Token::Eof => {
                return Err(envelope("an envelope without a Body".to_owned()));
            }
        }
    }
    let found = loop {
        match scanner.token()? {
            Token::Start(name) => break Some(name),
            Token::Text(_) => {}
            Token::End | Token::Eof => break None,
        }
    };
    match found {
        Some(name) if name.is(soap, "Fault") => return Err(fault(&mut scanner, version)?),
        Some(name) => {
            message(&mut scanner, Some((&name.namespace, name.local)))?;
        }
        None => message(&mut scanner, None)?,
    }
    while scanner.token()? != Token::Eof {}
    Ok(())
}

/// Parses the fault that `at` has started.
fn fault(at: &mut Scanner<'_>, version: Version) -> Result<ReplyError, XmlError> {
    let (mut reason, mut report) = (String::new(), None);
    // The children of a fault have no namespace (R1001).
    each(at, |at, namespace, name| match (namespace, name) {
        ("", "faultstring") => {
            reason = shortened(&element_text(at)?);
            Ok(())
        }
        ("", "detail") => children(at, version, |at, name| match name {
            "dispositionReport" => children(at, version, |at, name| match name {
                "result" if report.is_none() => children(at, version, |at, name| {
                    if name == "errInfo" {
                        let code = shortened(&key(at, "errCode"));
                        report = Some((code, shortened(&element_text(at)?)));
                    }
                    Ok(())
                }),
                _ => Ok(()),
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    Ok(match report {
        // The fault string names the key, the report only the rule.
        Some((code, message)) => {
            let message = if reason.is_empty() { message } else { reason };
            ReplyError::Refused { code, message }
        }
        None => ReplyError::Fault(reason),
    })
}

pub(super) fn children<'a>(
    at: &mut Scanner<'a>,
    version: Version,
    mut child: impl FnMut(&mut Scanner<'a>, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    each(at, |at, namespace, name| {
        if namespace == version.namespace() {
            child(at, name)
        } else {
            Ok(())
        }
    })
}

/// Calls `child` for each child of the current element, and skips unread content of the child.
fn each<'a>(
    at: &mut Scanner<'a>,
    mut child: impl FnMut(&mut Scanner<'a>, &str, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    loop {
        match at.token()? {
            Token::Start(name) => {
                let outside = at.depth() - 1;
                child(at, &name.namespace, name.local)?;
                while at.depth() > outside {
                    at.token()?;
                }
            }
            Token::Text(_) => {}
            Token::End | Token::Eof => return Ok(()),
        }
    }
}

/// Value of an attribute; empty if missing.
pub(super) fn key(at: &Scanner<'_>, name: &str) -> String {
    at.attribute(name)
        .map(|value| value.trim().to_owned())
        .unwrap_or_default()
}

/// Text of the current element; empty if it has child elements.
pub(super) fn element_text(at: &mut Scanner<'_>) -> Result<String, XmlError> {
    Ok(at
        .text()?
        .map(|text| text.trim().to_owned())
        .unwrap_or_default())
}

fn shortened(message: &str) -> String {
    message.chars().take(QUOTED).collect()
}
