//! The scan of a request for its SOAP header, through a decoder if the body has a content coding.
//!
//! The decoded bytes go to the scan and nowhere else: the body is forwarded as sent. A body that cannot be decoded ends
//! the scan without a header; the upstream rejects it.

use std::io::{self, Write};

use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;
use posthaste_compression::{Coding, Decoder, PreferenceBlock, is_coded};
use posthaste_qos::QosBlock;
use posthaste_soap::Limits;
use posthaste_soap::head::HeadScan;

use super::headers::field_lines;

/// Readers of the header blocks.
type Blocks = (PreferenceBlock, QosBlock);

/// The scan of one message.
#[expect(
    clippy::large_enum_variant,
    reason = "a message without a coding is the usual one and needs no allocation"
)]
pub(super) enum MessageScan {
    Plain(HeadScan<Blocks>),
    Coded(Box<CodedScan>),
}

/// The scan of a compressed message.
pub(super) struct CodedScan {
    decoder: Decoder<ScanWriter>,
    /// Coded bytes that may still be read. Codings have parts without content, of any length.
    left: usize,
    is_over: bool,
}

/// Feeds the scan. Fails as soon as the scan needs no more, which stops the decoder: the output that is scanned never
/// exceeds [`Limits::header`].
struct ScanWriter(HeadScan<Blocks>);

impl MessageScan {
    /// Returns the scan for a body with these header fields. `None` for codings that the gateway does not know, and for
    /// several.
    pub(super) fn for_message(headers: &HeaderMap) -> Option<Self> {
        let limits = Limits::default();
        let scan = HeadScan::new(&limits, Blocks::default());
        if !is_coded(field_lines(headers, CONTENT_ENCODING)) {
            return Some(Self::Plain(scan));
        }
        let mut lines = field_lines(headers, CONTENT_ENCODING);
        let coding = lines.next().and_then(Coding::from_token)?;
        if lines.next().is_some() {
            return None;
        }
        let decoder = Decoder::new(coding, ScanWriter(scan)).ok()?;
        Some(Self::Coded(Box::new(CodedScan {
            decoder,
            left: limits.header,
            is_over: false,
        })))
    }

    /// True if the header is incomplete, and can still be read.
    pub(super) fn wants_more(&self) -> bool {
        match self {
            Self::Plain(scan) => scan.wants_more(),
            Self::Coded(coded) => !coded.is_over,
        }
    }

    /// Scans the next piece of the body as sent.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        match self {
            Self::Plain(scan) => {
                scan.feed(piece);
            }
            Self::Coded(coded) => coded.feed(piece),
        }
    }

    /// Scans the bytes that the decoder has held back until the end of the body.
    pub(super) fn finish(&mut self) {
        if let Self::Coded(coded) = self
            && !std::mem::replace(&mut coded.is_over, true)
        {
            // A truncated body has been scanned up to its last byte.
            let _ = coded.decoder.finish();
        }
    }

    /// The result so far.
    pub(super) fn scan(&mut self) -> &HeadScan<Blocks> {
        match self {
            Self::Plain(scan) => scan,
            Self::Coded(coded) => &coded.decoder.writer().0,
        }
    }
}

impl CodedScan {
    fn feed(&mut self, piece: &[u8]) {
        let piece = &piece[..piece.len().min(self.left)];
        self.left -= piece.len();
        self.is_over |= self.decoder.push(piece).is_err() || self.left == 0;
    }
}

impl Write for ScanWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.feed(bytes) {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use posthaste_soap::head::Head;

    use super::*;

    fn scan(coding: &'static str, pieces: &[&[u8]]) -> Option<(Head, bool)> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        let mut scan = MessageScan::for_message(&headers)?;
        for piece in pieces {
            scan.feed(piece);
        }
        let wants_more = scan.wants_more();
        scan.finish();
        Some((scan.scan().head(), wants_more))
    }

    const NAMESPACE: &str = "http://schemas.xmlsoap.org/soap/envelope/";

    fn envelope() -> String {
        format!("<e:Envelope xmlns:e=\"{NAMESPACE}\"><e:Body/></e:Envelope>")
    }

    #[test]
    fn a_header_is_read_through_its_coding() {
        let soap = Some(Head::Soap(posthaste_soap::Version::Soap11));
        let zstd = zstd::encode_all(envelope().as_bytes(), 3).unwrap();
        let (first, rest) = zstd.split_at(20);
        let head = |found: Option<(Head, bool)>| found.map(|(head, _)| head);
        assert_eq!(head(scan("zstd", &[first, rest])), soap);
        assert_eq!(head(scan("identity", &[envelope().as_bytes()])), soap);
        assert_eq!(scan("gzip, br", &[]), None);
        assert_eq!(scan("deflate", &[]), None);
    }

    /// A decoder stops at the first byte that is too much, and reads no more of what has no content.
    #[test]
    fn a_scan_is_bounded_in_what_it_reads_and_decodes() {
        let spaces = zstd::encode_all(&vec![b' '; 64 << 20][..], 3).unwrap();
        assert_eq!(scan("zstd", &[&spaces]), Some((Head::TooMuch, false)));
        let mut skippable = b"\x50\x2a\x4d\x18".to_vec();
        skippable.extend(u32::MAX.to_le_bytes());
        let nothing = vec![0; Limits::default().header];
        let over = scan("zstd", &[&skippable, &nothing]);
        assert_eq!(over, Some((Head::Unfinished, false)));
        assert_eq!(
            scan("gzip", &[b"no gzip at all"]),
            Some((Head::Unfinished, false))
        );
    }
}
