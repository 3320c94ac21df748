//! Compression: whole messages at once, or streams.
//!
//! Whole messages compress cheaper and smaller (libdeflate, encoder state reused across messages). The message must be
//! in memory; [`WHOLE`] bounds it. Other libraries were no faster at the same output size
//! (docs/decisions/0004-compress-repeated-replies-once.md). A new coding needs an arm in each of the two files.

mod stream;
mod whole;

pub(crate) use stream::StreamCompressor;
pub(crate) use whole::WholeCompressor;

/// Longest message, in bytes, that is compressed whole.
pub(crate) const WHOLE: u64 = 64 << 10;

/// Brotli window of 2^18 B. Larger windows cost memory for each reply and help only with long texts.
const BROTLI_WINDOW: i32 = 18;

/// Size of brotli's output buffer, in bytes.
const BROTLI_BUFFER: usize = 4096;
