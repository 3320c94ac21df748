//! Streaming scan of a SOAP header, for an intermediary that forwards the message.
//!
//! Accepts pieces of any size. Stops at the end of the Header, or at the start of the Body if there is no Header. Reads
//! a piece in place and buffers only an incomplete tag. The message is neither changed nor delayed nor validated for
//! the service: elements below header blocks are counted and not read, unless a [`HeaderBlocks`] asks for them. A
//! DOCTYPE ends the scan (R1008).

mod element;
mod markup_end;
mod scope;
mod short_text;
mod split;

use memchr::memchr;

use crate::xml::{Markup, Piece, QName, XmlError, declares_utf16};
use crate::{Limits, Version};

pub use element::{HeaderBlocks, HeaderElement};
pub use short_text::ShortText;
pub use split::EnvelopeParts;

use markup_end::MarkupEnd;
use scope::Scope;

/// Result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Head {
    /// The header is incomplete. At the end of a message: it was truncated in its header.
    #[default]
    Unfinished,
    /// The header of an envelope, of the version of its namespace.
    Soap(Version),
    /// Not SOAP: not XML, or another root element.
    NotSoap,
    /// A DOCTYPE. SOAP forbids it.
    Doctype,
    /// A tag that is not UTF-8, or UTF-16 or a declaration of it. UTF-16 is not supported.
    Encoding,
    /// More bytes, levels or declarations before the Body than [`Limits`] allows.
    TooMuch,
}

/// Scanner for the header of one message. `B` reads the header blocks.
#[derive(Debug)]
pub struct HeadScan<B> {
    limits: Limits,
    head: Head,
    /// Number of bytes scanned.
    fed: usize,
    /// An incomplete tag, comment or section, from its `<` on.
    cut: Vec<u8>,
    end: MarkupEnd,
    depth: usize,
    scope: Scope,
    version: Version,
    /// The open element at depth 2 is the Header.
    in_header: bool,
    blocks: B,
    /// Number of byte order mark bytes seen.
    mark: usize,
    /// Number of closing brackets at the end of the text so far, two at most.
    brackets: usize,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Depth of header blocks in the envelope.
pub const BLOCK_DEPTH: usize = 3;

impl<B: HeaderBlocks> HeadScan<B> {
    /// Creates a scanner. It reads at most [`Limits::header`] bytes and [`Limits::depth`] levels, and keeps at most
    /// [`Limits::namespaces`] declarations of one element and [`Limits::scope`] in total.
    pub fn new(limits: &Limits, blocks: B) -> Self {
        Self {
            limits: *limits,
            head: Head::Unfinished,
            fed: 0,
            cut: Vec::new(),
            end: MarkupEnd::default(),
            depth: 0,
            scope: Scope::new(limits),
            version: Version::Soap11,
            in_header: false,
            blocks,
            mark: 0,
            brackets: 0,
        }
    }

    /// Scans the next piece of the message. Returns true if more is needed.
    pub fn feed(&mut self, piece: &[u8]) -> bool {
        let left = self.limits.header.saturating_sub(self.fed);
        let mut rest = &piece[..piece.len().min(left)];
        self.fed += rest.len();
        while self.wants_more() && !rest.is_empty() {
            rest = if self.cut.is_empty() {
                self.read(rest)
            } else {
                self.read_on(rest)
            };
        }
        if self.fed == self.limits.header && self.wants_more() {
            self.head = Head::TooMuch;
        }
        self.wants_more()
    }

    /// Returns true if the header is incomplete.
    pub fn wants_more(&self) -> bool {
        self.head == Head::Unfinished
    }

    /// The result so far.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The reader of the header blocks.
    pub const fn blocks(&self) -> &B {
        &self.blocks
    }

    /// Scans text and one tag at the start of `rest`. Returns the remainder.
    fn read<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let start = memchr(b'<', rest).unwrap_or(rest.len());
        let (text, rest) = rest.split_at(start);
        self.characters(text);
        if !rest.is_empty() {
            self.brackets = 0;
        }
        match self.end.find(rest) {
            _ if !self.wants_more() => &[],
            Some(end) => {
                let (markup, rest) = rest.split_at(end);
                self.markup(markup);
                rest
            }
            None => {
                self.cut.extend_from_slice(rest);
                &[]
            }
        }
    }

    /// Continues an incomplete tag up to the next `>`. Returns the remainder.
    fn read_on<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let end = memchr(b'>', rest).map_or(rest.len(), |at| at + 1);
        let (more, rest) = rest.split_at(end);
        self.cut.extend_from_slice(more);
        let mut markup = std::mem::take(&mut self.cut);
        if self.end.find(&markup).is_some() {
            self.markup(&markup);
            markup.clear();
        }
        self.cut = markup;
        rest
    }

    /// Handles text before decoding. `]]>` outside a section is not XML (XML 1.0, section 2.4).
    fn characters(&mut self, text: &[u8]) {
        let brackets = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b']').count();
        let mut from = 0;
        while let Some(at) = memchr(b'>', &text[from..]) {
            let end = from + at;
            let before = brackets(&text[..end]);
            let earlier = if before == end { self.brackets } else { 0 };
            if before + earlier >= 2 {
                return self.head = Head::NotSoap;
            }
            from = end + 1;
        }
        let last = brackets(&text[text.len().saturating_sub(2)..]);
        let earlier = if last == text.len() { self.brackets } else { 0 };
        self.brackets = (last + earlier).min(2);
        self.text(text);
    }

    fn text(&mut self, text: &[u8]) {
        if self.in_header {
            return self.blocks.text(text);
        }
        for byte in text.iter().take_while(|_| self.depth == 0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                byte if MARK.get(self.mark) == Some(byte) => self.mark += 1,
                0 | 0xFE | 0xFF => return self.head = Head::Encoding,
                _ => return self.head = Head::NotSoap,
            }
        }
    }

    /// Handles a complete tag, comment, section or declaration.
    fn markup(&mut self, bytes: &[u8]) {
        // Comments and instructions are not read, so that their encoding does not matter.
        match bytes {
            [b'<', b'!', b'-', b'-', ..] => return,
            [b'<', b'?', target @ ..] if self.depth > 0 || !target.starts_with(b"xml") => return,
            _ => {}
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.head = Head::Encoding;
        };
        let mut markup = Markup::new(text);
        match markup.piece() {
            Ok(Piece::Start(name)) => {
                if let Err(head) = self.start(name, markup, text) {
                    self.head = head;
                } else if self.wants_more() && text.ends_with("/>") {
                    self.end();
                }
            }
            Ok(Piece::End(_)) => self.end(),
            Ok(Piece::CData(text)) if self.depth > 0 => self.text(text.as_bytes()),
            Ok(Piece::Declaration(_)) if self.depth == 0 && declares_utf16(text) => {
                self.head = Head::Encoding;
            }
            Ok(Piece::Declaration(_) | Piece::Instruction(_)) => {}
            Err(XmlError::Doctype { .. }) => self.head = Head::Doctype,
            _ => self.head = Head::NotSoap,
        }
    }

    /// Handles the start of an element. `markup` is behind its name in `text`.
    fn start<'a>(
        &mut self,
        name: QName<'a>,
        mut markup: Markup<'a>,
        text: &'a str,
    ) -> Result<(), Head> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(Head::TooMuch);
        }
        let is_wanted = self.in_header && self.blocks.enter(self.depth);
        if self.depth > BLOCK_DEPTH && !is_wanted {
            return Ok(());
        }
        let attributes = &text[markup.position()..];
        self.scope.enter(self.depth, &mut markup)?;
        let (namespace, local) = (self.scope.namespace(name.prefix), name.local);
        match self.depth {
            1 => match namespace.and_then(Version::from_namespace) {
                Some(version) if local == "Envelope" => self.version = version,
                _ => return Err(Head::NotSoap),
            },
            2 if namespace == Some(self.version.namespace()) => match local {
                "Body" => self.head = Head::Soap(self.version),
                _ => self.in_header = local == "Header",
            },
            BLOCK_DEPTH.. if is_wanted => self.blocks.start(&HeaderElement {
                depth: self.depth,
                namespace,
                local,
                attributes,
            }),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) {
        match self.depth {
            0 => return self.head = Head::NotSoap,
            1 => return self.head = Head::Soap(self.version),
            2 if self.in_header => return self.head = Head::Soap(self.version),
            BLOCK_DEPTH.. if self.in_header => self.blocks.end(self.depth),
            _ => {}
        }
        self.scope.leave(self.depth);
        self.depth -= 1;
    }
}
