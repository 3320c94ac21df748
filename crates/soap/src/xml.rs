//! A pull scanner over XML 1.0 with namespaces, in which every bound of [`Limits`] holds.
//!
//! quick-xml finds the events; this file adds what a service on an open network needs: no DOCTYPE
//! (WS-I R1008), no processing instruction (R1009), UTF-8 or UTF-16 only (R1012), only the five named
//! entities, bounded prefixes, exactly one root. Names and values borrow from the document. Prefixes
//! are resolved here, and not by quick-xml, so that the search for a prefix is bounded too.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use thiserror::Error;

use crate::limits::{Limit, Limits};

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Why a document was refused, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum XmlError {
    /// More of something than [`Limits`] allows.
    #[error("byte {position}: more than {allowed} {limit}")]
    Limit {
        /// Which limit.
        limit: Limit,
        /// Its value.
        allowed: usize,
        /// Where it was passed.
        position: usize,
    },
    /// A DOCTYPE, which R1008 forbids.
    #[error("byte {position}: a DOCTYPE is not allowed (R1008)")]
    Doctype {
        /// Where it starts.
        position: usize,
    },
    /// A processing instruction, which R1009 forbids.
    #[error("byte {position}: a processing instruction is not allowed (R1009)")]
    Instruction {
        /// Where it starts.
        position: usize,
    },
    /// An entity that is not one of the five, or a reference to no character of XML.
    #[error(
        "byte {position}: the entity &{name}; is not defined: only lt, gt, amp, apos, quot and numbers of characters are"
    )]
    Entity {
        /// Its name.
        name: String,
        /// Where it starts.
        position: usize,
    },
    /// Another encoding than UTF-8 or UTF-16, or bytes that are not in it.
    #[error("byte {position}: {what}: send UTF-8 or UTF-16 (R1012)")]
    Encoding {
        /// What is wrong.
        what: String,
        /// Where.
        position: usize,
    },
    /// A prefix nobody declared, or a declaration that is not allowed.
    #[error("byte {position}: the namespace prefix {prefix:?} is not declared or may not be")]
    Prefix {
        /// The prefix.
        prefix: String,
        /// Where it is used.
        position: usize,
    },
    /// Not well-formed in some other way.
    #[error("byte {position}: not well-formed XML: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// Where.
        position: usize,
    },
}

/// A name in a namespace; the namespace is empty where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// The namespace's URI.
    pub namespace: Cow<'a, str>,
    /// The part after the prefix.
    pub local: &'a str,
}

/// An attribute with its references resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name; unprefixed attributes are in no namespace.
    pub name: Name<'a>,
    /// Its value, normalised as XML 1.0 section 3.3.3 says.
    pub value: Cow<'a, str>,
}

/// One step through a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// An element starts; its attributes are in [`Scanner::attributes`].
    Start(Name<'a>),
    /// The element that was started last and not ended yet, ends.
    End,
    /// Character data: a piece without references, or one reference, or a CDATA section.
    Text(Cow<'a, str>),
    /// The document is over, and was whole.
    Eof,
}

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

/// Turns bytes into text: UTF-8, or UTF-16 with a byte order mark (R1012).
pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, str>, XmlError> {
    if bytes.len() > limits.total {
        return Err(XmlError::Limit {
            limit: Limit::Total,
            allowed: limits.total,
            position: limits.total,
        });
    }
    let wrong = |what: &str, position| XmlError::Encoding {
        what: what.to_owned(),
        position,
    };
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        _ => {
            let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            return std::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|e| wrong("these bytes are not UTF-8", e.valid_up_to()));
        }
    };
    let (pairs, rest) = bytes[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong("half a character of UTF-16", bytes.len() - 1));
    }
    char::decode_utf16(pairs.iter().copied().map(unit))
        .collect::<Result<String, _>>()
        .map(Cow::Owned)
        .map_err(|_| wrong("these bytes are not UTF-16", 2))
}

impl Name<'_> {
    /// Whether this is the name `local` in `namespace`.
    pub fn is(&self, namespace: &str, local: &str) -> bool {
        self.local == local && self.namespace == namespace
    }
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
    pub fn next(&mut self) -> Result<Token<'a>, XmlError> {
        if std::mem::take(&mut self.pop) {
            let depth = self.depth;
            while self.scope.last().is_some_and(|b| b.depth > depth) {
                self.scope.pop();
            }
        }
        loop {
            let from = self.position();
            let event = self.reader.read_event();
            let event = event.map_err(|e| XmlError::Malformed {
                what: e.to_string(),
                position: usize::try_from(self.reader.error_position()).unwrap_or(from),
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
            self.next()?;
        }
        Ok(())
    }

    /// The text of the element started last, up to its end; `None` when it has child elements.
    pub fn text(&mut self) -> Result<Option<Cow<'a, str>>, XmlError> {
        let mut text = Cow::Borrowed("");
        loop {
            match self.next()? {
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
        let first = |b: u8| b.is_ascii_alphabetic() || b == b'_' || b >= 0x80;
        let later = |b: u8| first(b) || b.is_ascii_digit() || matches!(b, b'-' | b'.');
        let part = |p: &str| p.bytes().next().is_some_and(first) && p.bytes().all(later);
        let good = match name.split_once(':') {
            Some((prefix, local)) => part(prefix) && part(local),
            None => part(name),
        };
        if good {
            return Ok(());
        }
        let shown: String = name.chars().take(40).collect();
        Err(malformed(&format!("{shown:?} is no name"), at))
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
        if raw
            .bytes()
            .any(|b| b < b' ' && !matches!(b, b'\t' | b'\r' | b'\n'))
        {
            return Err(malformed("a control character in the text", from));
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
        let inner = slice.trim_start_matches("<?").trim_end_matches("?>");
        for attribute in Attributes::new(inner, "xml".len()) {
            let attribute = attribute.map_err(|e| malformed(&e.to_string(), position))?;
            let value = attribute.value.to_ascii_lowercase();
            match attribute.key.0 {
                "encoding" if !matches!(&*value, "utf-8" | "utf8" | "utf-16" | "us-ascii") => {
                    let what = format!("the encoding {value:?} is not read");
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

fn malformed(what: &str, position: usize) -> XmlError {
    XmlError::Malformed {
        what: what.to_owned(),
        position,
    }
}

fn reference<'a>(name: &'a str, position: usize) -> Result<Cow<'a, str>, XmlError> {
    let unknown = || XmlError::Entity {
        name: name.chars().take(40).collect(),
        position,
    };
    let Some(number) = name.strip_prefix('#') else {
        return resolve_predefined_entity(name)
            .map(Cow::Borrowed)
            .ok_or_else(unknown);
    };
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let signed = number.trim_start_matches('x').starts_with('+');
    code.ok()
        .filter(|_| !signed)
        .and_then(char::from_u32)
        .filter(|c| is_char(*c))
        .map(|c| Cow::Owned(c.to_string()))
        .ok_or_else(unknown)
}

/// XML 1.0 production 2, `Char`.
pub(crate) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn value<'a>(raw: Cow<'a, str>, position: usize) -> Result<Cow<'a, str>, XmlError> {
    if raw
        .bytes()
        .any(|b| b == b'<' || (b < b' ' && !matches!(b, b'\t' | b'\r' | b'\n')))
    {
        return Err(malformed(
            "a character that an attribute may not hold",
            position,
        ));
    }
    let raw = if raw.bytes().any(|b| b < b' ') {
        Cow::Owned(raw.replace("\r\n", " ").replace(['\t', '\n', '\r'], " "))
    } else {
        raw
    };
    if !raw.contains('&') {
        return Ok(raw);
    }
    let entity = || XmlError::Entity {
        name: raw
            .chars()
            .skip_while(|c| *c != '&')
            .skip(1)
            .take_while(|c| *c != ';')
            .take(40)
            .collect(),
        position,
    };
    match unescape(&raw) {
        Ok(text) if text.chars().all(is_char) => Ok(Cow::Owned(text.into_owned())),
        _ => Err(entity()),
    }
}
