//! Field sections against a second encoder and decoder, written from RFC 9204 without the Huffman code.

use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http3::qpack::{FieldPlan, SectionDecoder, encode};
use proptest::prelude::*;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Entries of the static table that both sides of this test use: index, name, value.
const ENTRIES: &[(u8, &str, &str)] = &[
    (0, ":authority", ""),
    (1, ":path", "/"),
    (17, ":method", "GET"),
    (23, ":scheme", "https"),
    (25, ":status", "200"),
    (52, "content-type", "text/html; charset=utf-8"),
    (62, "x-xss-protection", "1; mode=block"),
    (63, ":status", "100"),
    (71, ":status", "500"),
    (
        85,
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    (98, "x-frame-options", "sameorigin"),
];

/// Form of a field.
#[derive(Clone, Debug)]
enum FieldLine {
    Indexed(usize),
    Named(usize, Vec<u8>, bool),
    Literal(Vec<u8>, Vec<u8>, bool),
}

/// An integer with a prefix (RFC 7541, section 5.1).
fn integer(pattern: u8, prefix: u32, value: usize, bytes: &mut Vec<u8>) {
    let full = (1 << prefix) - 1;
    if value < full {
        return bytes.push(pattern | value as u8);
    }
    bytes.push(pattern | full as u8);
    let mut rest = value - full;
    while rest > 127 {
        bytes.push(128 + (rest % 128) as u8);
        rest /= 128;
    }
    bytes.push(rest as u8);
}

fn line(line: &FieldLine, bytes: &mut Vec<u8>) {
    match line {
        FieldLine::Indexed(entry) => integer(0xc0, 6, ENTRIES[*entry].0.into(), bytes),
        FieldLine::Named(entry, value, secret) => {
            let mark = if *secret { 0x20 } else { 0 };
            integer(0x50 | mark, 4, ENTRIES[*entry].0.into(), bytes);
            integer(0, 7, value.len(), bytes);
            bytes.extend_from_slice(value);
        }
        FieldLine::Literal(name, value, secret) => {
            let mark = if *secret { 0x10 } else { 0 };
            integer(0x20 | mark, 3, name.len(), bytes);
            bytes.extend_from_slice(name);
            integer(0, 7, value.len(), bytes);
            bytes.extend_from_slice(value);
        }
    }
}

fn field(line: &FieldLine) -> (Vec<u8>, Vec<u8>) {
    match line {
        FieldLine::Indexed(entry) => {
            let (_, name, value) = ENTRIES[*entry];
            (name.into(), value.into())
        }
        FieldLine::Named(entry, value, _) => (ENTRIES[*entry].1.into(), value.clone()),
        FieldLine::Literal(name, value, _) => (name.clone(), value.clone()),
    }
}

fn lines() -> impl Strategy<Value = Vec<FieldLine>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    let one = prop_oneof![
        (0..ENTRIES.len()).prop_map(FieldLine::Indexed),
        (0..ENTRIES.len(), bytes(), any::<bool>())
            .prop_map(|(entry, value, secret)| FieldLine::Named(entry, value, secret)),
        (bytes(), bytes(), any::<bool>())
            .prop_map(|(name, value, secret)| FieldLine::Literal(name, value, secret)),
    ];
    prop::collection::vec(one, 0..20)
}

fn decoded(section: &[u8]) -> Fields {
    let mut fields = Vec::new();
    let each = |field: posthaste_http::streams::DecodedField<'_>| {
        fields.push((field.name.to_vec(), field.value.to_vec()));
    };
    SectionDecoder::default().decode(section, each).unwrap();
    fields
}

proptest! {
    #[test]
    fn fields_of_a_second_encoder_are_decoded(lines in lines()) {
        let mut section = vec![0, 0];
        lines.iter().for_each(|one| line(one, &mut section));
        let expected: Fields = lines.iter().map(field).collect();
        prop_assert_eq!(decoded(&section), expected);
    }

    #[test]
    fn any_section_ends_without_a_panic(bytes: Vec<u8>) {
        let section = [&[0, 0], &bytes[..]].concat();
        let _ = SectionDecoder::default().decode(&section, |_| {});
        let _ = SectionDecoder::default().decode(&bytes, |_| {});
    }

    #[test]
    fn fields_of_our_encoder_are_decoded(values in prop::collection::vec("[ -~]{0,40}", 1..10)) {
        let mut catalogue = FieldCatalogue::default();
        let variable = catalogue.variable(b"x-own").unwrap();
        let path = catalogue.variable(b":path").unwrap();
        let trimmed: Vec<&str> = values.iter().map(|value| value.trim()).collect();
        let mut fields = Vec::new();
        let mut expected = Fields::new();
        for value in &trimmed {
            for name in ["accept", "x-name"] {
                let field = catalogue.constant(name.as_bytes(), value.as_bytes()).unwrap();
                fields.push(RequestField::Constant(field));
                expected.push((name.into(), (*value).into()));
            }
            fields.push(RequestField::Variable(variable, value.as_bytes()));
            expected.push((b"x-own".to_vec(), (*value).into()));
            fields.push(RequestField::Variable(path, value.as_bytes()));
            expected.push((b":path".to_vec(), (*value).into()));
        }
        let mut section = Vec::new();
        encode(&FieldPlan::new(&catalogue), &fields, &mut section);
        prop_assert_eq!(decoded(&section), expected);
    }
}
