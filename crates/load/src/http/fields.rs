//! Header fields of a reply that decide its framing and its content.

use posthaste_compression::Coding;

use super::Violation;

/// Maximum length of a kept quote or current offer, in bytes.
const LIMIT: usize = 1024;

/// The content coding of a reply (RFC 9110, section 8.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// No coding.
    #[default]
    Plain,
    /// One known coding.
    Coded(Coding),
    /// Several codings, or an unknown one, as written.
    Unknown(String),
}

/// Header fields that decide the rest of the reply.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) keep_alive: bool,
    close: bool,
    pub(super) chunked: bool,
    pub(super) length: Option<u64>,
    pub(super) xml: bool,
    pub(super) content: Content,
    pub(super) quote: Option<Vec<u8>>,
    pub(super) offer: Option<Vec<u8>>,
}

impl Fields {
    pub(super) fn read(
        http_1_1: bool,
        headers: &[httparse::Header<'_>],
    ) -> Result<Self, Violation> {
        let mut fields = Self {
            keep_alive: http_1_1,
            ..Self::default()
        };
        for header in headers {
            // Other lengths cannot match, so most headers cost one comparison.
            match header.name.len() {
                5 if header.name.eq_ignore_ascii_case("quote") => {
                    fields.quote = Some(within_limit(header.value));
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.connection(header.value);
                }
                12 if header.name.eq_ignore_ascii_case("content-type") => {
                    let xml = |part: &[u8]| part.eq_ignore_ascii_case(b"xml");
                    fields.xml = header.value.windows(3).any(xml);
                }
                13 if header.name.eq_ignore_ascii_case("current-offer") => {
                    fields.offer = Some(within_limit(header.value));
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.content_length(header.value)?;
                }
                16 if header.name.eq_ignore_ascii_case("content-encoding") => {
                    fields.content_encoding(header.value);
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    if !header.value.eq_ignore_ascii_case(b"chunked") || fields.chunked {
                        let coding = String::from_utf8_lossy(header.value).into_owned();
                        return Err(Violation::Coding(coding));
                    }
                    fields.chunked = true;
                }
                _ => {}
            }
        }
        fields.keep_alive &= !fields.close;
        Ok(fields)
    }

    /// `close` overrides `keep-alive` in any field and order (RFC 9112, section 9.3).
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn content_encoding(&mut self, value: &[u8]) {
        let value = value.trim_ascii();
        if value.is_empty() || value.eq_ignore_ascii_case(b"identity") {
            return;
        }
        self.content = match (&self.content, Coding::of(value)) {
            (Content::Plain, Some(coding)) => Content::Coded(coding),
            (Content::Plain, None) => Content::Unknown(String::from_utf8_lossy(value).into_owned()),
            _ => Content::Unknown("several fields".to_owned()),
        };
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = digits
            .then(|| std::str::from_utf8(value).ok()?.parse().ok())
            .flatten()
            .ok_or(Violation::Length)?;
        if self.length.is_some_and(|other| other != length) {
            return Err(Violation::Length);
        }
        self.length = Some(length);
        Ok(())
    }
}

fn within_limit(value: &[u8]) -> Vec<u8> {
    let value = Some(value).filter(|value| value.len() <= LIMIT);
    value.unwrap_or_default().to_owned()
}
