//! Frames of a reply.

use crate::streams::http3::frame::kind;
use crate::streams::http3::{qpack, varint};

/// Appends the head of a reply: HEADERS with `status` and the fields, whose names are in lower case.
pub fn append_head<'a>(
    status: u16,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    bytes: &mut Vec<u8>,
) {
    debug_assert!((100..1000).contains(&status), "a status has three digits");
    let status = status.to_string();
    let status = (&b":status"[..], status.as_bytes());
    #[expect(
        clippy::map_identity,
        reason = "the map shortens the lifetime to that of the status"
    )]
    let fields = fields.map(|(name, value)| (name, value));
    append_section(std::iter::once(status).chain(fields), bytes);
}

/// Appends trailers: HEADERS after the content.
pub fn append_trailers<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    bytes: &mut Vec<u8>,
) {
    append_section(fields, bytes);
}

/// Appends the header of DATA. `length` bytes of content follow it on the stream.
pub fn append_content(length: usize, bytes: &mut Vec<u8>) {
    varint::encode(kind::DATA, bytes);
    varint::encode(length as u64, bytes);
}

fn append_section<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>, bytes: &mut Vec<u8>) {
    let mut section = Vec::new();
    qpack::encode_fields(fields, &mut section);
    varint::encode(kind::HEADERS, bytes);
    varint::encode(section.len() as u64, bytes);
    bytes.extend_from_slice(&section);
}
