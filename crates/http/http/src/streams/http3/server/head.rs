//! The fields of a request or of its trailers: checked, and kept (RFC 9114, sections 4.2 and 4.3.1).

use crate::streams::field_class::FieldClass;
use crate::streams::field_decoder::DecodedField;
use crate::streams::head::{FIELD_OVERHEAD, ReplyFault, parse_length};

/// Maximum size of all fields of a request, in bytes, as RFC 9114, section 4.2.2, counts them.
pub const LIST_LIMIT: usize = 64 << 10;

/// The fields of a request. Values are those on the wire: without CR, LF and NUL, and not always UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// `:method`.
    pub method: Vec<u8>,
    /// `:scheme`; `None` for CONNECT.
    pub scheme: Option<Vec<u8>>,
    /// `:authority`.
    pub authority: Option<Vec<u8>>,
    /// `:path`; `None` for CONNECT.
    pub path: Option<Vec<u8>>,
    /// The other fields, in their order, with names in lower case.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// `content-length`.
    pub content_length: Option<u64>,
}

/// Reads the fields of one section.
#[derive(Debug, Default)]
pub(super) struct SectionReader {
    head: RequestHead,
    method: Option<Vec<u8>>,
    is_trailers: bool,
    size: usize,
    fault: Option<ReplyFault>,
}

impl SectionReader {
    pub(super) fn new(is_trailers: bool) -> Self {
        Self {
            is_trailers,
            ..Self::default()
        }
    }

    /// Takes the next field. After a fault, fields are ignored.
    pub(super) fn field(&mut self, field: DecodedField<'_>) {
        if self.fault.is_some() {
            return;
        }
        if let Err(fault) = self.check(field) {
            self.fault = Some(fault);
        }
    }

    fn check(&mut self, field: DecodedField<'_>) -> Result<(), ReplyFault> {
        let malformed = |reason| Err(ReplyFault::malformed(reason));
        self.size += field.name.len() + field.value.len() + FIELD_OVERHEAD;
        if self.size > LIST_LIMIT {
            let reason = "the fields are larger than 64 KiB";
            return Err(ReplyFault::excessive(reason));
        }
        match field.class {
            FieldClass::OtherPseudo => return self.pseudo(field),
            FieldClass::Status => return malformed("a request has :status"),
            FieldClass::InvalidName => return malformed("a field has an invalid name"),
            FieldClass::InvalidValue => return malformed("a field has an invalid value"),
            FieldClass::ConnectionSpecific => {
                return malformed("a field about the connection, which HTTP/3 forbids");
            }
            FieldClass::ContentLength | FieldClass::Regular => {}
        }
        if field.name == b"te" && field.value != b"trailers" {
            return malformed("te has another value than trailers");
        }
        if self.is_trailers {
            return Ok(());
        }
        if field.class == FieldClass::ContentLength {
            let length = parse_length(field.value);
            let length = length.ok_or(ReplyFault::malformed("content-length is not a number"))?;
            let before = self.head.content_length.replace(length);
            if before.is_some_and(|other| other != length) {
                return malformed("two different content-length");
            }
        }
        let owned = (field.name.to_vec(), field.value.to_vec());
        self.head.fields.push(owned);
        Ok(())
    }

    fn pseudo(&mut self, field: DecodedField<'_>) -> Result<(), ReplyFault> {
        let malformed = |reason| Err(ReplyFault::malformed(reason));
        if self.is_trailers {
            return malformed("trailers have a pseudo-field");
        }
        if !self.head.fields.is_empty() {
            return malformed("a pseudo-field follows another field");
        }
        let slot = match field.name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.head.scheme,
            b":authority" => &mut self.head.authority,
            b":path" => &mut self.head.path,
            _ => return malformed("a request has an unknown pseudo-field"),
        };
        if slot.replace(field.value.to_vec()).is_some() {
            return malformed("a request has a pseudo-field twice");
        }
        Ok(())
    }

    /// The head. Empty for trailers.
    pub(super) fn finish(mut self) -> Result<RequestHead, ReplyFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.is_trailers {
            return Ok(self.head);
        }
        self.head.method = self
            .method
            .filter(|method| !method.is_empty())
            .ok_or(ReplyFault::malformed("a request without :method"))?;
        self.head.check_target()?;
        Ok(self.head)
    }
}

impl RequestHead {
    /// True for the method HEAD, whose reply has no content.
    pub fn is_head(&self) -> bool {
        self.method == b"HEAD"
    }

    /// Checks that the pseudo-fields are those of the method (RFC 9114, sections 4.3.1 and 4.4).
    fn check_target(&self) -> Result<(), ReplyFault> {
        let malformed = |reason| Err(ReplyFault::malformed(reason));
        if self.method == b"CONNECT" {
            return match (&self.scheme, &self.path, &self.authority) {
                (None, None, Some(authority)) if !authority.is_empty() => Ok(()),
                _ => malformed("CONNECT has :authority, and neither :scheme nor :path"),
            };
        }
        let (Some(scheme), Some(path)) = (&self.scheme, &self.path) else {
            return malformed("a request without :scheme or :path");
        };
        if !matches!(scheme.as_slice(), b"http" | b"https") {
            return Ok(());
        }
        let is_path = path.first() == Some(&b'/') || path == b"*" && self.method == b"OPTIONS";
        if !is_path {
            return malformed(":path does not begin with a slash");
        }
        let mut hosts = self.fields.iter().filter(|(name, _)| name == b"host");
        let host = hosts.next().map(|(_, host)| host);
        match (&self.authority, host) {
            (None, None) => malformed("a request without :authority and host"),
            (Some(named), _) if named.is_empty() => malformed(":authority is empty"),
            (None, Some(host)) if host.is_empty() => malformed("host is empty"),
            (Some(named), Some(host)) if named != host => {
                malformed("host is not the same as :authority")
            }
            _ if hosts.next().is_some() => malformed("a request has host twice"),
            _ => Ok(()),
        }
    }
}
