//! SETTINGS of the peer (RFC 9113, section 6.5).

use super::frame::{FRAME_LIMIT, StreamId};
use super::{ConnectionError, ErrorCode};

/// Streams that may be opened before the server's SETTINGS arrive. Browsers and Go assume the same.
const STREAMS_AT_FIRST: u32 = 100;

/// Initial window of a stream, in bytes (RFC 9113, section 6.9.2).
pub(super) const INITIAL_WINDOW: u32 = 65_535;

/// Identifiers of settings.
pub(super) mod id {
    pub(in super::super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in super::super) const ENABLE_PUSH: u16 = 2;
    pub(in super::super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in super::super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in super::super) const MAX_FRAME_SIZE: u16 = 5;
    pub(in super::super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The values in effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) received: bool,
    pub(super) streams: u32,
    pub(super) window: u32,
    pub(super) frame: usize,
}

impl PeerSettings {
    pub(super) fn new() -> Self {
        Self {
            received: false,
            streams: STREAMS_AT_FIRST,
            window: INITIAL_WINDOW,
            frame: FRAME_LIMIT,
        }
    }
}

/// The changes of one SETTINGS frame: of each setting the last value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsChange {
    /// The smallest and the last table size.
    pub(super) table: Option<(u32, u32)>,
    pub(super) streams: Option<u32>,
    pub(super) window: Option<u32>,
    pub(super) frame: Option<usize>,
}

impl SettingsChange {
    /// Reads the payload of a SETTINGS frame. Unknown settings are ignored.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, ConnectionError> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(ConnectionError::size("SETTINGS of an invalid length"));
        }
        let mut change = Self::default();
        for [a, b, value @ ..] in settings {
            change.apply(u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value))?;
        }
        Ok(change)
    }

    fn apply(&mut self, setting: u16, value: u32) -> Result<(), ConnectionError> {
        match setting {
            id::HEADER_TABLE_SIZE => {
                let smallest = self
                    .table
                    .map_or(value, |(smallest, _)| smallest.min(value));
                self.table = Some((smallest, value));
            }
            id::ENABLE_PUSH if value != 0 => {
                return Err(ConnectionError::protocol("the server enables push"));
            }
            id::MAX_CONCURRENT_STREAMS => self.streams = Some(value),
            id::INITIAL_WINDOW_SIZE if value > StreamId::MAX => {
                let reason = "SETTINGS with a window above 2^31 - 1";
                return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, reason));
            }
            id::INITIAL_WINDOW_SIZE => self.window = Some(value),
            id::MAX_FRAME_SIZE => {
                let size = usize::try_from(value).unwrap_or(usize::MAX);
                if !(FRAME_LIMIT..1 << 24).contains(&size) {
                    return Err(ConnectionError::protocol(
                        "SETTINGS with an invalid frame size",
                    ));
                }
                self.frame = Some(size);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_holds_and_unknown_settings_do_not_matter() {
        let payload = [
            &[0, 1, 0, 0, 0, 9][..],
            &[0, 1, 0, 0, 1, 0],
            &[0, 3, 0, 0, 0, 0],
            &[0x0a, 0x0a, 1, 2, 3, 4],
            &[0, 4, 0x7f, 0xff, 0xff, 0xff],
        ];
        let change = SettingsChange::parse(&payload.concat()).unwrap();
        let expected = SettingsChange {
            table: Some((9, 256)),
            streams: Some(0),
            window: Some(StreamId::MAX),
            frame: None,
        };
        assert_eq!(change, expected);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (payload, code) in [
            (&[0, 2, 0, 0, 0, 1][..], ErrorCode::PROTOCOL_ERROR),
            (&[0, 4, 0x80, 0, 0, 0], ErrorCode::FLOW_CONTROL_ERROR),
            (&[0, 5, 0, 0, 0x3f, 0xff], ErrorCode::PROTOCOL_ERROR),
            (&[0, 5, 1, 0, 0, 0], ErrorCode::PROTOCOL_ERROR),
            (&[0, 5, 1, 0, 0], ErrorCode::FRAME_SIZE_ERROR),
        ] {
            assert_eq!(SettingsChange::parse(payload).unwrap_err().code, code);
        }
    }
}
