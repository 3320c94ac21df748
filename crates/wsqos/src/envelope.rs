//! The papers' own way: only what the SOAP Body holds is compressed.
//!
//! For clients whose toolkit cannot decode content and whose program can. They ask for it with
//! `form="body"` in their header block. What stood in the Body stands in one element then, compressed and
//! in base64: `<packed xmlns="urn:posthaste:wsqos" coding="gzip">...</packed>`. Everything around it stays
//! byte by byte, so that what is unpacked in its place has the namespaces it had. Base64 costs a third of
//! what compressing leaves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::{memchr, memrchr};
use posthaste_soap::Limits;

use crate::scan::{HeadScan, NAMESPACE, Search, Seen};
use crate::step::Coding;

/// A whole SOAP message, taken apart at its Body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Up to and with the Body's start tag.
    pub before: &'a [u8],
    /// What the Body holds.
    pub content: &'a [u8],
    /// From the Body's end tag on.
    pub after: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Takes a message apart; none where it is no SOAP, has an empty Body, more before its Body than
    /// `limits` allows, or anything but blanks beside the last two end tags.
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

    /// The message with `coded` in place of what the Body held.
    pub fn packed(&self, coding: Coding, coded: &[u8]) -> Vec<u8> {
        let open = format!(
            "<p:packed xmlns:p=\"{NAMESPACE}\" coding=\"{}\">",
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

    /// About how long a message comes out whose content compresses to so many bytes.
    pub(crate) const fn packed_length(coded: u64) -> u64 {
        coded.saturating_add(coded / 3).saturating_add(AROUND)
    }
}

/// Bytes of an envelope and of the element around what is packed, about.
const AROUND: u64 = 350;

/// What follows the start tag of the Body, which comes next but for comments.
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

/// Where the end tag of an element called `local` begins, behind which are only blanks.
fn last_end_tag(text: &[u8], local: &[u8]) -> Option<usize> {
    let text = text.trim_ascii_end();
    let start = memrchr(b'<', text)?;
    let name = text[start..].strip_prefix(b"</")?.strip_suffix(b">")?;
    let name = name.trim_ascii_end();
    let found = memchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
    (found == local).then_some(start)
}
