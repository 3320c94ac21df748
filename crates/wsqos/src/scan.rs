//! The SOAP header of a message that streams by: which version it is, and what it says about compression.
//!
//! Fed with pieces cut anywhere; it stops where the Header ends, or where the Body begins without one, and
//! looks at nothing behind that. A piece is read in place; only a tag that is cut is kept until its end
//! comes. Nothing is changed, held up or checked for the service behind: elements deeper than header blocks
//! are counted and not read, but for the priorities and the offer of a [`Block`]. It is no place to be lenient in one thing: a DOCTYPE ends it (R1008).
//!
//! The element is a header block of its own, beside `WSQoSSoapHeader`:
//! `<compression xmlns="urn:posthaste:wsqos">always</compression>`, with one of the three words of
//! [`Wish::of`]. It must not say mustUnderstand, for the service behind does not know it. The first one counts.
//! `form="body"` asks for [`Form::Body`]; another word there, or as the wish, states nothing.

use memchr::{memchr, memchr3};
use posthaste_soap::{Limits, Version};

use crate::block::Block;
use crate::qos::Priorities;
use crate::scope::{Meaning, Scope, attribute};
use crate::wish::{Form, Wish};
use crate::word::Word;

/// The namespace of what posthaste adds to SOAP and WSDL.
pub const NAMESPACE: &str = "urn:posthaste:wsqos";

/// The local name of the header block.
pub const COMPRESSION: &str = "compression";

/// What has been seen of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// The header is not over yet; at the end of a message: it was cut off in its header.
    #[default]
    Unfinished,
    /// The header of an envelope.
    Soap {
        /// By the envelope's namespace.
        version: Version,
        /// What the header block says; none where there is no block, or another word in it.
        wish: Option<Wish>,
        /// In which form it wants its reply.
        form: Form,
        /// There is a header block with another word in it.
        is_unknown: bool,
    },
    /// No SOAP: not XML, or another root element.
    NotSoap,
    /// A DOCTYPE, which SOAP forbids.
    Doctype,
    /// UTF-16, which is not read here, or a declaration of it.
    Encoding,
    /// More bytes, levels or declarations before the Body than [`Limits`] allows.
    TooMuch,
}

/// Reads the header of one message.
#[derive(Debug)]
pub struct HeadScan {
    limits: Limits,
    seen: Seen,
    /// Bytes that were fed.
    fed: usize,
    /// A tag, comment or section whose end has not come, from its `<` on.
    cut: Vec<u8>,
    search: Search,
    depth: usize,
    scope: Scope,
    version: Version,
    /// The element open at depth 2 is the Header.
    in_header: bool,
    /// The element open at depth 3 is ours, with this word in it so far.
    word: Option<Word>,
    block: Block,
    form: Form,
    /// What our first block says; the inner is none where that is another word.
    wish: Option<Option<Wish>>,
    /// Bytes of a byte order mark that have come.
    mark: usize,
    /// Brackets at the end of the text so far, two at most.
    brackets: usize,
}

/// How far the end of a tag has been searched for.
#[derive(Debug, Default)]
pub(crate) struct Search {
    from: usize,
    quote: Option<u8>,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Seen {
    /// In which form a reply is wanted.
    pub const fn form(self) -> Form {
        match self {
            Self::Soap { form, .. } => form,
            _ => Form::Content,
        }
    }

    /// What the header block says.
    pub const fn wish(self) -> Option<Wish> {
        match self {
            Self::Soap { wish, .. } => wish,
            _ => None,
        }
    }

    /// The names that there are, in the order of [`Seen::index`].
    pub const NAMES: [&'static str; 7] = [
        "soap",
        "unknown-word",
        "not-soap",
        "unfinished",
        "doctype",
        "encoding",
        "too-much",
    ];

    /// Its name, for metrics.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Its place in [`Seen::NAMES`].
    pub const fn index(self) -> usize {
        match self {
            Self::Soap {
                is_unknown: false, ..
            } => 0,
            Self::Soap { .. } => 1,
            Self::NotSoap => 2,
            Self::Unfinished => 3,
            Self::Doctype => 4,
            Self::Encoding => 5,
            Self::TooMuch => 6,
        }
    }
}

impl HeadScan {
    /// A scan that reads at most [`Limits::header`] bytes and [`Limits::depth`] levels, and keeps no more
    /// declarations than [`Limits::namespaces`] of one element and [`Limits::scope`] in all.
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            seen: Seen::Unfinished,
            fed: 0,
            cut: Vec::new(),
            search: Search::default(),
            depth: 0,
            scope: Scope::new(limits),
            version: Version::Soap11,
            in_header: false,
            word: None,
            block: Block::default(),
            form: Form::Content,
            wish: None,
            mark: 0,
            brackets: 0,
        }
    }

    /// Takes the next piece of the message; whether it wants more.
    pub fn feed(&mut self, piece: &[u8]) -> bool {
        let room = self.limits.header.saturating_sub(self.fed);
        let mut rest = &piece[..piece.len().min(room)];
        self.fed += rest.len();
        while self.wants_more() && !rest.is_empty() {
            rest = match self.cut.is_empty() {
                true => self.read(rest),
                false => self.read_on(rest),
            };
        }
        if self.fed == self.limits.header && self.wants_more() {
            self.seen = Seen::TooMuch;
        }
        self.wants_more()
    }

    /// Whether the header is not over.
    pub fn wants_more(&self) -> bool {
        self.seen == Seen::Unfinished
    }

    /// What was seen so far.
    pub const fn seen(&self) -> Seen {
        self.seen
    }

    /// What the header's `transportQoSPriorities` state; none where they state nothing. See [`Block`].
    pub fn priorities(&self) -> Option<&Priorities> {
        let stated = self.block.priorities();
        (*stated != Priorities::default()).then_some(stated)
    }

    /// The offer that the header selects, by its name; none where none is named in up to 96 bytes. See [`Block`].
    pub fn selected(&self) -> Option<&str> {
        self.block.selected()
    }

    /// Whether a priority could not be read.
    pub fn has_unread_priority(&self) -> bool {
        self.block.is_unread()
    }

    /// Whether it ended at the end of the Header, and not at the beginning of the Body.
    pub(crate) const fn ended_before_body(&self) -> bool {
        self.in_header
    }

    /// Whether a tag that follows the Header is the Body's.
    pub(crate) fn is_body(&mut self, tag: &[u8]) -> bool {
        self.scope.leave(2);
        let inner = tag
            .strip_prefix(b"<")
            .and_then(|tag| tag.strip_suffix(b">"));
        let found = inner.and_then(|inner| self.scope.enter(2, inner));
        found == Some((Meaning::Soap(self.version), b"Body".as_slice()))
    }

    /// Reads text and one tag off the front of `rest`; what is left.
    pub(crate) fn read<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let start = memchr(b'<', rest).unwrap_or(rest.len());
        let (text, rest) = rest.split_at(start);
        self.characters(text);
        if !rest.is_empty() {
            self.brackets = 0;
        }
        match self.search.end(rest) {
            _ if !self.wants_more() => &[],
            Some(end) => {
                let (tag, rest) = rest.split_at(end);
                self.tag(tag);
                rest
            }
            None => {
                self.cut.extend_from_slice(rest);
                &[]
            }
        }
    }

    /// Goes on with the tag that was cut, up to the next `>`; what is left.
    fn read_on<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let end = memchr(b'>', rest).map_or(rest.len(), |at| at + 1);
        let (more, rest) = rest.split_at(end);
        self.cut.extend_from_slice(more);
        let mut tag = std::mem::take(&mut self.cut);
        if self.search.end(&tag).is_some() {
            self.tag(&tag);
            tag.clear();
        }
        self.cut = tag;
        rest
    }

    /// The word in which the text is that comes.
    fn word(&mut self) -> Option<&mut Word> {
        self.word.as_mut().or_else(|| self.block.word())
    }

    /// Takes text as it is written. The end of a section, without its beginning, makes it no XML (XML 1.0, section 2.4).
    fn characters(&mut self, text: &[u8]) {
        let mut from = 0;
        while let Some(at) = memchr(b'>', &text[from..]) {
            let end = from + at;
            let before = text[..end]
                .iter()
                .rev()
                .take_while(|byte| **byte == b']')
                .count();
            let brackets = before + if before == end { self.brackets } else { 0 };
            if brackets >= 2 {
                return self.seen = Seen::NotSoap;
            }
            from = end + 1;
        }
        let last = text
            .iter()
            .rev()
            .take(2)
            .take_while(|byte| **byte == b']')
            .count();
        self.brackets = (last + if last == text.len() { self.brackets } else { 0 }).min(2);
        self.text(text);
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(word) = self.word() {
            word.push(text);
        } else if self.depth == 0 {
            for byte in text {
                match byte {
                    b' ' | b'\t' | b'\r' | b'\n' => {}
                    byte if MARK.get(self.mark) == Some(byte) => self.mark += 1,
                    0 | 0xFE | 0xFF => return self.seen = Seen::Encoding,
                    _ => return self.seen = Seen::NotSoap,
                }
            }
        }
    }

    /// Takes what stands from a `<` to its end.
    fn tag(&mut self, tag: &[u8]) {
        match tag {
            [b'<', b'/', ..] => self.end(),
            [b'<', b'?', inner @ ..] if self.depth == 0 && says_utf16(inner) => {
                self.seen = Seen::Encoding;
            }
            [b'<', b'?', ..] => {}
            [b'<', b'!', b'-', b'-', ..] => {}
            [b'<', b'!', b'[', ..] if is_section(tag) && self.depth > 0 => {
                self.text(&tag[b"<![CDATA[".len()..tag.len() - b"]]>".len()]);
            }
            [b'<', b'!', name @ ..] => {
                let name = &name[..name.len().min(b"DOCTYPE".len())];
                self.seen = match name.eq_ignore_ascii_case(b"DOCTYPE") {
                    true => Seen::Doctype,
                    false => Seen::NotSoap,
                };
            }
            [b'<', inner @ .., b'/', b'>'] => {
                self.start(inner);
                if self.wants_more() {
                    self.end();
                }
            }
            [b'<', inner @ .., b'>'] => self.start(inner),
            _ => {}
        }
    }

    fn start(&mut self, inner: &[u8]) {
        self.depth += 1;
        if self.depth > self.limits.depth {
            self.seen = Seen::TooMuch;
            return;
        }
        if let Some(word) = self.word() {
            word.spoil();
        }
        if self.depth > 3 && !self.block.wants(self.depth) {
            return;
        }
        let Some((meaning, local)) = self.scope.enter(self.depth, inner) else {
            self.seen = Seen::TooMuch;
            return;
        };
        match (self.depth, meaning) {
            (1, Meaning::Soap(version)) if local == b"Envelope" => self.version = version,
            (1, _) => self.seen = Seen::NotSoap,
            (2, Meaning::Soap(version)) if version == self.version => match local {
                b"Body" => self.finish(),
                _ => self.in_header = local == b"Header",
            },
            (3, Meaning::Posthaste) => {
                let is_ours = self.in_header && local == COMPRESSION.as_bytes();
                self.word = (is_ours && self.wish.is_none()).then(Word::default);
                if let Some(word) = &mut self.word {
                    let form = attribute(inner, b"form").map_or(Some(Form::Content), Form::of);
                    if form.is_none() {
                        word.spoil();
                    }
                    self.form = form.unwrap_or_default();
                }
            }
            (3.., meaning) if self.in_header => {
                self.block.start(self.depth, meaning, local, inner);
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        match self.depth {
            0 => return self.seen = Seen::NotSoap,
            1 => return self.finish(),
            2 if self.in_header => return self.finish(),
            3 => {
                if let Some(word) = self.word.take() {
                    self.wish = Some(word.read().and_then(Wish::of));
                }
                self.block.end(3);
            }
            depth => self.block.end(depth),
        }
        self.scope.leave(self.depth);
        self.depth -= 1;
    }

    fn finish(&mut self) {
        let wish = self.wish.flatten();
        self.seen = Seen::Soap {
            version: self.version,
            wish,
            form: wish.map_or(Form::Content, |_| self.form),
            is_unknown: self.wish == Some(None),
        };
    }
}

impl Search {
    /// Where what begins with `<` ends; none where the end has not come. The next call may bring more of
    /// the same, and goes on where this one stopped.
    pub(crate) fn end(&mut self, tag: &[u8]) -> Option<usize> {
        let end = match tag.get(1)? {
            b'!' | b'?' => self.end_of_section(tag),
            _ => self.end_of_tag(tag),
        }?;
        *self = Self::default();
        Some(end)
    }

    fn end_of_tag(&mut self, tag: &[u8]) -> Option<usize> {
        loop {
            let rest = &tag[self.from..];
            let found = match self.quote {
                Some(quote) => memchr(quote, rest),
                None => memchr3(b'>', b'"', b'\'', rest),
            };
            let Some(at) = found else {
                self.from = tag.len();
                return None;
            };
            self.from += at + 1;
            match (self.quote, rest[at]) {
                (Some(_), _) => self.quote = None,
                (None, b'>') => return Some(self.from),
                (None, quote) => self.quote = Some(quote),
            }
        }
    }

    fn end_of_section(&mut self, tag: &[u8]) -> Option<usize> {
        loop {
            let Some(at) = memchr(b'>', &tag[self.from..]) else {
                self.from = tag.len();
                return None;
            };
            self.from += at + 1;
            let whole = &tag[..self.from];
            let ends = |start: &[u8], end: &[u8]| {
                whole.len() >= start.len() + end.len() && whole.ends_with(end)
            };
            let over = match whole {
                [b'<', b'?', ..] => ends(b"<?", b"?>"),
                [b'<', b'!', b'-', b'-', ..] => ends(b"<!--", b"-->"),
                _ if is_section(whole) => ends(b"<![CDATA[", b"]]>"),
                _ => true,
            };
            if over {
                return Some(self.from);
            }
        }
    }
}

/// Whether an XML declaration says UTF-16. What is read here is not, or it would not have been read so far.
fn says_utf16(declaration: &[u8]) -> bool {
    let encoding = attribute(declaration, b"encoding").filter(|_| declaration.starts_with(b"xml"));
    let start = encoding.and_then(|encoding| encoding.get(..b"utf-16".len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(b"utf-16"))
}

fn is_section(tag: &[u8]) -> bool {
    tag.starts_with(b"<![CDATA[")
}
