//! A request's envelope: what is read can be written and read again, what is refused gets a fault
//! that a client can read, and neither costs more than the bytes that were sent deserve.

use posthaste_soap::reply::{Inspection, inspect};
use posthaste_soap::xml::{Name, decode};
use posthaste_soap::{Field, HeaderBlock, Limits, Refusal, Request, Version, write};

use crate::within;

/// Both versions of SOAP.
pub(crate) const BOTH: [Version; 2] = [Version::Soap11, Version::Soap12];

/// Bytes that may be allocated for each byte read: an element of four bytes repeats a namespace of
/// at most 1 KiB.
pub(crate) const PER_BYTE: usize = 300;

/// Bytes that may be allocated whatever the length: first buffers, a refusal's words.
pub(crate) const FIXED: usize = 64 << 10;

/// Longest answer to a refused request: what it quotes is shortened.
const FAULT: usize = 32 << 10;

/// Limits for what was written here: the sender's were looser by what escaping adds.
pub(crate) const GENEROUS: Limits = Limits {
    total: usize::MAX,
    text: usize::MAX,
    header: usize::MAX,
    fields: usize::MAX,
    ..Limits::description()
};

/// Any bytes as a request.
pub fn envelope(bytes: &[u8]) {
    let limits = Limits::default();
    let decoded = within("decode", bytes.len(), 4, FIXED, || decode(bytes, &limits));
    let text = match decoded {
        Ok(text) => text,
        Err(error) => return answerable(&Refusal::Xml(error)),
    };
    let again = utf16(&text);
    let again = decode(&again, &GENEROUS).expect("text that was decoded can be encoded");
    assert_eq!(again, text, "UTF-16 is read as UTF-8 is");

    let accepted = BOTH.map(|version| {
        let outcome = within("Request::read", text.len(), PER_BYTE, FIXED, || {
            Request::read(&text, version, &limits, &[])
        });
        match outcome {
            Ok(request) => {
                bounded(&request, &limits);
                written_and_read(&request);
                true
            }
            Err(refusal) => {
                answerable(&refusal);
                false
            }
        }
    });
    assert_ne!(accepted, [true, true], "an envelope has one version");
}

/// The fault that answers a refusal is read as that fault, in both versions, and is no burden.
fn answerable(refusal: &Refusal) {
    let fault = refusal.fault();
    for version in BOTH {
        let envelope = fault.envelope(version);
        assert!(
            envelope.len() <= FAULT,
            "the answer to a refusal has {} bytes",
            envelope.len()
        );
        let expected = Inspection::Fault {
            version,
            code: fault.code.name(version).to_owned(),
            reason: as_written(&fault.reason).trim().to_owned(),
        };
        assert_eq!(inspect(envelope.as_bytes()), expected, "{refusal:?}");
    }
}

/// What XML can hold of a text: other characters become U+FFFD.
pub(crate) fn as_written(text: &str) -> String {
    let keep = |c| match c {
        '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'.. => c,
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(keep).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    [0xFF, 0xFE].into_iter().chain(units).collect()
}

fn bounded(request: &Request<'_>, limits: &Limits) {
    assert!(request.fields.len() <= limits.fields);
    for field in &request.fields {
        assert!(field.name.local.len() <= limits.name);
        assert!(
            field
                .text
                .as_ref()
                .is_none_or(|text| text.len() <= limits.text)
        );
    }
    assert!(!request.operation.namespace.is_empty(), "R1014");
}

/// A request made from what was read is the same request.
fn written_and_read(request: &Request<'_>) {
    let text = written(request);
    let again = Request::read(&text, request.version, &GENEROUS, &[])
        .unwrap_or_else(|refusal| panic!("{refusal}: {text}"));
    assert_eq!(&again, request, "{text}");
}

fn written(request: &Request<'_>) -> String {
    let mut out = String::from("<s:Envelope xmlns:s=\"");
    out.push_str(request.version.namespace());
    out.push_str("\"><s:Header>");
    for block in &request.headers {
        write_block(block, request.version, &mut out);
    }
    out.push_str("</s:Header><s:Body>");
    open(&request.operation, &mut out);
    out.push('>');
    for field in &request.fields {
        write_field(field, &mut out);
    }
    close(&request.operation, &mut out);
    out.push_str("</s:Body></s:Envelope>");
    out
}

fn write_block(block: &HeaderBlock<'_>, version: Version, out: &mut String) {
    open(&block.name, out);
    if block.must_understand {
        out.push_str(" s:mustUnderstand=\"1\"");
    }
    if let Some(role) = &block.role {
        out.push_str(match version {
            Version::Soap11 => " s:actor=\"",
            Version::Soap12 => " s:role=\"",
        });
        write::attribute(role, out);
        out.push('"');
    }
    out.push('>');
    close(&block.name, out);
}

fn write_field(field: &Field<'_>, out: &mut String) {
    open(&field.name, out);
    out.push('>');
    match &field.text {
        Some(text) => write::text(text, out),
        None => out.push_str("<child/>"),
    }
    close(&field.name, out);
}

fn open(name: &Name<'_>, out: &mut String) {
    if name.namespace.is_empty() {
        out.push_str(&format!("<{}", name.local));
        return;
    }
    out.push_str(&format!("<n:{} xmlns:n=\"", name.local));
    write::attribute(&name.namespace, out);
    out.push('"');
}

fn close(name: &Name<'_>, out: &mut String) {
    let prefix = if name.namespace.is_empty() { "" } else { "n:" };
    out.push_str(&format!("</{prefix}{}>", name.local));
}
