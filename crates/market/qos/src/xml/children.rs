//! Access to the children, text and attributes of XML elements.

use posthaste_soap::xml::{Scanner, Token};

use super::{DocumentError, EXTENSION, NAMESPACES};

/// Maximum number of characters of a value in an error message.
const QUOTED: usize = 60;

/// A started element. Its attributes are available until it is entered.
pub(super) struct Element<'s, 'a> {
    scanner: &'s mut Scanner<'a>,
    name: String,
}

impl<'s, 'a> Element<'s, 'a> {
    /// The element that `scanner` has started last, with the local name `name`.
    pub(super) fn new(scanner: &'s mut Scanner<'a>, name: &str) -> Self {
        let name = name.to_owned();
        Self { scanner, name }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Value of an attribute, trimmed.
    pub(super) fn attribute(&self, name: &'static str) -> Option<String> {
        let value = self.scanner.attribute(name)?;
        Some(value.trim().to_owned())
    }

    /// Value of an attribute that must be present and not empty.
    pub(super) fn needed(&self, name: &'static str) -> Result<String, DocumentError> {
        let value = self.attribute(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| self.missing(name))
    }

    pub(super) fn missing(&self, item: &'static str) -> DocumentError {
        DocumentError::Missing {
            item,
            inside: self.name.clone(),
            position: self.scanner.position(),
        }
    }

    pub(super) fn twice(&self, item: &str) -> DocumentError {
        DocumentError::Twice {
            item: shortened(item),
            position: self.scanner.position(),
        }
    }

    /// Error for an invalid value of this element or of one of its attributes.
    pub(super) fn wrong(&self, attribute: &str, text: &str, wanted: &str) -> DocumentError {
        let at = if attribute.is_empty() { "" } else { "@" };
        DocumentError::Value {
            inside: format!("{}{at}{attribute}", self.name),
            text: shortened(text),
            wanted: wanted.to_owned(),
            position: self.scanner.position(),
        }
    }

    /// Enters the element and calls `child` with each child of a `known` name. `child` must read it to its end. Other
    /// children and text are errors, except for extensions.
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

    /// Reads the element's text and its end.
    pub(super) fn text(self) -> Result<ElementText, DocumentError> {
        let position = self.scanner.position();
        let Some(text) = self.scanner.text()? else {
            return Err(DocumentError::Unexpected {
                found: "an element".to_owned(),
                inside: self.name,
                wanted: "text".to_owned(),
                position,
            });
        };
        Ok(ElementText {
            inside: self.name,
            text: text.trim().to_owned(),
            position,
        })
    }

    /// Reads to the end of the element, which must have no children.
    pub(super) fn end(self) -> Result<(), DocumentError> {
        self.children(&[], |_, _| Ok(()))
    }
}

/// Text of an element.
pub(super) struct ElementText {
    inside: String,
    text: String,
    position: usize,
}

impl ElementText {
    /// Converts the text with `read`.
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

/// The first characters of a text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
