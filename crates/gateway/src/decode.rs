//! Requests that come compressed: read within bounds, so that a small one cannot become a huge one.
//!
//! The upstream gets the content without its coding, and the scan of the SOAP header can read it.
//! Only single codings that are known here are taken off; all others go on as they are.

use std::io::{self, Write};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use posthaste_wsqos::Coding;

use crate::headers::is_sealed;

/// So much may come of anything; more only in proportion.
const FREE: u64 = 1 << 20;

/// Bytes that may come of one: XML rarely gets 30 times smaller.
const RATIO: u64 = 100;

/// Takes a coding off a body.
pub(crate) struct Decoder {
    inner: posthaste_coding::Decoder<Bounded>,
    read: u64,
}

/// What has come of a body and was not fetched yet; refuses what is out of all proportion.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    written: u64,
    most: u64,
}

/// Why a body could not be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// It is not what Content-Encoding says, or ends early.
    Broken(io::Error),
    /// It becomes out of all proportion larger.
    Explodes,
}

impl Decoder {
    /// The decoder of a request with these header fields, which then say that it has no coding.
    pub(crate) fn of(headers: &mut HeaderMap) -> io::Result<Option<Self>> {
        let Some(coding) = headers
            .get(CONTENT_ENCODING)
            .and_then(|field| Coding::of(field.as_bytes()))
        else {
            return Ok(None);
        };
        let several = headers.get_all(CONTENT_ENCODING).iter().nth(1).is_some();
        if several || is_sealed(headers) {
            return Ok(None);
        }
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        Ok(Some(Self::new(coding)?))
    }

    fn new(coding: Coding) -> io::Result<Self> {
        Ok(Self {
            inner: posthaste_coding::Decoder::new(coding, Bounded::default())?,
            read: 0,
        })
    }

    /// What comes of the next piece, which may be nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Bytes, DecodeError> {
        self.read += piece.len() as u64;
        self.inner.writer().most = FREE.max(self.read.saturating_mul(RATIO));
        let pushed = self.inner.push(piece);
        self.fetch(pushed)
    }

    /// What comes at the end.
    pub(crate) fn finish(&mut self) -> Result<Bytes, DecodeError> {
        let finished = self.inner.finish();
        self.fetch(finished)
    }

    fn fetch(&mut self, done: io::Result<()>) -> Result<Bytes, DecodeError> {
        match done {
            Ok(()) => Ok(std::mem::take(&mut self.inner.writer().bytes).into()),
            Err(error) if error.kind() == FULL => Err(DecodeError::Explodes),
            Err(error) => Err(DecodeError::Broken(error)),
        }
    }
}

/// What [`Bounded`] says, and no decoder does.
const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

impl Write for Bounded {
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

    /// In one piece a kilobyte can become megabytes: no more than is allowed may ever be in memory.
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
        assert!(matches!(decoder.push(&bomb), Err(DecodeError::Explodes)));
        let kept = decoder.inner.writer().bytes.capacity() as u64;
        assert!(kept <= 2 * FREE, "{kept}");
    }
}
