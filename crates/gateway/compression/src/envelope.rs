//! The papers' own format: only the content of the SOAP Body is compressed.
//!
//! For clients with a toolkit that cannot decode content and a program that can. They request it with `form="body"` in
//! their header block. The content of the Body is then replaced by one element with the compressed content in base64:
//! `<packed xmlns="urn:posthaste:wsqos" coding="gzip">...</packed>`. Everything around it is kept byte by byte, so that
//! the unpacked content has its original namespaces. Base64 adds a third to the compressed size.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_soap::EXTENSION_NAMESPACE;
use posthaste_soap::head::EnvelopeParts;

use crate::step::Coding;

/// The message with `coded` in place of the content of the Body.
pub fn packed(parts: &EnvelopeParts<'_>, coding: Coding, coded: &[u8]) -> Vec<u8> {
    let open = format!(
        "<p:packed xmlns:p=\"{EXTENSION_NAMESPACE}\" coding=\"{}\">",
        coding.token()
    );
    let inner = STANDARD.encode(coded);
    let parts = [
        parts.before,
        open.as_bytes(),
        inner.as_bytes(),
        b"</p:packed>",
        parts.after,
    ];
    parts.concat()
}

/// Approximate length of a message with compressed content of `coded` bytes.
pub(crate) const fn packed_length(coded: u64) -> u64 {
    coded.saturating_add(coded / 3).saturating_add(AROUND)
}

/// Approximate size of an envelope and the element around the compressed content, in bytes.
const AROUND: u64 = 350;
