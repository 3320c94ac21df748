//! Status of a call: code, name, and the text in `grpc-message`.

use std::borrow::Cow;
use std::fmt;

/// A status code (gRPC, "Status codes and their use").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the specification")]
pub enum Code {
    Ok,
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

/// A code with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// Text for a person; empty if there is none.
    pub message: String,
}

impl Code {
    /// Every code, by its number.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The number in `grpc-status`.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name in the specification, such as `NOT_FOUND`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The code with this number, if one is defined.
    pub fn from_number(number: u32) -> Option<Self> {
        let index = usize::try_from(number).ok()?;
        Self::ALL.get(index).copied()
    }

    /// Parses the value of a `grpc-status` field: one to nine decimal digits. A number without a definition is UNKNOWN,
    /// as the specification says. Returns `None` for anything else.
    pub fn read(value: &[u8]) -> Option<Self> {
        if !matches!(value.len(), 1..=9) || !value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = value
            .iter()
            .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        Some(Self::from_number(number).unwrap_or(Self::Unknown))
    }

    /// The code for a reply without `grpc-status` and with this HTTP status (gRPC, "HTTP to gRPC status code mapping").
    pub const fn from_http(status: u16) -> Self {
        match status {
            400 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502 | 503 | 504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Status {
    /// Creates a status.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

/// Encodes a text as the value of `grpc-message`: printable ASCII except the percent sign stays as it is.
pub fn encode_message(text: &str) -> Cow<'_, str> {
    let stays = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'%';
    if text.bytes().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if stays(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    Cow::Owned(encoded)
}

/// Decodes the value of `grpc-message`. Invalid escapes stay as they are, and invalid UTF-8 is replaced, because a
/// status must not be lost for its text.
pub fn decode_message(value: &[u8]) -> String {
    let digit = |at: usize| {
        let digit = value.get(at).copied().map(char::from);
        digit.and_then(|digit| digit.to_digit(16))
    };
    let mut decoded = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
