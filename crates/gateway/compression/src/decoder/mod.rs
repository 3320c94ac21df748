//! Decoders of the content codings gzip, Zstandard and Brotli, for input in pieces of any size.
//!
//! Decoded bytes go to a writer of the caller. It keeps, counts or refuses them: a kilobyte of Brotli can become a
//! gigabyte, and only the caller knows the limit. Encoding belongs to the gateway.

mod gzip;

use std::io::{self, Write};

use crate::Coding;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use self::gzip::Members;

/// Largest window of Zstandard that a receiver must support, as an exponent of 2 (RFC 9659): 2^23 B.
const ZSTD_WINDOW: u32 = 23;

/// First seven bits of a Brotli stream with a large window. The library reads such windows, up to 1 GiB, but they are
/// invalid in a content coding (RFC 7932, section 9.1).
const LARGE_WINDOW: u8 = 0x11;

/// Size of an output buffer in bytes, where a library needs one.
const BLOCK: usize = 16 << 10;

/// Decoder for one coding of a body. It buffers a window of the output: up to 32 KiB for gzip, 8 MiB for Zstandard and
/// 16 MiB for Brotli. The writer may get nothing before the window is full or the piece is consumed.
pub struct Decoder<W: Write>(CodingDecoder<W>);

enum CodingDecoder<W: Write> {
    Gzip(Box<Members<W>>),
    Zstd {
        decoder: zstd::stream::raw::Decoder<'static>,
        is_between_frames: bool,
        into: W,
    },
    Brotli {
        decoder: Box<brotli::DecompressorWriter<W>>,
        is_at_start: bool,
    },
}

impl<W: Write> Decoder<W> {
    /// Creates a decoder at the start of a body that writes to `into`.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(coding: Coding, into: W) -> io::Result<Self> {
        Ok(Self(match coding {
            Coding::Gzip => CodingDecoder::Gzip(Box::new(Members::new(into))),
            Coding::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW))?;
                CodingDecoder::Zstd {
                    decoder,
                    is_between_frames: false,
                    into,
                }
            }
            Coding::Brotli => CodingDecoder::Brotli {
                decoder: Box::new(brotli::DecompressorWriter::new(into, BLOCK)),
                is_at_start: true,
            },
        }))
    }

    /// Decodes the next piece. Some of its output may be written later.
    ///
    /// # Errors
    /// The piece is invalid in this coding, or the writer fails. The decoder is unusable afterwards.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            // The library would expect another frame if called without input.
            CodingDecoder::Zstd { .. } if piece.is_empty() => Ok(()),
            CodingDecoder::Gzip(members) => members.push(piece),
            CodingDecoder::Brotli {
                decoder,
                is_at_start,
            } => {
                let is_large = |first: &u8| first & 0x7f == LARGE_WINDOW;
                if *is_at_start && piece.first().is_some_and(is_large) {
                    let message = "Brotli with a large window is invalid (RFC 7932, section 9.1)";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                *is_at_start &= piece.is_empty();
                decoder.write_all(piece)
            }
            CodingDecoder::Zstd {
                decoder,
                is_between_frames,
                into,
            } => {
                let mut input = InBuffer::around(piece);
                let mut block = [0; BLOCK];
                loop {
                    let mut output = OutBuffer::around(&mut block[..]);
                    let more = decoder.run(&mut input, &mut output)?;
                    into.write_all(output.as_slice())?;
                    *is_between_frames = more == 0;
                    let is_all = more == 0 || output.as_slice().len() < BLOCK;
                    if is_all && input.pos() == piece.len() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Writes the output of the pieces so far, as far as the coding permits: an encoder has to flush too.
    ///
    /// # Errors
    /// The writer fails.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            CodingDecoder::Gzip(members) => members.flush(),
            CodingDecoder::Brotli { decoder, .. } => decoder.flush(),
            // Each piece is decoded to its end.
            CodingDecoder::Zstd { .. } => Ok(()),
        }
    }

    /// Ends the body and writes the remaining output.
    ///
    /// # Errors
    /// The body is truncated, or the writer fails.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.0 {
            CodingDecoder::Gzip(members) => members.finish(),
            CodingDecoder::Brotli { decoder, .. } => decoder.close(),
            CodingDecoder::Zstd {
                is_between_frames: true,
                ..
            } => Ok(()),
            CodingDecoder::Zstd { .. } => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut W {
        match &mut self.0 {
            CodingDecoder::Gzip(members) => members.writer(),
            CodingDecoder::Brotli { decoder, .. } => decoder.get_mut(),
            CodingDecoder::Zstd { into, .. } => into,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coded(coding: Coding, plain: &[u8]) -> Vec<u8> {
        match coding {
            Coding::Gzip => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Zstd => zstd::encode_all(plain, 3).unwrap(),
            Coding::Brotli => {
                let mut out = Vec::new();
                let params = brotli::enc::BrotliEncoderParams {
                    quality: 5,
                    ..Default::default()
                };
                brotli::BrotliCompress(&mut &*plain, &mut out, &params).unwrap();
                out
            }
        }
    }

    fn decoded(coding: Coding, pieces: &[&[u8]]) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::new(coding, Vec::new())?;
        for piece in pieces {
            decoder.push(piece)?;
        }
        decoder.finish()?;
        Ok(std::mem::take(decoder.writer()))
    }

    /// Fails after this many bytes.
    struct Least(usize);

    impl Write for Least {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let left = self.0.checked_sub(bytes.len());
            self.0 = left.ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn truncated_or_wrong_content_is_a_decoding_error() {
        for coding in Coding::ALL {
            let whole = coded(coding, &b"hello, hello, hello".repeat(20));
            assert!(decoded(coding, &[&whole]).is_ok());
            for cut in [1, whole.len() / 2, whole.len() - 1] {
                assert!(
                    decoded(coding, &[&whole[..cut]]).is_err(),
                    "{coding:?} {cut}"
                );
            }
            assert!(decoded(coding, &[&[0xff; 100]]).is_err(), "{coding:?}");
        }
    }

    #[test]
    fn content_that_ends_at_a_block_boundary_is_decoded_whole() {
        for coding in Coding::ALL {
            for length in [0, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
                let plain = vec![7; length];
                let back = decoded(coding, &[&coded(coding, &plain), b""]);
                assert_eq!(back.ok(), Some(plain), "{coding:?} {length}");
            }
        }
    }

    /// A kilobyte that becomes 64 MiB costs no more than the writer accepts.
    #[test]
    fn a_writer_that_refuses_ends_it() {
        let zeros = vec![0; 64 << 20];
        for coding in [Coding::Zstd, Coding::Brotli] {
            let bomb = coded(coding, &zeros);
            assert!(bomb.len() < 8 << 10, "{coding:?}: {}", bomb.len());
            let mut decoder = Decoder::new(coding, Least(100_000)).unwrap();
            let error = decoder.push(&bomb).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{coding:?}");
            assert!(decoder.writer().0 < 100_000);
        }
    }

    /// Each is an empty body, valid for the library.
    #[test]
    fn brotlis_windows_end_at_16_mib() {
        let windows: [&[u8]; 4] = [&[0x06], &[0x81, 0x01], &[0xa1, 0x01], &[0x3f]];
        for whole in windows {
            assert_eq!(decoded(Coding::Brotli, &[whole]).ok(), Some(Vec::new()));
        }
        let large: [&[&[u8]]; 2] = [&[&[0x11, 0xde]], &[b"", &[0x11], &[0xde]]];
        for pieces in large {
            let error = decoded(Coding::Brotli, pieces).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("large window"), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn cuts_change_nothing(
            plain in proptest::collection::vec(0u8..4, 0..3000),
            cuts in proptest::collection::vec(0usize..3000, 0..6),
        ) {
            for coding in Coding::ALL {
                let whole = coded(coding, &plain);
                let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (whole.len() + 1)).collect();
                ends.extend([0, whole.len()]);
                ends.sort_unstable();
                let pieces: Vec<&[u8]> =
                    ends.windows(2).map(|ends| &whole[ends[0]..ends[1]]).collect();
                let back = decoded(coding, &pieces);
                prop_assert_eq!(back.as_ref().ok(), Some(&plain), "{:?} {:?}", coding, &back);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            for coding in Coding::ALL {
                let _ = decoded(coding, &[&bytes]);
            }
        }
    }
}
