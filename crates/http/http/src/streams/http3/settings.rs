//! SETTINGS of both ends (RFC 9114, section 7.2.4; RFC 9204, section 5).

use super::error::Http3Error;
use super::frame::{kind, setting, stream};
use super::{ErrorCode, varint};

/// Bytes that begin our control stream: its type, and SETTINGS without a dynamic table. `list_limit` is the maximum size
/// of all fields of a section that we accept, in bytes.
pub(super) fn opening(list_limit: usize) -> Vec<u8> {
    let settings = [
        (setting::QPACK_MAX_TABLE_CAPACITY, 0),
        (setting::QPACK_BLOCKED_STREAMS, 0),
        (setting::MAX_FIELD_SECTION_SIZE, list_limit as u64),
    ];
    let mut payload = Vec::new();
    for (setting, value) in settings {
        varint::encode(setting, &mut payload);
        varint::encode(value, &mut payload);
    }
    let mut bytes = Vec::new();
    varint::encode(stream::CONTROL, &mut bytes);
    varint::encode(kind::SETTINGS, &mut bytes);
    varint::encode(payload.len() as u64, &mut bytes);
    bytes.extend_from_slice(&payload);
    bytes
}

/// Checks the payload of the peer's SETTINGS. None of them changes our end: it has no dynamic table, and a section that
/// is too large is the peer's to refuse.
pub(super) fn check(mut payload: &[u8]) -> Result<(), Http3Error> {
    const CUT: Http3Error = Http3Error::frame("SETTINGS end inside a setting");
    let mut seen = 0u8;
    while !payload.is_empty() {
        let id = varint::decode(&mut payload).ok_or(CUT)?;
        varint::decode(&mut payload).ok_or(CUT)?;
        if setting::OF_HTTP2.contains(&id) {
            let reason = "SETTINGS with a setting of HTTP/2";
            return Err(Http3Error::new(ErrorCode::H3_SETTINGS_ERROR, reason));
        }
        if let 0x01..=0x07 = id {
            if seen & 1 << id != 0 {
                let reason = "SETTINGS with a setting twice";
                return Err(Http3Error::new(ErrorCode::H3_SETTINGS_ERROR, reason));
            }
            seen |= 1 << id;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_settings_refuse_the_dynamic_table() {
        let bytes = opening(256 << 10);
        assert_eq!(bytes, b"\x00\x04\x09\x01\x00\x07\x00\x06\x80\x04\x00\x00");
        assert_eq!(check(&bytes[3..]), Ok(()));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let code = |payload: &[u8]| check(payload).unwrap_err().code;
        for id in setting::OF_HTTP2 {
            assert_eq!(code(&[id as u8, 0]), ErrorCode::H3_SETTINGS_ERROR);
        }
        assert_eq!(code(&[6, 0, 6, 0]), ErrorCode::H3_SETTINGS_ERROR);
        assert_eq!(code(&[6]), ErrorCode::H3_FRAME_ERROR);
        assert_eq!(code(&[6, 0x40]), ErrorCode::H3_FRAME_ERROR);
        // Unknown settings may have any value.
        assert_eq!(check(&[0x21, 0x3f, 0x21, 0x3e]), Ok(()));
    }
}
