//! Streaming compression: messages are compressed as they arrive.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use posthaste_compression::{Coding, Step};

use super::{BROTLI_BUFFER, BROTLI_WINDOW};

/// The encoder of one message. Output collects in a vector until it is taken.
pub(crate) enum StreamCompressor {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl StreamCompressor {
    pub(crate) fn new(step: Step) -> io::Result<Self> {
        let level = step.level();
        Ok(match step.coding() {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(level.into()))),
            Coding::Zstd => {
                Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), level.into())?)
            }
            Coding::Brotli => Self::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER,
                level.into(),
                BROTLI_WINDOW as u32,
            ))),
        })
    }

    /// Compresses a piece of the message. Returns the output that is ready, possibly nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        self.writer().write_all(piece)?;
        Ok(self.take())
    }

    /// Flushes the encoder, so that the client can decode all input so far.
    pub(crate) fn flush(&mut self) -> io::Result<Bytes> {
        self.writer().flush()?;
        Ok(self.take())
    }

    /// Ends the stream and returns the rest of the output.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        let rest = match self {
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Brotli(encoder) => encoder.into_inner(),
        };
        Ok(rest.into())
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
        }
    }

    fn take(&mut self) -> Bytes {
        let ready = match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
        };
        std::mem::take(ready).into()
    }
}
