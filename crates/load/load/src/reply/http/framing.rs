//! Header fields of a reply that decide its framing. The others are the reply's.

use super::Violation;
use crate::reply::HttpReply;

/// Fields that decide the end of the reply and of its connection.
#[derive(Default)]
pub(super) struct FramingFields {
    pub(super) keep_alive: bool,
    close: bool,
    pub(super) chunked: bool,
    pub(super) length: Option<u64>,
}

impl FramingFields {
    /// Reads the fields of a head. Passes those about the content to `reply`.
    pub(super) fn read(
        http_1_1: bool,
        headers: &[httparse::Header<'_>],
        reply: &mut HttpReply,
    ) -> Result<Self, Violation> {
        let mut fields = Self {
            keep_alive: http_1_1,
            ..Self::default()
        };
        for header in headers {
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.connection(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.content_length(header.value)?;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    if !header.value.eq_ignore_ascii_case(b"chunked") || fields.chunked {
                        let coding = String::from_utf8_lossy(header.value).into_owned();
                        return Err(Violation::Coding(coding));
                    }
                    fields.chunked = true;
                }
                _ => reply.field(header.name.as_bytes(), header.value),
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

    /// Several equal lengths, as fields or as a list, count as one (RFC 9112, section 6.3, item 5).
    fn content_length(&mut self, value: &[u8]) -> Result<(), Violation> {
        for part in value.split(|byte| *byte == b',') {
            let length = decimal(part.trim_ascii()).ok_or(Violation::Length)?;
            if self.length.is_some_and(|other| other != length) {
                return Err(Violation::Length);
            }
            self.length = Some(length);
        }
        Ok(())
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse().ok()
}
