//! Compressing: a whole message at once, or as it comes.
//!
//! Whole is cheaper and smaller (libdeflate, state kept from one message to the next) and needs the
//! message in memory; [`WHOLE`] bounds it. Other libraries were no faster at the same bytes
//! (docs/decisions/0004-compress-repeated-replies-once.md). A new coding is an arm in each of the two files.

mod stream;
mod whole;

pub(crate) use stream::Packer;
pub(crate) use whole::Press;

/// Longest message, in bytes, that is compressed whole.
pub(crate) const WHOLE: u64 = 64 << 10;

/// Brotli's window: 2^18 B. Larger ones cost memory for each reply and pay on long texts only.
const BROTLI_WINDOW: i32 = 18;

/// Bytes that brotli puts out at a time.
const BROTLI_BUFFER: usize = 4096;
