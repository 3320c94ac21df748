//! Bodies of messages: JSON whose first field is the protocol version, compressed if long, bounded when read.
//!
//! [`encode`] and [`decode`] are the only way in and out. A type of messages starts with a field `v` of the type
//! [`ProtocolVersion`] and refuses unknown fields. JSON that says one thing twice is refused: duplicate fields, text after the
//! end, several zstd frames.

use std::io::Read as _;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use zstd::zstd_safe;

/// The protocol version.
pub const PROTOCOL: u64 = 1;

/// Name of the header of compressed bodies.
pub const CONTENT_ENCODING: &str = "Content-Encoding";

/// Maximum size of a decoded body.
pub const MAX_DECODED: usize = 16 << 20;

/// Bodies longer than this are compressed.
const COMPRESSED_ABOVE: usize = 4 << 10;

/// Level of compression.
const LEVEL: i32 = 3;

/// Maximum window of a compressed body, as a power of two: more than [`LEVEL`] uses.
const WINDOW_LOG: u32 = 23;

/// The field `v`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolVersion;

/// Content coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyCoding {
    /// JSON as it is.
    Identity,
    /// One zstd frame.
    Zstd,
}

/// A message as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedMessage {
    /// The bytes.
    pub body: Vec<u8>,
    /// Their coding, for the header [`CONTENT_ENCODING`].
    pub coding: BodyCoding,
}

/// A message that cannot be read, or is too long to be sent.
#[derive(Debug, Error)]
pub enum MessageError {
    /// An unknown coding.
    #[error("unknown {CONTENT_ENCODING} {0:?}: only zstd is used")]
    Coding(String),
    /// Longer than [`MAX_DECODED`].
    #[error("the message has more than {MAX_DECODED} bytes")]
    TooLong,
    /// Not exactly one zstd frame of a permitted window.
    #[error("the message is not a valid zstd frame: {0}")]
    Zstd(String),
    /// Not the JSON of this kind of message.
    #[error("the message is invalid: {0}")]
    Json(#[from] serde_json::Error),
}

impl BodyCoding {
    /// The coding that a message states. No header means no coding.
    pub fn from_header(value: Option<&str>) -> Result<Self, MessageError> {
        match value {
            None => Ok(Self::Identity),
            Some("zstd") => Ok(Self::Zstd),
            Some(other) => Err(MessageError::Coding(other.chars().take(32).collect())),
        }
    }

    /// Value of the header. `None` for no header.
    pub fn header(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Zstd => Some("zstd"),
        }
    }
}

/// Encodes a message.
pub fn encode<T: Serialize>(message: &T) -> Result<EncodedMessage, MessageError> {
    let json = serde_json::to_vec(message)?;
    if json.len() > MAX_DECODED {
        return Err(MessageError::TooLong);
    }
    if json.len() <= COMPRESSED_ABOVE {
        return Ok(EncodedMessage {
            body: json,
            coding: BodyCoding::Identity,
        });
    }
    let body = zstd::bulk::compress(&json, LEVEL);
    let body = body.map_err(|error| MessageError::Zstd(error.to_string()))?;
    Ok(EncodedMessage {
        body,
        coding: BodyCoding::Zstd,
    })
}

/// Decodes a message. Uses memory for at most [`MAX_DECODED`] bytes and the window.
pub fn decode<T: DeserializeOwned>(body: &[u8], coding: BodyCoding) -> Result<T, MessageError> {
    if body.len() > MAX_DECODED {
        return Err(MessageError::TooLong);
    }
    match coding {
        BodyCoding::Identity => Ok(serde_json::from_slice(body)?),
        BodyCoding::Zstd => Ok(serde_json::from_slice(&decompress(body)?)?),
    }
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, MessageError> {
    let bad = |error: &dyn std::fmt::Display| MessageError::Zstd(error.to_string());
    let frame = zstd_safe::find_frame_compressed_size(body);
    let frame = frame.map_err(|code| bad(&zstd_safe::get_error_name(code)))?;
    if frame != body.len() {
        return Err(bad(&"bytes follow its end"));
    }
    let mut decoder = zstd::Decoder::with_buffer(body).map_err(|error| bad(&error))?;
    decoder
        .window_log_max(WINDOW_LOG)
        .map_err(|error| bad(&error))?;
    let mut json = Vec::new();
    let mut bounded = decoder.take(MAX_DECODED as u64 + 1);
    bounded
        .read_to_end(&mut json)
        .map_err(|error| bad(&error))?;
    match json.len() {
        length if length > MAX_DECODED => Err(MessageError::TooLong),
        _ => Ok(json),
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(PROTOCOL)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            PROTOCOL => Ok(Self),
            other => Err(D::Error::custom(format!(
                "it is of protocol {other}, and this build uses {PROTOCOL}: run the same build everywhere"
            ))),
        }
    }
}
