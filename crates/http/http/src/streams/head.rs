//! The fields of a reply, of an interim reply or of trailers: checked, and passed on (RFC 9113, sections 8.2 and
//! 8.3; RFC 9114, sections 4.2 and 4.3).

use crate::streams::event::EventSink;
use crate::streams::field_class::FieldClass;
use crate::streams::field_decoder::DecodedField;
use crate::streams::recorded_fields::RecordedFields;

/// Maximum size of all fields of a block, in bytes, as RFC 9113, section 6.5.2, and RFC 9114, section 4.2.2,
/// count them.
pub(crate) const LIST_LIMIT: usize = 256 << 10;

/// Bytes that a field counts beyond name and value.
pub(crate) const FIELD_OVERHEAD: usize = 32;

/// Fault of a field about the connection. In replies `te` is one, because only requests may have it (RFC 9113,
/// section 8.2.2).
const CONNECTION_SPECIFIC: &str = "a field about the connection, which HTTP/2 and HTTP/3 forbid";

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyFaultKind {
    /// A malformed message.
    Malformed,
    /// More than a limit permits.
    Excessive,
}

/// A fault of a reply. It ends the stream, and has a code in each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyFault {
    pub(crate) kind: ReplyFaultKind,
    pub(crate) reason: &'static str,
}

impl ReplyFault {
    pub(crate) const fn malformed(reason: &'static str) -> Self {
        Self {
            kind: ReplyFaultKind::Malformed,
            reason,
        }
    }

    pub(crate) const fn excessive(reason: &'static str) -> Self {
        Self {
            kind: ReplyFaultKind::Excessive,
            reason,
        }
    }
}

/// Position of a field block in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Head,
    Trailers,
}

/// A valid head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyHead {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
}

impl ReplyHead {
    /// True for an interim reply (status 100 to 199).
    pub(crate) const fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Reads the fields of one block.
pub(crate) struct HeadReader<'a, S> {
    sink: &'a mut S,
    token: u32,
    kind: BlockKind,
    status: Option<u16>,
    content_length: Option<u64>,
    /// A regular field has come.
    regular: bool,
    size: usize,
    fault: Option<ReplyFault>,
    /// Copy of the reported fields, if the block is to be remembered.
    record: Option<&'a mut RecordedFields>,
}

impl<'a, S: EventSink> HeadReader<'a, S> {
    pub(crate) fn new(
        sink: &'a mut S,
        token: u32,
        kind: BlockKind,
        record: Option<&'a mut RecordedFields>,
    ) -> Self {
        Self {
            sink,
            token,
            kind,
            status: None,
            content_length: None,
            regular: false,
            size: 0,
            fault: None,
            record,
        }
    }

    /// Takes the next field. After a fault, fields are ignored.
    pub(crate) fn field(&mut self, field: DecodedField<'_>) {
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
            let reason = "the fields are larger than 256 KiB";
            return Err(ReplyFault::excessive(reason));
        }
        let field = without_outer_blanks(field);
        match field.class {
            FieldClass::Status => return self.status(field.value),
            FieldClass::OtherPseudo => return malformed("a reply has a pseudo-field of requests"),
            FieldClass::InvalidName => return malformed("a field has an invalid name"),
            FieldClass::InvalidValue => return malformed("a field has an invalid value"),
            FieldClass::ConnectionSpecific => return malformed(CONNECTION_SPECIFIC),
            FieldClass::Regular if field.name == b"te" => return malformed(CONNECTION_SPECIFIC),
            FieldClass::ContentLength | FieldClass::Regular => {}
        }
        self.regular = true;
        if self.kind == BlockKind::Trailers {
            self.sink.trailer(self.token, field.name, field.value);
            return Ok(());
        }
        let Some(status) = self.status else {
            return malformed("the first field is not :status");
        };
        if status < 200 {
            return Ok(());
        }
        if field.class == FieldClass::ContentLength {
            self.content_length(field.value)?;
        }
        if let Some(record) = &mut self.record {
            record.add(field.name, field.value);
        }
        self.sink.field(self.token, field.name, field.value);
        Ok(())
    }

    fn status(&mut self, value: &[u8]) -> Result<(), ReplyFault> {
        let malformed = |reason| Err(ReplyFault::malformed(reason));
        if self.kind == BlockKind::Trailers {
            return malformed("trailers have :status");
        }
        if self.regular {
            return malformed(":status follows another field");
        }
        if self.status.is_some() {
            return malformed("a reply has two :status");
        }
        let status = match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                let digit = |byte: &u8| u16::from(byte - b'0');
                digit(a) * 100 + digit(b) * 10 + digit(c)
            }
            _ => return malformed(":status is not a number of three digits"),
        };
        self.status = Some(status);
        match status {
            101 => return malformed("status 101, which HTTP/2 and HTTP/3 forbid"),
            ..200 => self.sink.interim(self.token, status),
            _ => self.sink.head(self.token, status),
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), ReplyFault> {
        let length = parse_length(value);
        let length = length.ok_or(ReplyFault::malformed("content-length is not a number"))?;
        if self.content_length.is_some_and(|other| other != length) {
            return Err(ReplyFault::malformed("two different content-length"));
        }
        self.content_length = Some(length);
        Ok(())
    }

    /// The head, or 0 as the status of trailers.
    pub(crate) fn finish(self) -> Result<ReplyHead, ReplyFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let status = match (self.status, self.kind) {
            (Some(status), _) => status,
            (None, BlockKind::Trailers) => 0,
            (None, BlockKind::Head) => {
                return Err(ReplyFault::malformed("a reply without :status"));
            }
        };
        if status >= 200 {
            self.sink.head_end(self.token);
        }
        Ok(ReplyHead {
            status,
            content_length: self.content_length,
        })
    }
}

/// The field without spaces and tabs at the ends of its value, if it has such.
///
/// They make a message malformed (RFC 9113, section 8.2.1; RFC 9114, section 4.2), yet servers send them: the status
/// message of gRPC permits a space anywhere. Clients accept them, because a reply is not forwarded. Pseudo-fields stay
/// as they are.
fn without_outer_blanks(field: DecodedField<'_>) -> DecodedField<'_> {
    if field.class != FieldClass::InvalidValue {
        return field;
    }
    match FieldClass::of_name(field.name) {
        FieldClass::Status | FieldClass::OtherPseudo => field,
        class => {
            let value = trim_blanks(field.value);
            DecodedField {
                value,
                class: class.with_value(value),
                ..field
            }
        }
    }
}

fn trim_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A number of decimal digits only.
pub(crate) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}
