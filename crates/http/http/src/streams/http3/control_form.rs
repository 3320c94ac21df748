//! Frames that a control stream may have, for both ends (RFC 9114, sections 6.2.1 and 7.2).

use super::ErrorCode;
use super::error::{Http3Error, ReceiveFault};
use super::frame::kind;
use super::reader::{PayloadForm, is_of_http2};

/// Longest SETTINGS, in bytes.
const SETTINGS_LIMIT: u64 = 4 << 10;

/// Longest integer, in bytes. The frames other than SETTINGS have one integer.
const INTEGER_LIMIT: u64 = 8;

/// The end that sends a control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// Checks the header of a frame, and returns the form in which its payload is read.
pub(super) fn control_form(
    kind: u64,
    length: u64,
    has_settings: bool,
    sender: Role,
) -> Result<PayloadForm, ReceiveFault> {
    let error = |code, reason| Err(Http3Error::new(code, reason).into());
    if !has_settings && kind != kind::SETTINGS {
        let reason = "the first frame of the control stream is not SETTINGS";
        return error(ErrorCode::H3_MISSING_SETTINGS, reason);
    }
    match kind {
        kind::SETTINGS if has_settings => {
            error(ErrorCode::H3_FRAME_UNEXPECTED, "a second SETTINGS")
        }
        kind::SETTINGS if length > SETTINGS_LIMIT => {
            let reason = "SETTINGS longer than 4 KiB";
            error(ErrorCode::H3_EXCESSIVE_LOAD, reason)
        }
        kind::GOAWAY if length > INTEGER_LIMIT => {
            error(ErrorCode::H3_FRAME_ERROR, "GOAWAY of an invalid length")
        }
        kind::MAX_PUSH_ID if sender == Role::Client && length > INTEGER_LIMIT => error(
            ErrorCode::H3_FRAME_ERROR,
            "MAX_PUSH_ID of an invalid length",
        ),
        kind::SETTINGS | kind::GOAWAY => Ok(PayloadForm::Whole),
        kind::MAX_PUSH_ID if sender == Role::Client => Ok(PayloadForm::Whole),
        kind::MAX_PUSH_ID => error(ErrorCode::H3_FRAME_UNEXPECTED, "MAX_PUSH_ID of the server"),
        kind::CANCEL_PUSH => {
            let reason = "CANCEL_PUSH, although there is no push";
            error(ErrorCode::H3_ID_ERROR, reason)
        }
        kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
            let reason = "a frame of a request on the control stream";
            error(ErrorCode::H3_FRAME_UNEXPECTED, reason)
        }
        _ if is_of_http2(kind) => error(ErrorCode::H3_FRAME_UNEXPECTED, "a frame type of HTTP/2"),
        // RFC 9114, section 9.
        _ => Ok(PayloadForm::Skipped),
    }
}
