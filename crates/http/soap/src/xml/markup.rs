//! Markup: the boundaries of the pieces of a document.
//!
//! Matching tags, namespaces and limits are the scanner's. No crate is used, because reading the envelope is most of
//! the extra cost of a SOAP reply over a page: a whole request takes 7,500 instructions this way and 12,400 with
//! quick-xml's events, and names are checked as well. The tests use quick-xml as the oracle.

use memchr::{memchr, memchr_iter, memchr2, memmem};

use super::text::{NAME, NAME_START, is};
use super::{XmlError, malformed, shortened};

/// A name as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QName<'a> {
    /// The whole name.
    pub(crate) written: &'a str,
    /// Part before the colon; empty without one.
    pub(crate) prefix: &'a str,
    /// Part after the colon, or the whole name.
    pub(crate) local: &'a str,
}

/// A piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// `<name`. [`Markup::attribute`] and [`Markup::close`] read the rest of the tag.
    Start(QName<'a>),
    /// `</name>`.
    End(&'a str),
    /// Characters without markup and references.
    Text(&'a str),
    /// Content of a CDATA section.
    CData(&'a str),
    /// `&name;`.
    Reference(&'a str),
    /// Text between `<?xml` and `?>`.
    Declaration(&'a str),
    /// Text between `<?` and `?>` of any other instruction.
    Instruction(&'a str),
    /// A comment.
    Comment,
    /// End of the document.
    Eof,
}

/// A position in a document.
pub(crate) struct Markup<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Markup<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Position after the last piece.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The next piece.
    pub(crate) fn piece(&mut self) -> Result<Piece<'a>, XmlError> {
        let rest = self.rest();
        match rest.as_bytes() {
            [] => Ok(Piece::Eof),
            [b'<', b'/', ..] => self.end(),
            [b'<', b'!', ..] => self.declared(),
            [b'<', b'?', ..] => self.instruction(),
            [b'<', ..] => {
                self.at += 1;
                self.name().map(Piece::Start)
            }
            [b'&', ..] => {
                let length = memchr2(b';', b'<', rest.as_bytes());
                match length.filter(|end| rest.as_bytes()[*end] == b';') {
                    Some(end) => {
                        self.at += end + 1;
                        Ok(Piece::Reference(&rest[1..end]))
                    }
                    None => Err(malformed("a reference without a semicolon", self.at)),
                }
            }
            bytes => {
                let length = memchr2(b'<', b'&', bytes).unwrap_or(bytes.len());
                self.at += length;
                Ok(Piece::Text(&rest[..length]))
            }
        }
    }

    /// The next attribute of the current tag, with its raw value; `None` at the end of the tag.
    pub(crate) fn attribute(&mut self) -> Result<Option<(QName<'a>, &'a str)>, XmlError> {
        let from = self.at;
        self.space();
        match self.rest().as_bytes() {
            [] | [b'>', ..] | [b'/', b'>', ..] => Ok(None),
            _ if self.at == from => Err(malformed("no space before an attribute", from)),
            _ => self.pair().map(Some),
        }
    }

    /// Reads the end of a tag. Returns true if it also ends its element (`/>`).
    pub(crate) fn close(&mut self) -> Result<bool, XmlError> {
        let empty = self.take("/");
        if self.take(">") {
            return Ok(empty);
        }
        Err(malformed("a tag without an end", self.at))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
        let rest = self.rest().as_bytes();
        self.at += rest.iter().position(|b| !blank(b)).unwrap_or(rest.len());
    }

    /// Reads a `QName` (Namespaces in XML 1.0, production 7).
    fn name(&mut self) -> Result<QName<'a>, XmlError> {
        let rest = self.rest();
        let first = plain_name(rest.as_bytes());
        let (length, colon) = match rest.as_bytes().get(first) {
            Some(b':') if first > 0 => {
                (first + 1 + plain_name(&rest.as_bytes()[first + 1..]), first)
            }
            _ => (first, 0),
        };
        if first == 0 || length == colon + 1 && colon > 0 {
            let violation = format!("{:?} does not begin with a name", shortened(rest, 40));
            return Err(malformed(&violation, self.at));
        }
        self.at += length;
        let written = &rest[..length];
        Ok(QName {
            written,
            prefix: &written[..colon],
            local: &written[if colon > 0 { colon + 1 } else { 0 }..],
        })
    }

    /// Reads `name="value"`, in either quotes.
    fn pair(&mut self) -> Result<(QName<'a>, &'a str), XmlError> {
        let name = self.name()?;
        self.space();
        if !self.take("=") {
            return Err(malformed("an attribute without a value", self.at));
        }
        self.space();
        let rest = self.rest();
        let quote = match rest.as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => return Err(malformed("an attribute's value without quotes", self.at)),
        };
        match memchr(quote, &rest.as_bytes()[1..]) {
            Some(length) => {
                self.at += length + 2;
                Ok((name, &rest[1..=length]))
            }
            None => Err(malformed("an attribute's value without an end", self.at)),
        }
    }

    fn end(&mut self) -> Result<Piece<'a>, XmlError> {
        self.at += "</".len();
        let name = self.name()?;
        self.space();
        if self.take(">") {
            Ok(Piece::End(name.written))
        } else {
            Err(malformed("an end tag without an end", self.at))
        }
    }

    /// Reads a comment or a CDATA section. Nothing else may begin with an exclamation mark.
    fn declared(&mut self) -> Result<Piece<'a>, XmlError> {
        if self.take("<!--") {
            // XML 1.0, section 2.5: two hyphens may occur only at the end of a comment.
            let Some(length) = memmem::find(self.rest().as_bytes(), b"--") else {
                return Err(malformed("a comment without an end", self.at));
            };
            self.at += length;
            return if self.take("-->") {
                Ok(Piece::Comment)
            } else {
                Err(malformed("two hyphens inside a comment", self.at))
            };
        }
        if self.take("<![CDATA[") {
            let rest = self.rest();
            let Some(length) = memmem::find(rest.as_bytes(), b"]]>") else {
                return Err(malformed("a CDATA section without an end", self.at));
            };
            self.at += length + "]]>".len();
            return Ok(Piece::CData(&rest[..length]));
        }
        let position = self.at;
        match self.rest().get(.."<!DOCTYPE".len()) {
            Some(word) if word.eq_ignore_ascii_case("<!DOCTYPE") => {
                Err(XmlError::Doctype { position })
            }
            _ => Err(malformed("neither a comment nor a CDATA section", position)),
        }
    }

    fn instruction(&mut self) -> Result<Piece<'a>, XmlError> {
        let rest = &self.rest()["<?".len()..];
        let mut marks = memchr_iter(b'?', rest.as_bytes());
        let inner = match marks.find(|at| rest.as_bytes().get(at + 1) == Some(&b'>')) {
            Some(length) => &rest[..length],
            None => return Err(malformed("an instruction without an end", self.at)),
        };
        self.at += "<?".len() + inner.len() + "?>".len();
        Ok(match inner.strip_prefix("xml") {
            Some(inner) if inner.starts_with([' ', '\t', '\r', '\n']) => Piece::Declaration(inner),
            _ => Piece::Instruction(inner),
        })
    }
}

/// Length of the name without a colon at the start of `bytes`.
fn plain_name(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(first) if is(*first, NAME_START) => bytes
            .iter()
            .position(|b| !is(*b, NAME))
            .unwrap_or(bytes.len()),
        _ => 0,
    }
}
