//! The header block with a client's preference, read by the scan of a streamed SOAP header.
//!
//! The preference is a header block of its own, a sibling of `WSQoSSoapHeader`:
//! `<compression xmlns="urn:posthaste:wsqos">always</compression>`, with one of the three words of [`Wish::from_word`].
//! It must not have mustUnderstand, because the service does not know it. The first one counts. `form="body"` requests
//! [`Form::Body`]. An unknown form or word states nothing.

use posthaste_soap::head::{BLOCK_DEPTH, Head, HeaderBlocks, HeaderElement, ShortText};
use posthaste_soap::{EXTENSION_NAMESPACE, Version};

use crate::wish::{Form, Wish};

/// Local name of the header block.
pub const COMPRESSION: &str = "compression";

/// Reader of the preference block.
#[derive(Debug, Default)]
pub struct PreferenceBlock {
    /// Text so far of the open block.
    text: Option<ShortText>,
    form: Form,
    /// Preference in the first block; the inner option is `None` for an unknown word.
    wish: Option<Option<Wish>>,
}

impl HeaderBlocks for PreferenceBlock {
    fn enter(&mut self, depth: usize) -> bool {
        if let Some(text) = &mut self.text {
            text.spoil();
        }
        depth == BLOCK_DEPTH
    }

    fn start(&mut self, element: &HeaderElement<'_>) {
        let is_ours =
            element.namespace == Some(EXTENSION_NAMESPACE) && element.local == COMPRESSION;
        if element.depth != BLOCK_DEPTH || !is_ours || self.wish.is_some() {
            return;
        }
        let stated = element.attribute("form");
        let form = stated.map_or(Some(Form::Content), |form| Form::from_word(form.as_bytes()));
        let text = self.text.insert(ShortText::default());
        if form.is_none() {
            text.spoil();
        }
        self.form = form.unwrap_or_default();
    }

    fn text(&mut self, text: &[u8]) {
        if let Some(so_far) = &mut self.text {
            so_far.push(text);
        }
    }

    fn end(&mut self, depth: usize) {
        if let Some(text) = self.text.take_if(|_| depth == BLOCK_DEPTH) {
            self.wish = Some(text.read().and_then(Wish::from_word));
        }
    }
}

/// Result of a scan for a preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanResult {
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
    /// A tag that is not UTF-8, or UTF-16 or a declaration of it. UTF-16 is not supported.
    Encoding,
    /// More bytes, levels or declarations before the Body than [`Limits`](posthaste_soap::Limits) allows.
    TooMuch,
}

impl ScanResult {
    /// Combines the result of the scan with the preference that it found.
    pub fn from_scan(head: Head, block: &PreferenceBlock) -> Self {
        match head {
            Head::Unfinished => Self::Unfinished,
            Head::Soap(version) => {
                let wish = block.wish.flatten();
                Self::Soap {
                    version,
                    wish,
                    form: wish.map_or(Form::Content, |_| block.form),
                    is_unknown: block.wish == Some(None),
                }
            }
            Head::NotSoap => Self::NotSoap,
            Head::Doctype => Self::Doctype,
            Head::Encoding => Self::Encoding,
            Head::TooMuch => Self::TooMuch,
        }
    }

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

    /// All names, for metrics, in the order of [`ScanResult::index`].
    pub const NAMES: [&'static str; 7] = [
        "soap",
        "unknown-word",
        "not-soap",
        "unfinished",
        "doctype",
        "encoding",
        "too-much",
    ];

    /// Its position in [`ScanResult::NAMES`].
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
