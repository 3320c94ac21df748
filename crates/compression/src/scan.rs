//! Streaming scan of a SOAP header: the SOAP version, and the client's statements about compression.
//!
//! Accepts pieces of any size. Stops at the end of the Header, or at the start of the Body if there is no Header. Reads
//! a piece in place and buffers only an incomplete tag. The message is neither changed nor delayed nor validated for
//! the service: elements below header blocks are counted and not read, except for the priorities and the offer of a
//! [`Block`]. A DOCTYPE ends the scan (R1008).
//!
//! The preference is a header block of its own, a sibling of `WSQoSSoapHeader`:
//! `<compression xmlns="urn:posthaste:wsqos">always</compression>`, with one of the three words of [`Wish::of`]. It
//! must not have mustUnderstand, because the service does not know it. The first one counts. `form="body"` requests
//! [`Form::Body`]. An unknown form or word states nothing.

use memchr::{memchr, memchr3};
use posthaste_soap::{Limits, Version};

use crate::block::Block;
use crate::scope::{Meaning, Scope, attribute};
use crate::wish::{Form, Wish};
use crate::word::Word;
use posthaste_qos::Priorities;

/// Local name of the header block.
pub const COMPRESSION: &str = "compression";

/// Result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// The header is incomplete. At the end of a message: it was truncated in its header.
    #[default]
    Unfinished,
    /// The header of an envelope.
    Soap {
        /// Version, from the envelope's namespace.
        version: Version,
        /// Preference in the header block; `None` without a block or with an unknown word.
        wish: Option<Wish>,
        /// Requested form of the reply.
        form: Form,
        /// A header block has an unknown word.
        is_unknown: bool,
    },
    /// Not SOAP: not XML, or another root element.
    NotSoap,
    /// A DOCTYPE. SOAP forbids it.
    Doctype,
    /// UTF-16 or a declaration of it. UTF-16 is not supported.
    Encoding,
    /// More bytes, levels or declarations before the Body than [`Limits`] allows.
    TooMuch,
}

/// Scanner for the header of one message.
#[derive(Debug)]
pub struct HeadScan {
    limits: Limits,
    seen: Seen,
    /// Number of bytes scanned.
    fed: usize,
    /// An incomplete tag, comment or section, from its `<` on.
    cut: Vec<u8>,
    search: Search,
    depth: usize,
    scope: Scope,
    version: Version,
    /// The open element at depth 2 is the Header.
    in_header: bool,
    /// Text so far of our open element at depth 3.
    word: Option<Word>,
    block: Block,
    form: Form,
    /// Preference in our first block; the inner option is `None` for an unknown word.
    wish: Option<Option<Wish>>,
    /// Number of byte order mark bytes seen.
    mark: usize,
    /// Number of closing brackets at the end of the text so far, two at most.
    brackets: usize,
}

/// Progress of the search for the end of a tag.
#[derive(Debug, Default)]
pub(crate) struct Search {
    from: usize,
    quote: Option<u8>,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Seen {
    /// Requested form of the reply.
    pub const fn form(self) -> Form {
        match self {
            Self::Soap { form, .. } => form,
            _ => Form::Content,
        }
    }

    /// Preference in the header block.
    pub const fn wish(self) -> Option<Wish> {
        match self {
            Self::Soap { wish, .. } => wish,
            _ => None,
        }
    }

    /// All names, in the order of [`Seen::index`].
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

    /// Its position in [`Seen::NAMES`].
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
    /// Creates a scanner. It reads at most [`Limits::header`] bytes and [`Limits::depth`] levels, and keeps at most
    /// [`Limits::namespaces`] declarations of one element and [`Limits::scope`] in total.
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

    /// Scans the next piece of the message. Returns true if more is needed.
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

    /// Returns true if the header is incomplete.
    pub fn wants_more(&self) -> bool {
        self.seen == Seen::Unfinished
    }

    /// The result so far.
    pub const fn seen(&self) -> Seen {
        self.seen
    }

    /// Priorities in the header's `transportQoSPriorities`; `None` if they state none. See [`Block`].
    pub fn priorities(&self) -> Option<&Priorities> {
        let stated = self.block.priorities();
        (*stated != Priorities::default()).then_some(stated)
    }

    /// Name of the offer that the header selects; `None` without a name of up to 96 bytes. See [`Block`].
    pub fn selected(&self) -> Option<&str> {
        self.block.selected()
    }

    /// Returns true if a priority was invalid.
    pub fn has_unread_priority(&self) -> bool {
        self.block.is_unread()
    }

    /// Returns true if the scan ended at the end of the Header, and not at the start of the Body.
    pub(crate) const fn ended_before_body(&self) -> bool {
        self.in_header
    }

    /// Returns true if a tag after the Header is that of the Body.
    pub(crate) fn is_body(&mut self, tag: &[u8]) -> bool {
        self.scope.leave(2);
        let inner = tag
            .strip_prefix(b"<")
            .and_then(|tag| tag.strip_suffix(b">"));
        let found = inner.and_then(|inner| self.scope.enter(2, inner));
        found == Some((Meaning::Soap(self.version), b"Body".as_slice()))
    }

    /// Scans text and one tag at the start of `rest`. Returns the remainder.
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

    /// Continues an incomplete tag up to the next `>`. Returns the remainder.
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

    /// The open element with relevant text.
    fn word(&mut self) -> Option<&mut Word> {
        self.word.as_mut().or_else(|| self.block.word())
    }

    /// Handles text before decoding. `]]>` outside a section is not XML (XML 1.0, section 2.4).
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

    /// Handles a tag, comment, section or declaration.
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
    /// Position after the end of the markup at the start of `tag`; `None` if incomplete. The next call may pass the
    /// same markup with more bytes and continues the search.
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

/// Returns true if an XML declaration names UTF-16. The text itself is not UTF-16, or it would not have been read so
/// far.
fn says_utf16(declaration: &[u8]) -> bool {
    let encoding = attribute(declaration, b"encoding").filter(|_| declaration.starts_with(b"xml"));
    let start = encoding.and_then(|encoding| encoding.get(..b"utf-16".len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(b"utf-16"))
}

fn is_section(tag: &[u8]) -> bool {
    tag.starts_with(b"<![CDATA[")
}
