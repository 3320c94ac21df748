//! Walking through elements: which children there are, and what their texts and attributes say.

use posthaste_soap::xml::{Scanner, Token};

use super::{DocumentError, EXTENSION, NAMESPACES};

/// Characters of a value that an error repeats.
const QUOTED: usize = 60;

/// An element that has been started, whose attributes can be asked for until it is entered.
pub(super) struct Element<'s, 'a> {
    scanner: &'s mut Scanner<'a>,
    name: String,
}

impl<'s, 'a> Element<'s, 'a> {
    /// The element that `scanner` has started last, of the local name `name`.
    pub(super) fn new(scanner: &'s mut Scanner<'a>, name: &str) -> Self {
        let name = name.to_owned();
        Self { scanner, name }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The value of an attribute, without blanks around it.
    pub(super) fn attribute(&self, name: &'static str) -> Option<String> {
        let value = self.scanner.attribute(name)?;
        Some(value.trim().to_owned())
    }

    /// The value of an attribute that must stand and say something.
    pub(super) fn needed(&self, name: &'static str) -> Result<String, DocumentError> {
        let value = self.attribute(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| self.missing(name))
    }

    pub(super) fn missing(&self, what: &'static str) -> DocumentError {
        DocumentError::Missing {
            what,
            inside: self.name.clone(),
            position: self.scanner.position(),
        }
    }

    pub(super) fn twice(&self, what: &str) -> DocumentError {
        DocumentError::Twice {
            what: shortened(what),
            position: self.scanner.position(),
        }
    }

    /// Why a value of this element, or of one of its attributes, cannot be read.
    pub(super) fn wrong(&self, attribute: &str, text: &str, wanted: &str) -> DocumentError {
        let at = if attribute.is_empty() { "" } else { "@" };
        DocumentError::Value {
            inside: format!("{}{at}{attribute}", self.name),
            text: shortened(text),
            wanted: wanted.to_owned(),
            position: self.scanner.position(),
        }
    }

    /// Enters the element and calls `child` with each of its children, which it must read to its end; those
    /// it answers `false` to are not `known`.
    pub(super) fn children(
        self,
        known: &[&'static str],
        mut child: impl FnMut(Element<'_, 'a>, &str) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        loop {
            let position = self.scanner.position();
            let unexpected = |found: String| DocumentError::Unexpected {
                found,
                inside: self.name.clone(),
                wanted: known.join(", "),
                position,
            };
            match self.scanner.token()? {
                Token::End | Token::Eof => return Ok(()),
                Token::Text(text) if text.trim().is_empty() => {}
                Token::Text(text) => return Err(unexpected(shortened(&text))),
                Token::Start(name) => {
                    let ours = name.namespace.is_empty() || NAMESPACES.contains(&&*name.namespace);
                    match known.iter().find(|known| ours && **known == name.local) {
                        Some(local) => child(Element::new(self.scanner, local), local)?,
                        None if ours && name.local == EXTENSION => self.scanner.skip()?,
                        None => return Err(unexpected(format!("<{}>", shortened(name.local)))),
                    }
                }
            }
        }
    }

    /// The element's text, read to its end.
    pub(super) fn text(self) -> Result<Value, DocumentError> {
        let position = self.scanner.position();
        let Some(text) = self.scanner.text()? else {
            return Err(DocumentError::Unexpected {
                found: "an element".to_owned(),
                inside: self.name,
                wanted: "text".to_owned(),
                position,
            });
        };
        Ok(Value {
            inside: self.name,
            text: text.trim().to_owned(),
            position,
        })
    }

    /// Reads past the element, which has no children.
    pub(super) fn end(self) -> Result<(), DocumentError> {
        self.children(&[], |_, _| Ok(()))
    }
}

/// What an element says.
pub(super) struct Value {
    inside: String,
    text: String,
    position: usize,
}

impl Value {
    /// What `read` makes of it.
    pub(super) fn read<T>(
        self,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, DocumentError> {
        read(&self.text).ok_or_else(|| DocumentError::Value {
            text: shortened(&self.text),
            inside: self.inside,
            wanted: wanted.to_owned(),
            position: self.position,
        })
    }
}

/// The beginning of a text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
