//! The scanner: checks pieces of markup against the limits and resolves their namespaces.

use std::borrow::Cow;

use memchr::memchr_iter;

use super::markup::{Markup, Piece, QName};
use super::text::{is_name, is_text, reference, shortened, value};
use super::{Attribute, Name, Token, XmlError, malformed};
use crate::limits::{Limit, Limits};

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Initial capacity for levels and declarations: more than a usual request needs.
const USUAL: usize = 8;

/// Reads a document token by token.
pub struct Scanner<'a> {
    markup: Markup<'a>,
    limits: Limits,
    /// The names of the open elements, as written.
    open: Vec<&'a str>,
    /// The element started last ended in the same tag.
    empty: bool,
    rooted: bool,
    scope: Vec<Binding<'a>>,
    attributes: Vec<Attribute<'a>>,
    raw: Vec<(QName<'a>, Cow<'a, str>)>,
}

struct Binding<'a> {
    depth: usize,
    prefix: &'a str,
    uri: Cow<'a, str>,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner at the start of `text`, the result of [`decode`].
    ///
    /// [`decode`]: super::decode
    pub fn new(text: &'a str, limits: &Limits) -> Self {
        Self {
            markup: Markup::new(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
            limits: *limits,
            open: Vec::with_capacity(USUAL),
            empty: false,
            rooted: false,
            scope: Vec::with_capacity(USUAL),
            attributes: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// Byte position after the last token.
    pub fn position(&self) -> usize {
        self.markup.position()
    }

    /// Number of open elements.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The attributes of the element started last, without namespace declarations.
    pub fn attributes(&self) -> &[Attribute<'a>] {
        &self.attributes
    }

    /// Value of the attribute `local`, in no namespace, of the element started last.
    pub fn attribute(&self, local: &str) -> Option<&Cow<'a, str>> {
        let found = self.attributes.iter().find(|a| a.name.is("", local));
        found.map(|attribute| &attribute.value)
    }

    /// Resolves a qualified name in a value, such as `xsd:string`. The default namespace applies.
    pub fn resolve<'n>(&self, written: &'n str) -> Option<Name<'n>> {
        let (prefix, local) = written.split_once(':').unwrap_or(("", written));
        let namespace = Cow::Owned(self.lookup(prefix)?.into_owned());
        Some(Name { namespace, local })
    }

    /// The next token. Skips comments, and instructions where they are permitted.
    pub fn token(&mut self) -> Result<Token<'a>, XmlError> {
        // The declarations of the element that ended last were in scope until now.
        let depth = self.open.len();
        while self.scope.last().is_some_and(|b| b.depth > depth) {
            self.scope.pop();
        }
        if std::mem::take(&mut self.empty) {
            self.open.pop();
            return Ok(Token::End);
        }
        loop {
            let from = self.position();
            match self.markup.piece()? {
                Piece::Start(name) => return self.start(name, from),
                Piece::End(name) => {
                    return match self.open.pop() {
                        Some(open) if open == name => Ok(Token::End),
                        _ => Err(malformed("an end tag that ends no element", from)),
                    };
                }
                Piece::Text(text) if ends_section(text) => {
                    return Err(malformed(
                        "the end of a CDATA section in text: write ]]&gt;",
                        from,
                    ));
                }
                Piece::Text(text) => {
                    if let Some(text) = self.characters(text, from)? {
                        return Ok(Token::Text(text));
                    }
                }
                Piece::CData(_) | Piece::Reference(_) if depth == 0 => {
                    return Err(malformed("text outside the root element", from));
                }
                Piece::CData(text) => {
                    if let Some(text) = self.characters(text, from)? {
                        return Ok(Token::Text(text));
                    }
                }
                Piece::Reference(name) => return reference(name, from).map(Token::Text),
                Piece::Comment => {}
                Piece::Declaration(inner) => self.declaration(inner, from)?,
                Piece::Instruction(inner) => self.instruction(inner, from)?,
                Piece::Eof if depth > 0 => {
                    return Err(malformed("the document ends inside an element", from));
                }
                Piece::Eof if !self.rooted => return Err(malformed("there is no element", from)),
                Piece::Eof => return Ok(Token::Eof),
            }
        }
    }

    /// Skips the rest of the element started last.
    pub fn skip(&mut self) -> Result<(), XmlError> {
        let outside = self.depth().saturating_sub(1);
        while self.depth() > outside {
            self.token()?;
        }
        Ok(())
    }

    /// Text of the element started last, read to its end. `None` if it has child elements.
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

    fn start(&mut self, name: QName<'a>, from: usize) -> Result<Token<'a>, XmlError> {
        if self.open.is_empty() && std::mem::replace(&mut self.rooted, true) {
            return Err(malformed("a second root element", from));
        }
        self.open.push(name.written);
        self.check(self.depth(), Limit::Depth, self.limits.depth, from)?;
        self.check(name.written.len(), Limit::Name, self.limits.name, from)?;
        self.read_attributes(from)?;
        self.empty = self.markup.close()?;
        self.attributes.clear();
        // Most tags have no attributes. The buffer is kept for the next tag.
        if !self.raw.is_empty() {
            self.resolve_attributes(from)?;
        }
        self.qualify(name, from).map(Token::Start)
    }

    /// Splits the content of a tag into declarations (`scope`) and attributes (`raw`).
    fn read_attributes(&mut self, from: usize) -> Result<(), XmlError> {
        let outer = self.scope.len();
        while let Some((key, raw)) = self.markup.attribute()? {
            self.check(key.written.len(), Limit::Name, self.limits.name, from)?;
            self.check(raw.len(), Limit::Text, self.limits.text, from)?;
            let value = value(raw, from)?;
            match (key.prefix, key.local) {
                ("", "xmlns") => self.declare("", value, outer, from)?,
                ("xmlns", prefix) => self.declare(prefix, value, outer, from)?,
                _ => {
                    self.raw.push((key, value));
                    let attributes = self.limits.attributes;
                    self.check(self.raw.len(), Limit::Attributes, attributes, from)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a declaration of the current element. Those before `outer` belong to enclosing elements.
    fn declare(
        &mut self,
        prefix: &'a str,
        uri: Cow<'a, str>,
        outer: usize,
        position: usize,
    ) -> Result<(), XmlError> {
        self.check(uri.len(), Limit::Name, self.limits.name, position)?;
        let twice = self.scope[outer..].iter().any(|b| b.prefix == prefix);
        let reserved = matches!(prefix, "xml" | "xmlns") && uri != XML;
        if twice || reserved || (uri.is_empty() && !prefix.is_empty()) {
            let prefix = prefix.to_owned();
            return Err(XmlError::Prefix { prefix, position });
        }
        let depth = self.depth();
        self.scope.push(Binding { depth, prefix, uri });
        let (declared, scope) = (self.scope.len() - outer, self.scope.len());
        self.check(
            declared,
            Limit::Namespaces,
            self.limits.namespaces,
            position,
        )?;
        self.check(scope, Limit::Scope, self.limits.scope, position)
    }

    /// Resolves the namespaces of attributes, after all declarations of the tag are known.
    fn resolve_attributes(&mut self, from: usize) -> Result<(), XmlError> {
        for (key, value) in std::mem::take(&mut self.raw) {
            let name = match key.prefix {
                "" => Name {
                    namespace: Cow::Borrowed(""),
                    local: key.local,
                },
                _ => self.qualify(key, from)?,
            };
            if self.attributes.iter().any(|a| a.name == name) {
                let violation = format!("the attribute {} appears twice", key.written);
                return Err(malformed(&violation, from));
            }
            self.attributes.push(Attribute { name, value });
        }
        Ok(())
    }

    fn qualify(&self, name: QName<'a>, position: usize) -> Result<Name<'a>, XmlError> {
        let namespace = self.lookup(name.prefix).ok_or_else(|| XmlError::Prefix {
            prefix: name.prefix.to_owned(),
            position,
        })?;
        Ok(Name {
            namespace,
            local: name.local,
        })
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
        if self.open.is_empty() {
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
        // XML 1.0, section 2.11: line ends are read as one line feed.
        Ok(Some(if raw.contains('\r') {
            Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n"))
        } else {
            Cow::Borrowed(raw)
        }))
    }

    /// Checks the target, a name other than `xml`. Any text may follow it after white space (XML 1.0, section 2.6).
    fn instruction(&self, inner: &str, position: usize) -> Result<(), XmlError> {
        if !self.limits.instructions {
            return Err(XmlError::Instruction { position });
        }
        let target = inner.split([' ', '\t', '\r', '\n']).next();
        let target = target.unwrap_or_default();
        if is_name(target) && !target.eq_ignore_ascii_case("xml") {
            Ok(())
        } else {
            Err(malformed("an instruction without a target", position))
        }
    }

    fn declaration(&self, inner: &str, position: usize) -> Result<(), XmlError> {
        if position != 0 {
            return Err(malformed(
                "an XML declaration that is not at the start",
                position,
            ));
        }
        let mut markup = Markup::new(inner);
        while let Some((key, value)) = markup.attribute()? {
            match key.written {
                "version" if value != "1.0" => {
                    return Err(malformed("only XML 1.0 is read", position));
                }
                "encoding" if !is_read(value) => {
                    return Err(XmlError::Encoding {
                        violation: format!("the encoding {:?} is not read", shortened(value, 40)),
                        position,
                    });
                }
                _ => {}
            }
        }
        if markup.position() == inner.len() {
            Ok(())
        } else {
            Err(malformed(
                "an XML declaration with something else in it",
                position,
            ))
        }
    }
}

/// Returns true if the text contains `]]>`, which is not permitted (XML 1.0, section 2.4).
fn ends_section(text: &str) -> bool {
    let text = text.as_bytes();
    memchr_iter(b'>', text).any(|at| text[..at].ends_with(b"]]"))
}

/// Returns true if [`decode`](super::decode) supports a document with this declared encoding.
fn is_read(encoding: &str) -> bool {
    ["utf-8", "utf8", "utf-16", "us-ascii"]
        .iter()
        .any(|read| encoding.eq_ignore_ascii_case(read))
}
