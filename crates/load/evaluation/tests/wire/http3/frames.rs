//! Frames of HTTP/3 as bytes.

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const SETTINGS: u8 = 4;
pub(super) const GOAWAY: u8 = 7;

/// A field section with `:status 200` or `:status 500`: no dynamic table, a static reference (RFC 9204, appendix A).
pub(super) const STATUS_200: &[u8] = &[0, 0, 0xc0 | 25];
pub(super) const STATUS_500: &[u8] = &[0, 0, 0xff, 71 - 63];
/// The type of a control stream, and empty SETTINGS.
pub(super) const CONTROL: &[u8] = &[0, SETTINGS, 0];

/// A frame as bytes.
pub(super) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(0x8000_0000 | payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A complete reply of a head and a body.
pub(super) fn reply(body: &[u8]) -> Vec<u8> {
    [frame(HEADERS, STATUS_200), frame(DATA, body)].concat()
}
