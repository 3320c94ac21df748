//! Whole messages, with encoders that are kept.

use std::io::{self, Write as _};

use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor};
use posthaste_wsqos::{Coding, STEPS, Step};

use super::{BROTLI_BUFFER, BROTLI_WINDOW};

/// One thread's encoders of whole messages; each is made when it is first needed.
#[derive(Default)]
pub(crate) struct Press {
    gzip: [Option<Compressor>; STEPS.len()],
    zstd: [Option<zstd::bulk::Compressor<'static>>; STEPS.len()],
    /// Where a message is compressed before its length is known; grows to the longest so far.
    bench: Vec<u8>,
}

impl Press {
    /// `message`, compressed. An error is the codec's own and none that a message could cause.
    pub(crate) fn pack(&mut self, step: Step, message: &[u8]) -> io::Result<Bytes> {
        let (level, bench) = (i32::from(step.level()), &mut self.bench);
        let packed: &[u8] = match step.coding() {
            Coding::Gzip => {
                let level = CompressionLvl::new(level).map_err(|_| io::Error::other("level"))?;
                let gzip = self.gzip[step.index()].get_or_insert_with(|| Compressor::new(level));
                grow(bench, gzip.gzip_compress_bound(message.len()));
                let length = gzip.gzip_compress(message, bench);
                &bench[..length.map_err(io::Error::other)?]
            }
            Coding::Zstd => {
                let slot = &mut self.zstd[step.index()];
                let zstd = match slot {
                    Some(zstd) => zstd,
                    None => slot.insert(zstd::bulk::Compressor::new(level)?),
                };
                grow(bench, zstd::zstd_safe::compress_bound(message.len()));
                let length = zstd.compress_to_buffer(message, bench.as_mut_slice())?;
                &bench[..length]
            }
            Coding::Brotli => {
                bench.clear();
                let params = brotli::enc::BrotliEncoderParams {
                    quality: level,
                    lgwin: BROTLI_WINDOW,
                    size_hint: message.len(),
                    ..Default::default()
                };
                // All of it in one piece: br-1 compresses each piece that it is given by itself. In pieces of 4 KiB,
                // 16 KB become 8,427 B instead of 6,981.
                let mut brotli =
                    brotli::CompressorWriter::with_params(&mut *bench, BROTLI_BUFFER, &params);
                brotli.write_all(message)?;
                drop(brotli);
                bench
            }
        };
        Ok(Bytes::copy_from_slice(packed))
    }
}

fn grow(bench: &mut Vec<u8>, length: usize) {
    if bench.len() < length {
        bench.resize(length, 0);
    }
}
