//! Compression of whole messages, with reused encoders.

use std::io::{self, Write as _};

use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor};
use posthaste_compression::{Coding, STEPS, Step};

use super::{BROTLI_BUFFER, BROTLI_WINDOW};

/// The encoders of one thread for whole messages. Each is created at its first use.
#[derive(Default)]
pub(crate) struct WholeCompressor {
    gzip: [Option<Compressor>; STEPS.len()],
    zstd: [Option<zstd::bulk::Compressor<'static>>; STEPS.len()],
    /// Output buffer for results of unknown length. Grows to the longest so far.
    buffer: Vec<u8>,
}

impl WholeCompressor {
    /// Returns `message` compressed. Errors come from the codec itself and do not depend on the message.
    pub(crate) fn compress(&mut self, step: Step, message: &[u8]) -> io::Result<Bytes> {
        let (level, buffer) = (i32::from(step.level()), &mut self.buffer);
        let compressed: &[u8] = match step.coding() {
            Coding::Gzip => {
                let level = CompressionLvl::new(level).map_err(|_| io::Error::other("level"))?;
                let gzip = self.gzip[step.index()].get_or_insert_with(|| Compressor::new(level));
                grow(buffer, gzip.gzip_compress_bound(message.len()));
                let length = gzip.gzip_compress(message, buffer);
                &buffer[..length.map_err(io::Error::other)?]
            }
            Coding::Zstd => {
                let slot = &mut self.zstd[step.index()];
                let zstd = match slot {
                    Some(zstd) => zstd,
                    None => slot.insert(zstd::bulk::Compressor::new(level)?),
                };
                grow(buffer, zstd::zstd_safe::compress_bound(message.len()));
                let length = zstd.compress_to_buffer(message, buffer.as_mut_slice())?;
                &buffer[..length]
            }
            Coding::Brotli => {
                buffer.clear();
                let params = brotli::enc::BrotliEncoderParams {
                    quality: level,
                    lgwin: BROTLI_WINDOW,
                    size_hint: message.len(),
                    ..Default::default()
                };
                // One write for the whole message, because br-1 compresses each piece separately. Pieces of 4 KiB turn
                // 16 KB into 8,427 B instead of 6,981.
                let mut brotli =
                    brotli::CompressorWriter::with_params(&mut *buffer, BROTLI_BUFFER, &params);
                brotli.write_all(message)?;
                drop(brotli);
                buffer
            }
        };
        Ok(Bytes::copy_from_slice(compressed))
    }
}

fn grow(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
}
