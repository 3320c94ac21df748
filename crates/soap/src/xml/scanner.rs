//! The scanner: quick-xml's events, checked against the limits and given their namespaces.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;

use super::text::{is_qualified_name, is_text, reference, shortened, value};
use super::{Attribute, Name, Token, XmlError, malformed};
use crate::limits::{Limit, Limits};

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Declarations that say nothing new, as most toolkits write them.
const USUAL: [&str; 2] = [
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>",
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
];

/// Reads a document token by token.
pub struct Scanner<'a> {
    text: &'a str,
    limits: Limits,
    reader: Reader<&'a [u8]>,
    depth: usize,
    rooted: bool,
    scope: Vec<Binding<'a>>,
    attributes: Vec<Attribute<'a>>,
    raw: Vec<(&'a str, Cow<'a, str>)>,
    pop: bool,
}

struct Binding<'a> {
    depth: usize,
    prefix: &'a str,
    uri: Cow<'a, str>,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`, which [`decode`] made.
    pub fn new(text: &'a str, limits: &Limits) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self {
            text,
            limits: *limits,
            reader,
            depth: 0,
            rooted: false,
            scope: Vec::new(),
            attributes: Vec::new(),
            raw: Vec::new(),
            pop: false,
        }
    }

    /// The byte after the last token.
    pub fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// Elements that are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The attributes of the element started last, without namespace declarations.
    pub fn attributes(&self) -> &[Attribute<'a>] {
        &self.attributes
    }

    /// The value of the attribute `local` in no namespace, of the element started last.
    pub fn attribute(&self, local: &str) -> Option<&Cow<'a, str>> {
        let found = self.attributes.iter().find(|a| a.name.is("", local));
        found.map(|attribute| &attribute.value)
    }

    /// Resolves a name written in a value, as `xsd:string`; the default namespace applies.
    pub fn resolve<'n>(&self, written: &'n str) -> Option<Name<'n>> {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let namespace = Cow::Owned(self.lookup(prefix)?.into_owned());
        Some(Name { namespace, local })
    }

    /// The next token; comments are passed over.
    pub fn token(&mut self) -> Result<Token<'a>, XmlError> {
        if std::mem::take(&mut self.pop) {
            let depth = self.depth;
            while self.scope.last().is_some_and(|b| b.depth > depth) {
                self.scope.pop();
            }
        }
        loop {
            let from = self.position();
            let event = self.reader.read_event();
            let event = event.map_err(|e| {
                let position = usize::try_from(self.reader.error_position()).unwrap_or(from);
                malformed(&e.to_string(), position)
            })?;
            let slice = &self.text[from..self.position()];
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let name = tag.name().0.len();
                    return self.start(slice, name, from);
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.pop = true;
                    return Ok(Token::End);
                }
                Event::Text(_) => {
                    if let Some(text) = self.characters(slice, from)? {
                        return Ok(Token::Text(text));
                    }
                }
                Event::CData(_) => {
                    let inner = &slice["<![CDATA[".len()..slice.len() - "]]>".len()];
                    if self.depth == 0 {
                        return Err(malformed("text outside the root element", from));
                    }
                    if let Some(text) = self.characters(inner, from)? {
                        return Ok(Token::Text(text));
                    }
                }
                Event::GeneralRef(_) => {
                    if self.depth == 0 {
                        return Err(malformed("text outside the root element", from));
                    }
                    return reference(&slice[1..slice.len() - 1], from).map(Token::Text);
                }
                Event::Comment(_) => {}
                Event::Decl(_) => self.declaration(slice, from)?,
                Event::PI(_) => return Err(XmlError::Instruction { position: from }),
                Event::DocType(_) => return Err(XmlError::Doctype { position: from }),
                Event::Eof if self.depth > 0 => {
                    return Err(malformed("the document ends inside an element", from));
                }
                Event::Eof if !self.rooted => return Err(malformed("there is no element", from)),
                Event::Eof => return Ok(Token::Eof),
            }
        }
    }

    /// Passes over the rest of the element started last.
    pub fn skip(&mut self) -> Result<(), XmlError> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            self.token()?;
        }
        Ok(())
    }

    /// The text of the element started last, up to its end; `None` when it has child elements.
    pub fn text(&mut self) -> Result<Option<Cow<'a, str>>, XmlError> {
        let mut text = Cow::Borrowed("");
        loop {
            match self.token()? {
                Token::Text(more) if text.is_empty() => text = more,
                Token::Text(more) => text.to_mut().push_str(&more),
                Token::End | Token::Eof => return Ok(Some(text)),
                Token::Start(_) => {
                    self.skip()?;
                    self.skip()?;
                    return Ok(None);
                }
            }
            self.check(text.len(), Limit::Text, self.limits.text, self.position())?;
        }
    }

    fn check(&self, n: usize, limit: Limit, allowed: usize, at: usize) -> Result<(), XmlError> {
        if n > allowed {
            return Err(XmlError::Limit {
                limit,
                allowed,
                position: at,
            });
        }
        Ok(())
    }

    fn start(&mut self, slice: &'a str, len: usize, from: usize) -> Result<Token<'a>, XmlError> {
        if self.depth == 0 && std::mem::replace(&mut self.rooted, true) {
            return Err(malformed("a second root element", from));
        }
        self.depth += 1;
        self.check(self.depth, Limit::Depth, self.limits.depth, from)?;
        let inner = &slice[1..slice.len() - 1];
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let written = &inner[..len];
        self.check_name(written, from)?;
        self.read_attributes(inner, len, from)?;
        self.attributes.clear();
        // Nothing to sort in most tags; and the buffer stays for the next.
        if self.raw.is_empty() {
            return self.qualify(written, from).map(Token::Start);
        }
        for (key, value) in std::mem::take(&mut self.raw) {
            let name = match key.split_once(':') {
                Some(_) => self.qualify(key, from)?,
                None => Name {
                    namespace: Cow::Borrowed(""),
                    local: key,
                },
            };
            if self.attributes.iter().any(|a| a.name == name) {
                return Err(malformed(
                    &format!("the attribute {key} stands twice"),
                    from,
                ));
            }
            self.attributes.push(Attribute { name, value });
        }
        self.qualify(written, from).map(Token::Start)
    }

    /// Sorts what stands in a tag into declarations (`scope`) and attributes (`raw`).
    fn read_attributes(&mut self, inner: &'a str, len: usize, from: usize) -> Result<(), XmlError> {
        if inner.len() == len {
            return Ok(());
        }
        let outer = self.scope.len();
        // Duplicates are sought above, after resolving, among at most `attributes` of them.
        for attribute in Attributes::new(inner, len).with_checks(false) {
            let attribute = attribute.map_err(|e| malformed(&e.to_string(), from))?;
            let key = attribute.key.0;
            self.check_name(key, from)?;
            self.check(attribute.value.len(), Limit::Text, self.limits.text, from)?;
            let value = value(attribute.value, from)?;
            let Some(prefix) = key.strip_prefix("xmlns").and_then(|rest| match rest {
                "" => Some(""),
                rest => rest.strip_prefix(':'),
            }) else {
                self.raw.push((key, value));
                self.check(
                    self.raw.len(),
                    Limit::Attributes,
                    self.limits.attributes,
                    from,
                )?;
                continue;
            };
            self.check(value.len(), Limit::Name, self.limits.name, from)?;
            let twice = self.scope[outer..].iter().any(|b| b.prefix == prefix);
            let reserved = matches!(prefix, "xml" | "xmlns") && value != XML;
            if twice || reserved || (value.is_empty() && !prefix.is_empty()) {
                return Err(XmlError::Prefix {
                    prefix: prefix.to_owned(),
                    position: from,
                });
            }
            self.scope.push(Binding {
                depth: self.depth,
                prefix,
                uri: value,
            });
            let declared = self.scope.len() - outer;
            self.check(declared, Limit::Namespaces, self.limits.namespaces, from)?;
            self.check(self.scope.len(), Limit::Scope, self.limits.scope, from)?;
        }
        Ok(())
    }

    fn check_name(&self, name: &str, at: usize) -> Result<(), XmlError> {
        self.check(name.len(), Limit::Name, self.limits.name, at)?;
        if is_qualified_name(name) {
            return Ok(());
        }
        Err(malformed(
            &format!("{:?} is no name", shortened(name, 40)),
            at,
        ))
    }

    fn qualify(&self, written: &'a str, position: usize) -> Result<Name<'a>, XmlError> {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let namespace = self.lookup(prefix).ok_or_else(|| XmlError::Prefix {
            prefix: prefix.to_owned(),
            position,
        })?;
        Ok(Name { namespace, local })
    }

    fn lookup(&self, prefix: &str) -> Option<Cow<'a, str>> {
        if let Some(found) = self.scope.iter().rev().find(|b| b.prefix == prefix) {
            return Some(found.uri.clone());
        }
        match prefix {
            "" => Some(Cow::Borrowed("")),
            "xml" => Some(Cow::Borrowed(XML)),
            _ => None,
        }
    }

    fn characters(&self, raw: &'a str, from: usize) -> Result<Option<Cow<'a, str>>, XmlError> {
        if raw.is_empty() {
            return Ok(None);
        }
        if self.depth == 0 {
            let blank = raw
                .bytes()
                .all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
            let outside = || malformed("text outside the root element", from);
            return if blank { Ok(None) } else { Err(outside()) };
        }
        self.check(raw.len(), Limit::Text, self.limits.text, from)?;
        if !is_text(raw) {
            return Err(malformed("a character that XML does not have", from));
        }
        // XML 1.0 section 2.11: line ends are read as one line feed.
        Ok(Some(if raw.contains('\r') {
            Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n"))
        } else {
            Cow::Borrowed(raw)
        }))
    }

    fn declaration(&self, slice: &str, position: usize) -> Result<(), XmlError> {
        if position != 0 {
            return Err(malformed(
                "an XML declaration that is not at the start",
                position,
            ));
        }
        if USUAL.contains(&slice) {
            return Ok(());
        }
        let inner = slice.trim_start_matches("<?").trim_end_matches("?>");
        for attribute in Attributes::new(inner, "xml".len()) {
            let attribute = attribute.map_err(|e| malformed(&e.to_string(), position))?;
            let value = attribute.value.to_ascii_lowercase();
            match attribute.key.0 {
                "encoding" if !matches!(&*value, "utf-8" | "utf8" | "utf-16" | "us-ascii") => {
                    let what = format!("the encoding {:?} is not read", shortened(&value, 40));
                    return Err(XmlError::Encoding { what, position });
                }
                "version" if value != "1.0" => {
                    return Err(malformed("only XML 1.0 is read", position));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
