//! Messages of a gRPC body: a prefix of five bytes (flag, length), then the message.
//!
//! [`FrameReader`] reads them without a copy and without memory for their content. [`MessageReader`] collects whole
//! messages. Both take the body in pieces of any size, and reject a message longer than their limit at its prefix.

use prost::Message;
use thiserror::Error;

/// Bytes before each message: the flag of compression, then the length in network byte order.
pub const PREFIX_BYTES: usize = 5;

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// The prefix of a message.
    Begin {
        /// The message is compressed, by the algorithm that `grpc-encoding` names.
        compressed: bool,
        /// Length of the message in bytes.
        length: usize,
    },
    /// Bytes of the message; never empty.
    Data(&'a [u8]),
    /// The end of the message.
    End,
}

/// Reasons why a body cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The flag is neither 0 nor 1.
    #[error("a message begins with the flag {0}: only 0 and 1 are defined")]
    Flag(u8),
    /// The message is longer than the limit.
    #[error("a message of {length} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Length that the prefix states.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The body ended within a prefix or message.
    #[error("the body ends within a message")]
    Cut,
}

/// Incremental parser of a body. After an error, every call returns that error.
#[derive(Clone, Debug)]
pub struct FrameReader {
    limit: usize,
    state: FrameState,
}

#[derive(Clone, Copy, Debug)]
enum FrameState {
    /// Within a prefix, of which these bytes have been read.
    Prefix {
        bytes: [u8; PREFIX_BYTES],
        read: usize,
    },
    /// Within a message with so many bytes left.
    Message {
        left: usize,
    },
    Failed(FrameError),
}

const START: FrameState = FrameState::Prefix {
    bytes: [0; PREFIX_BYTES],
    read: 0,
};

impl FrameReader {
    /// Creates a reader of messages with at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            state: START,
        }
    }

    /// Returns the next part and advances `bytes` past it. `None` when `bytes` is used up.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<FramePart<'a>>, FrameError> {
        match &mut self.state {
            FrameState::Failed(error) => Err(*error),
            FrameState::Message { left: 0 } => {
                self.state = START;
                Ok(Some(FramePart::End))
            }
            FrameState::Message { left } => {
                let (data, rest) = bytes.split_at(bytes.len().min(*left));
                *left -= data.len();
                *bytes = rest;
                Ok((!data.is_empty()).then_some(FramePart::Data(data)))
            }
            FrameState::Prefix {
                bytes: prefix,
                read,
            } => {
                let wanted = &mut prefix[*read..];
                let taken = wanted.len().min(bytes.len());
                wanted[..taken].copy_from_slice(&bytes[..taken]);
                *bytes = &bytes[taken..];
                *read += taken;
                if *read < PREFIX_BYTES {
                    return Ok(None);
                }
                let [flag, length @ ..] = *prefix;
                self.begin(flag, u32::from_be_bytes(length)).map(Some)
            }
        }
    }

    /// Checks that the body may end here: after a whole message, or without any.
    pub fn end(&self) -> Result<(), FrameError> {
        match self.state {
            FrameState::Prefix { read: 0, .. } | FrameState::Message { left: 0 } => Ok(()),
            FrameState::Failed(error) => Err(error),
            _ => Err(FrameError::Cut),
        }
    }

    fn begin(&mut self, flag: u8, length: u32) -> Result<FramePart<'static>, FrameError> {
        // Longer than memory is longer than the limit.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let limit = self.limit;
        let checked = match flag {
            0 | 1 if length > limit => Err(FrameError::TooLong { length, limit }),
            0 | 1 => Ok(FramePart::Begin {
                compressed: flag == 1,
                length,
            }),
            _ => Err(FrameError::Flag(flag)),
        };
        self.state = match checked {
            Ok(_) => FrameState::Message { left: length },
            Err(error) => FrameState::Failed(error),
        };
        checked
    }
}

/// A whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramedMessage {
    /// The message is compressed.
    pub compressed: bool,
    /// The message without its prefix.
    pub data: Vec<u8>,
}

/// Collects whole messages. Its memory is what has arrived of one message, not what a prefix announces.
#[derive(Clone, Debug)]
pub struct MessageReader {
    frames: FrameReader,
    message: FramedMessage,
}

impl MessageReader {
    /// Creates a reader of messages with at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self {
            frames: FrameReader::new(limit),
            message: FramedMessage {
                compressed: false,
                data: Vec::new(),
            },
        }
    }

    /// Returns the next whole message and advances `bytes` past it. `None` when `bytes` is used up.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<FramedMessage>, FrameError> {
        while let Some(part) = self.frames.next(bytes)? {
            match part {
                FramePart::Begin { compressed, .. } => self.message.compressed = compressed,
                FramePart::Data(data) => self.message.data.extend_from_slice(data),
                FramePart::End => return Ok(Some(std::mem::take(&mut self.message))),
            }
        }
        Ok(None)
    }

    /// Checks that the body may end here: after a whole message, or without any.
    pub fn end(&self) -> Result<(), FrameError> {
        self.frames.end()
    }
}

/// Appends a message with its prefix, not compressed. The message must be shorter than 4 GiB.
pub fn write_frame(to: &mut Vec<u8>, message: &[u8]) {
    let length = u32::try_from(message.len()).expect("messages are shorter than 4 GiB");
    to.push(0);
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(message);
}

/// Encodes a message with its prefix, not compressed. The message must be shorter than 4 GiB.
pub fn frame(message: &impl Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut framed = Vec::with_capacity(PREFIX_BYTES + length);
    let prefix = u32::try_from(length).expect("messages are shorter than 4 GiB");
    framed.push(0);
    framed.extend_from_slice(&prefix.to_be_bytes());
    message
        .encode(&mut framed)
        .expect("memory grows to the length of a message");
    debug_assert_eq!(framed.len(), PREFIX_BYTES + length, "the stated length");
    framed
}
