//! Compressed requests, decoded within bounds, so that a small body cannot expand without limit.
//!
//! The upstream gets the content without its coding, and the scan of the SOAP header can read it. Only a single coding
//! that the gateway supports is removed; all others are forwarded unchanged.

use std::io::{self, Write};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH};
use posthaste_compression::{Coding, forbids_transform};

use super::headers::{field_lines, is_sealed};
use super::media::is_grpc;

/// Decoded bytes that are always allowed. Beyond them the ratio applies.
const FREE: u64 = 1 << 20;

/// Decoded bytes allowed per compressed byte. XML rarely compresses more than 30-fold.
const RATIO: u64 = 100;

/// Compressed bytes decoded at once, and the bound on their output. The bound covers gzip's maximum expansion, 1,032
/// times. For other codings, too, it limits the output held in memory.
pub(crate) const PIECE: usize = 16 << 10;
const AT_ONCE: u64 = 17 << 20;

/// Removes the content coding of a body.
pub(crate) struct Decoder {
    inner: posthaste_compression::Decoder<BoundedBuffer>,
    read: u64,
    /// The overall allowance, not the ratio, bounds the current piece.
    at_the_end: bool,
}

/// Decoded bytes that were not fetched yet. Fails beyond the bound `most`.
#[derive(Default)]
struct BoundedBuffer {
    bytes: Vec<u8>,
    written: u64,
    most: u64,
}

/// Reasons why a body could not be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// The body does not match its Content-Encoding, or ends early.
    Broken(io::Error),
    /// The expansion exceeds the allowed ratio.
    Explodes,
    /// The decoded body exceeds the allowed length.
    TooLong,
}

impl Decoder {
    /// Returns the decoder for a request with these headers, and removes its Content-Encoding and Content-Length.
    pub(crate) fn of(headers: &mut HeaderMap) -> io::Result<Option<Self>> {
        let Some(coding) = headers
            .get(CONTENT_ENCODING)
            .and_then(|field| Coding::of(field.as_bytes()))
        else {
            return Ok(None);
        };
        // gRPC has codings of its own (grpc-encoding).
        if is_grpc(headers) {
            return Ok(None);
        }
        let several = headers.get_all(CONTENT_ENCODING).iter().nth(1).is_some();
        let as_it_is = is_sealed(headers) || forbids_transform(field_lines(headers, CACHE_CONTROL));
        if several || as_it_is {
            return Ok(None);
        }
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        Ok(Some(Self::new(coding)?))
    }

    fn new(coding: Coding) -> io::Result<Self> {
        Ok(Self {
            inner: posthaste_compression::Decoder::new(coding, BoundedBuffer::default())?,
            read: 0,
            at_the_end: false,
        })
    }

    /// Decodes a piece of at most [`PIECE`] bytes. Returns at most `allowed` bytes, possibly none.
    pub(crate) fn push(&mut self, piece: &[u8], allowed: u64) -> Result<Bytes, DecodeError> {
        debug_assert!(
            piece.len() <= PIECE,
            "a piece is longer than the bound on its output assumes"
        );
        self.read += piece.len() as u64;
        self.bound(allowed);
        let pushed = self.inner.push(piece);
        self.fetch(pushed)
    }

    fn bound(&mut self, allowed: u64) {
        let most = FREE.max(self.read.saturating_mul(RATIO));
        let writer = self.inner.writer();
        let in_proportion = most.saturating_sub(writer.written).min(AT_ONCE);
        writer.most = writer.written + allowed.min(in_proportion);
        self.at_the_end = allowed <= in_proportion;
    }

    /// Ends the body and returns the remaining bytes.
    pub(crate) fn finish(&mut self, allowed: u64) -> Result<Bytes, DecodeError> {
        self.bound(allowed);
        let finished = self.inner.finish();
        self.fetch(finished)
    }

    fn fetch(&mut self, done: io::Result<()>) -> Result<Bytes, DecodeError> {
        let writer = self.inner.writer();
        debug_assert!(
            writer.written <= writer.most && writer.bytes.len() as u64 <= writer.written,
            "a body is decoded beyond its bound"
        );
        match done {
            Ok(()) => Ok(std::mem::take(&mut self.inner.writer().bytes).into()),
            Err(error) if error.kind() == FULL && self.at_the_end => Err(DecodeError::TooLong),
            Err(error) if error.kind() == FULL => Err(DecodeError::Explodes),
            Err(error) => Err(DecodeError::Broken(error)),
        }
    }
}

/// The error kind of [`BoundedBuffer`]. No decoder uses it.
const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.written + bytes.len() as u64;
        if written > self.most {
            return Err(FULL.into());
        }
        self.written = written;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One compressed kilobyte can expand to megabytes. Memory must never hold more than allowed.
    #[test]
    fn what_explodes_is_never_kept() {
        let zeros = vec![0; 16 << 20];
        let params = brotli::enc::BrotliEncoderParams {
            quality: 5,
            ..Default::default()
        };
        let mut bomb = Vec::new();
        brotli::BrotliCompress(&mut &*zeros, &mut bomb, &params).unwrap();
        assert!(bomb.len() < 1024, "{}", bomb.len());
        let mut decoder = Decoder::new(Coding::Brotli).unwrap();
        assert!(matches!(
            decoder.push(&bomb, u64::MAX),
            Err(DecodeError::Explodes)
        ));
        let kept = decoder.inner.writer().bytes.capacity() as u64;
        assert!(kept <= 2 * FREE, "{kept}");
    }

    /// A long body does not earn a larger allowance for one piece.
    #[test]
    fn what_explodes_late_is_never_kept_either() {
        let mut state = 1u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let noise: Vec<u8> = (0..1 << 20).map(|_| noise()).collect();
        let mut body = zstd::encode_all(&*[noise, vec![0; 100 << 20]].concat(), 1).unwrap();
        let mut decoder = Decoder::new(Coding::Zstd).unwrap();
        let mut most = 0;
        let outcome = body.chunks(PIECE).try_for_each(|piece| {
            let done = decoder.push(piece, u64::MAX).map(drop);
            most = most.max(decoder.inner.writer().bytes.capacity() as u64);
            done
        });
        assert!(matches!(outcome, Err(DecodeError::Explodes)), "{outcome:?}");
        assert!(most <= 2 * AT_ONCE, "{most}");
        // The overall allowance also applies.
        body.truncate(PIECE);
        let mut decoder = Decoder::new(Coding::Zstd).unwrap();
        let outcome = decoder.push(&body, 1000);
        assert!(matches!(outcome, Err(DecodeError::TooLong)));
    }
}
