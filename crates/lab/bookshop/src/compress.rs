//! gzip for clients that accept it. Every reply is compressed again, with one compressor per thread.

use std::cell::RefCell;

use flate2::{Compress, Compression, FlushCompress, Status};

/// The compressor of one thread.
pub(crate) struct Gzip(RefCell<Compress>);

impl Gzip {
    /// Creates a compressor of level 1 to 9.
    pub(crate) fn new(level: u32) -> Self {
        Self(RefCell::new(Compress::new_gzip(
            Compression::new(level.clamp(1, 9)),
            15,
        )))
    }

    /// Returns `data` as a gzip file (RFC 1952). `None` if the compressor fails; the reply is then sent uncompressed.
    pub(crate) fn compress(&self, data: &[u8]) -> Option<Vec<u8>> {
        let mut compressor = self.0.borrow_mut();
        compressor.reset();
        // Stored blocks are the worst case: five bytes each, plus header and trailer.
        let mut out = Vec::with_capacity(data.len() + data.len() / 1000 + 64);
        match compressor.compress_vec(data, &mut out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => Some(out),
            _ => None,
        }
    }
}

/// True if an Accept-Encoding field allows gzip (RFC 9110, section 12.5.3).
pub(crate) fn accepts_gzip(field: &str) -> bool {
    let mut any = false;
    for member in field.split(',') {
        let mut parts = member.split(';');
        let coding = parts.next().unwrap_or_default().trim();
        let weight = parts.find_map(|p| {
            p.trim()
                .strip_prefix("q=")
                .or_else(|| p.trim().strip_prefix("Q="))
        });
        let allowed = weight.is_none_or(|q| q.trim().parse::<f32>().is_ok_and(|q| q > 0.0));
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            return allowed;
        }
        any |= coding == "*" && allowed;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn compressed_data_is_decompressed_each_time() {
        let gzip = Gzip::new(6);
        for data in [&b""[..], b"abc", &[7; 100_000]] {
            let compressed = gzip.compress(data).unwrap();
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(&compressed[..])
                .read_to_end(&mut back)
                .unwrap();
            assert_eq!(back, data);
        }
    }

    #[test]
    fn the_field_is_read_as_written() {
        for yes in [
            "gzip",
            "deflate, gzip;q=0.5",
            "*",
            "br, X-GZIP",
            "gzip; q=1.0",
        ] {
            assert!(accepts_gzip(yes), "{yes}");
        }
        for no in [
            "",
            "identity",
            "gzip;q=0",
            "*;q=0",
            "gzip;q=0, *",
            "br",
            "gzip;q=x",
        ] {
            assert!(!accepts_gzip(no), "{no}");
        }
    }
}
