//! Field sections of an HTTP/3 server: a decoder that was used before reads the same, and valid fields return.

use posthaste_http::streams::FieldClass;
use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http3::qpack::{FieldPlan, QpackError, SectionDecoder, encode};

use crate::within;

/// Memory of a decoder without input, in bytes.
const DECODER: usize = 16 << 10;

type Field = (Vec<u8>, Vec<u8>, FieldClass);

/// A field section.
pub fn qpack(section: &[u8]) {
    let mut decoder = SectionDecoder::default();
    // A string with a Huffman code is at most 8/5 of its code, and is held once.
    let count = within("SectionDecoder", section.len(), 8, DECODER, || {
        let mut fields = 0usize;
        let result = decoder.decode(section, |_| fields += 1);
        result.map(|()| fields)
    });
    let fields = decoded(&mut decoder, section);
    assert_eq!(fields.as_ref().map(Vec::len).ok(), count.ok());
    assert_eq!(fields, decoded(&mut SectionDecoder::default(), section));
    if let Ok(fields) = fields {
        written_again(&fields);
    }
}

fn decoded(decoder: &mut SectionDecoder, section: &[u8]) -> Result<Vec<Field>, QpackError> {
    let mut fields = Vec::new();
    decoder.decode(section, |field| {
        fields.push((field.name.to_vec(), field.value.to_vec(), field.class));
    })?;
    Ok(fields)
}

/// Encodes the fields that a request may have, as constants and as variables, and decodes them.
fn written_again(fields: &[Field]) {
    let mut catalogue = FieldCatalogue::default();
    let (mut request, mut expected) = (Vec::new(), Vec::new());
    for field in fields.iter().filter(|field| field.2 == FieldClass::Regular) {
        let (name, value, _) = field;
        // Fields about the connection have a class of their own.
        let constant = catalogue.constant(name, value).expect("a regular field");
        let variable = catalogue.variable(name).expect("a regular name");
        request.push(RequestField::Constant(constant));
        request.push(RequestField::Variable(variable, value));
        expected.extend([field.clone(), field.clone()]);
    }
    let mut section = Vec::new();
    encode(&FieldPlan::new(&catalogue), &request, &mut section);
    let again = decoded(&mut SectionDecoder::default(), &section);
    assert_eq!(again.as_ref(), Ok(&expected));
}
