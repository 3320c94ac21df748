//! The papers' own format: only the content of the SOAP Body is compressed.
//!
//! For clients with a toolkit that cannot decode content and a program that can. They request it with `form="body"` in
//! their header block. The content of the Body is then replaced by one element with the compressed content in base64:
//! `<packed xmlns="urn:posthaste:wsqos" coding="gzip">...</packed>`. Everything around it is kept byte by byte, so that
//! the unpacked content has its original namespaces. Base64 adds a third to the compressed size.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::{memchr, memrchr};
use posthaste_soap::Limits;

use crate::scan::{HeadScan, Search, Seen};
use crate::step::Coding;
use posthaste_soap::EXTENSION_NAMESPACE;

/// A whole SOAP message, split at its Body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Bytes up to the end of the Body's start tag.
    pub before: &'a [u8],
    /// Content of the Body.
    pub content: &'a [u8],
    /// Bytes from the Body's end tag on.
    pub after: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Splits a message. Returns `None` if it is not SOAP, its Body is empty, more precedes its Body than `limits`
    /// allows, or anything but white space follows one of the last two end tags.
    pub fn parts(message: &'a [u8], limits: &Limits) -> Option<Self> {
        let mut scan = HeadScan::new(limits);
        let mut rest = message;
        while scan.wants_more() && !rest.is_empty() && message.len() - rest.len() < limits.header {
            rest = scan.read(rest);
        }
        if !matches!(scan.seen(), Seen::Soap { .. }) {
            return None;
        }
        if scan.ended_before_body() {
            rest = to_body(&mut scan, rest)?;
        }
        let start = message.len() - rest.len();
        let envelope = start + last_end_tag(&message[start..], b"Envelope")?;
        let body = start + last_end_tag(&message[start..envelope], b"Body")?;
        (body > start && !message[..start].ends_with(b"/>")).then_some(Self {
            before: &message[..start],
            content: &message[start..body],
            after: &message[body..],
        })
    }

    /// The message with `coded` in place of the content of the Body.
    pub fn packed(&self, coding: Coding, coded: &[u8]) -> Vec<u8> {
        let open = format!(
            "<p:packed xmlns:p=\"{EXTENSION_NAMESPACE}\" coding=\"{}\">",
            coding.token()
        );
        let inner = STANDARD.encode(coded);
        let parts = [
            self.before,
            open.as_bytes(),
            inner.as_bytes(),
            b"</p:packed>",
            self.after,
        ];
        parts.concat()
    }

    /// Approximate length of a message with compressed content of `coded` bytes.
    pub(crate) const fn packed_length(coded: u64) -> u64 {
        coded.saturating_add(coded / 3).saturating_add(AROUND)
    }
}

/// Approximate size of an envelope and the element around the compressed content, in bytes.
const AROUND: u64 = 350;

/// Skips comments and the Body's start tag. Returns `None` if another tag follows.
fn to_body<'a>(scan: &mut HeadScan, mut rest: &'a [u8]) -> Option<&'a [u8]> {
    loop {
        rest = &rest[memchr(b'<', rest)?..];
        let (tag, after) = rest.split_at(Search::default().end(rest)?);
        rest = after;
        if !tag.starts_with(b"<!--") {
            return scan.is_body(tag).then_some(rest);
        }
    }
}

/// Position of the end tag of `local`, if only white space follows it.
fn last_end_tag(text: &[u8], local: &[u8]) -> Option<usize> {
    let text = text.trim_ascii_end();
    let start = memrchr(b'<', text)?;
    let name = text[start..].strip_prefix(b"</")?.strip_suffix(b">")?;
    let name = name.trim_ascii_end();
    let found = memchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
    (found == local).then_some(start)
}
