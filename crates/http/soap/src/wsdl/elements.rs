//! Access to the elements of a description and of its schemas.

use crate::limits::{Limit, Limits};
use crate::xml::{Scanner, Token, XmlError};

/// Namespace and local name.
pub(super) type QName = (String, String);

/// Calls `act` with each child of the element started last. `act` must read the child to its end.
pub(super) fn each_child(
    scanner: &mut Scanner<'_>,
    mut act: impl FnMut(&mut Scanner<'_>, &str, &str) -> Result<(), XmlError>,
) -> Result<(), XmlError> {
    loop {
        match scanner.token()? {
            Token::Start(name) => act(scanner, &name.namespace, name.local)?,
            Token::End | Token::Eof => return Ok(()),
            Token::Text(_) => {}
        }
    }
}

pub(super) fn attribute(scanner: &Scanner<'_>, name: &str) -> String {
    scanner
        .attribute(name)
        .map(|value| value.trim().to_owned())
        .unwrap_or_default()
}

/// Target namespace of the element started last, with the length limit of declared namespaces.
pub(super) fn namespace(scanner: &Scanner<'_>, limits: &Limits) -> Result<String, XmlError> {
    let namespace = attribute(scanner, "targetNamespace");
    if namespace.len() > limits.name {
        return Err(XmlError::Limit {
            limit: Limit::Name,
            allowed: limits.name,
            position: scanner.position(),
        });
    }
    Ok(namespace)
}

/// Full name that an attribute's value refers to. An unknown prefix gives no namespace.
pub(super) fn reference(scanner: &Scanner<'_>, name: &str) -> Option<QName> {
    let written = scanner.attribute(name)?.trim().to_owned();
    Some(match scanner.resolve(&written) {
        Some(name) => (name.namespace.into_owned(), name.local.to_owned()),
        None => (String::new(), written),
    })
}

pub(super) fn import(scanner: &Scanner<'_>) -> String {
    let location = ["location", "schemaLocation", "namespace"].map(|name| attribute(scanner, name));
    location
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}
